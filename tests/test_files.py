"""Whole files: read or refused in one line, without being opened when that would do harm; written, or left alone."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from pp_hostd.files import FileError, handed_over, read_whole, write_whole
from tests.harness.bed.namespaces import mount
from tests.harness.isolated import isolated


def test_a_regular_file_is_read_whole(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 1024)
    assert read_whole(str(tmp_path / "file"), 1024) == b"x" * 1024


def test_a_file_over_the_limit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x" * 1025)
    with pytest.raises(FileError, match="is larger than 1 KiB"):
        read_whole(str(tmp_path / "file"), 1024)


def test_a_directory_a_fifo_and_a_socket_are_refused_by_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name, kind in (("", "a directory"), ("fifo", "a FIFO"), ("socket", "a socket")):
            with pytest.raises(FileError, match=f": is {kind}; a regular file is needed"):
                read_whole(str(tmp_path / name), 1024)


def test_a_device_is_refused_without_being_opened() -> None:
    """/dev/tty can't be opened by a process without a terminal: the sentence shows that nobody tried."""
    with pytest.raises(FileError, match="/dev/tty: is a character device"):
        read_whole("/dev/tty", 1024)


def test_what_is_not_there_is_said_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to("nowhere")
    with pytest.raises(FileError, match="does not exist"):
        read_whole(str(tmp_path / "missing"), 1024)
    with pytest.raises(FileError, match="points to a file that does not exist"):
        read_whole(str(tmp_path / "dangling"), 1024)


def test_a_path_that_no_file_can_have_is_refused() -> None:
    with pytest.raises(FileError, match="can't be read"):
        read_whole("/etc/\0", 1024)


@pytest.mark.parametrize("durable", [True, False])
def test_a_file_is_replaced_for_its_owner_alone_and_nothing_else_is_left(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o644)
    (tmp_path / "file.new").write_text("half of what a crashed writer left")
    write_whole(str(path), b"new" * 100_000, durable=durable)
    assert path.read_bytes() == b"new" * 100_000
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_where_the_new_file_is_written_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "file.new").symlink_to("victim")
    with pytest.raises(FileError, match="can't be written"):
        write_whole(str(tmp_path / "file"), b"new")
    assert (tmp_path / "victim").read_text() == "precious"


@isolated
def test_a_full_disk_is_told_and_leaves_the_old_file(tmp_path: Path) -> None:
    mount("tmpfs", str(tmp_path), "size=64k")
    path = tmp_path / "file"
    write_whole(str(path), b"old")
    with pytest.raises(FileError, match="file: can't be written \\(No space left on device\\)"):
        write_whole(str(path), b"x" * 100_000)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("path", ["/nonexistent/file", "/etc/\0"])
def test_a_path_where_no_file_can_be_is_refused(path: str) -> None:
    with pytest.raises(FileError, match="can't be written"):
        write_whole(path, b"")


def test_a_copy_that_systemd_hands_over_stands_for_the_file_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert handed_over("/etc/secret") == "/etc/secret"
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    assert handed_over("/etc/secret") == "/etc/secret"
    (tmp_path / "secret").write_text("-")  # how the unit says that there was no such file
    assert handed_over("/etc/secret") == "/etc/secret"
    (tmp_path / "secret").write_text("words")
    assert handed_over("/etc/secret") == str(tmp_path / "secret")
