"""The key file: what is taken, and what a person hears about the rest."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from pp_hostd.peers.signing import KeyFileError, load_keyring

SECRET, OTHER = bytes(range(32)), bytes(range(100, 140))


def key_file(directory: Path, text: bytes, mode: int = 0o600) -> str:
    path = directory / "peer.key"
    path.write_bytes(text)
    path.chmod(mode)
    return str(path)


def refusal(path: str) -> str:
    with pytest.raises(KeyFileError) as caught:
        load_keyring(path)
    assert caught.value.message.startswith(path)
    return str(caught.value)


@pytest.mark.parametrize("text", [base64.b64encode(SECRET), SECRET.hex().encode(), SECRET.hex().upper().encode()])
@pytest.mark.parametrize("end", [b"", b"\n", b" \r\n"])
def test_a_secret_is_written_in_hex_or_base64(text: bytes, end: bytes, tmp_path: Path) -> None:
    assert load_keyring(key_file(tmp_path, text + end)).keys == (SECRET,)


def test_a_second_line_is_a_second_key(tmp_path: Path) -> None:
    text = b"%b\n%b\n" % (OTHER.hex().encode(), base64.b64encode(SECRET))
    assert load_keyring(key_file(tmp_path, text)).keys == (OTHER, SECRET)


def test_the_copy_that_systemd_hands_over_is_taken_whatever_its_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "credentials").mkdir()
    key_file(tmp_path / "credentials", SECRET.hex().encode(), 0o440)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path / "credentials"))
    assert load_keyring("/etc/pp-hostd/peer.key").keys == (SECRET,)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644, 0o620])
def test_a_key_that_others_may_use_is_refused(mode: int, tmp_path: Path) -> None:
    path = key_file(tmp_path, SECRET.hex().encode(), mode)
    assert f"{mode:04o}" in refusal(path) and f"chmod 600 {path}" in refusal(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "0 lines"),
        (b"\n", "line 1 holds only 0 bytes"),
        (SECRET.hex().encode() + b"\n\n", "line 2 holds only 0 bytes"),
        (b"secret", "line 1 is neither hex nor base64"),
        (b"\xff" * 64, "line 1 is neither hex nor base64"),
        (SECRET[:31].hex().encode(), "line 1 holds only 31 bytes"),
        (b"\n".join([SECRET.hex().encode()] * 3), "3 lines"),
        (b"a" * 5000, "larger than 4 KiB"),
    ],
)
def test_anything_else_is_refused_and_says_what_to_do(text: bytes, said: str, tmp_path: Path) -> None:
    message = refusal(key_file(tmp_path, text))
    assert said in message and "head -c 32 /dev/urandom | base64" in message and "at least 32 bytes" in message


def test_no_file_says_how_to_make_one(tmp_path: Path) -> None:
    message = refusal(str(tmp_path / "peer.key"))
    assert "does not exist" in message and "head -c 32 /dev/urandom | base64" in message


def test_a_directory_is_no_key(tmp_path: Path) -> None:
    assert "is a directory" in refusal(str(tmp_path))
