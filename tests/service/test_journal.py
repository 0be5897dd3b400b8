"""A line for each change of state, with an id that never changes, and no moment lost on a journal that is stuck."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from pp_hostd.service.journal import Journal, Message, Priority


@contextlib.contextmanager
def journald(path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as far:
        far.bind(str(path))
        far.setblocking(False)
        yield far
    path.unlink()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def fields(entry: bytes) -> dict[str, str]:
    """The native protocol, as journald reads it."""
    found = {}
    while entry:
        line, entry = entry.split(b"\n", 1)
        name, separator, value = line.partition(b"=")
        if not separator:
            (length,) = struct.unpack_from("<Q", entry)
            value, entry = entry[8 : 8 + length], entry[9 + length :]
        found[name.decode()] = value.decode()
    return found


def test_a_line_carries_its_id_its_priority_and_our_fields(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "socket"))
    with journald(tmp_path / "socket") as far:
        journal.say(Message.ARMED, "armed\nwith 10 s", Priority.NOTICE, timeout_seconds=10, why="one\ntwo")
        assert fields(far.recv(65536)) == {
            "MESSAGE": "armed with 10 s",
            "MESSAGE_ID": Message.ARMED.value,
            "PRIORITY": "5",
            "SYSLOG_IDENTIFIER": "pp-hostd",
            "PP_HOSTD_TIMEOUT_SECONDS": "10",
            "PP_HOSTD_WHY": "one\ntwo",
        }
    journal.close()


def test_a_line_about_another_unit_is_shown_with_that_unit(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "socket"))
    with journald(tmp_path / "socket") as far:
        journal.say_about("kubelet.service", Message.GATE_CLOSED, "it waits")
        assert fields(far.recv(65536))["OBJECT_SYSTEMD_UNIT"] == "kubelet.service"
    journal.close()


def test_every_message_has_an_id_of_its_own_in_journald_s_form() -> None:
    ids = [message.value for message in Message.__members__.values()]  # with doubles, which iterating hides
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch("[0-9a-f]{32}", each) for each in ids)


def test_a_journal_that_does_not_read_costs_lines_and_the_next_that_arrives_says_how_many(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "socket"))
    with journald(tmp_path / "socket") as far:
        for number in range(1000):
            journal.say(Message.STATE_CHANGED, f"state {number}")
        read = 0
        with contextlib.suppress(BlockingIOError):
            while far.recv(65536):
                read += 1
        lost = 1000 - read
        assert journal.dropped_in_all == lost > 0
        journal.say(Message.STATE_CHANGED, "state 1000")
        entry = fields(far.recv(65536))
        assert entry["MESSAGE"] == f"state 1000 ({lost} lines before this one could not be written)"
        assert entry["PP_HOSTD_DROPPED"] == str(lost)
        journal.say(Message.STATE_CHANGED, "state 1001")
        assert fields(far.recv(65536))["MESSAGE"] == "state 1001"
    journal.close()


def test_a_journal_that_restarts_is_found_again_and_stderr_serves_meanwhile(
    tmp_path: Path, pipe: tuple[int, int]
) -> None:
    reader, writer = pipe
    journal = Journal(str(tmp_path / "socket"), stderr=writer)
    journal.say(Message.TROUBLE, "before", Priority.WARNING)
    for number in range(2):
        with journald(tmp_path / "socket") as far:
            journal.say(Message.TROUBLE, f"in run {number}")
            assert fields(far.recv(65536))["MESSAGE"] == f"in run {number}"
    journal.say(Message.TROUBLE, "after")
    assert os.read(reader, 4096) == b"<4>before\n<6>after\n"
    journal.close()


def test_a_full_stderr_blocks_nothing_and_stays_blocking_for_those_who_share_it(
    tmp_path: Path, pipe: tuple[int, int]
) -> None:
    reader, writer = pipe
    journal = Journal(str(tmp_path / "nobody"), stderr=writer)
    for _ in range(2000):
        journal.say(Message.TROUBLE, "x" * 100)
    assert journal.dropped_in_all > 0
    assert os.get_blocking(writer)
    os.read(reader, 1 << 20)
    journal.say(Message.TROUBLE, "at last")
    assert b"lines before this one could not be written" in os.read(reader, 4096)
    journal.close()


def test_a_stderr_that_is_a_full_socket_blocks_nothing(tmp_path: Path) -> None:
    near, far = socket.socketpair()
    with near, far:
        journal = Journal(str(tmp_path / "nobody"), stderr=near.fileno())
        for _ in range(5000):
            journal.say(Message.TROUBLE, "x" * 100)
        assert journal.dropped_in_all > 0
        assert near.getblocking()
        journal.close()


def test_a_stderr_that_is_closed_fails_nobody(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "nobody"), stderr=999)
    journal.say(Message.TROUBLE, "unheard")
    assert journal.dropped_in_all == 1
    journal.close()
