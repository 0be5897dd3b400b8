"""systemd hears what it must, when it must, and a socket that is full or missing never holds the agent up."""

from __future__ import annotations

import array
import contextlib
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pp_hostd.service.notify import Notify


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@contextlib.contextmanager
def systemd(path: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as far:
        far.bind(path)
        far.setblocking(False)
        yield far


def heard(far: socket.socket) -> list[str]:
    messages = []
    with contextlib.suppress(BlockingIOError):
        while True:
            messages.append(far.recv(4096).decode())
    return messages


@pytest.fixture
def far(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    monkeypatch.setenv("NOTIFY_SOCKET", str(tmp_path / "notify"))
    monkeypatch.setenv("WATCHDOG_USEC", "8000000")
    monkeypatch.delenv("WATCHDOG_PID", raising=False)
    with systemd(str(tmp_path / "notify")) as far:
        yield far


def test_every_message_is_worded_as_systemd_reads_it(far: socket.socket) -> None:
    notify = Notify(Clock())
    notify.ready()
    notify.extend_timeout(2.5)
    notify.forget()
    notify.stopping()
    assert heard(far) == ["READY=1", "EXTEND_TIMEOUT_USEC=2500000", "FDSTOREREMOVE=1\nFDNAME=watchdog", "STOPPING=1"]
    notify.reloading()
    (message,) = heard(far)
    assert message.startswith("RELOADING=1\nMONOTONIC_USEC=")
    notify.close()


def test_a_judgement_is_told_only_when_it_is_new_or_a_sign_of_life_is_due(far: socket.socket) -> None:
    clock = Clock()
    notify = Notify(clock)
    notify.judged("healthy, proof\n2 s old: gründlich ✓")
    assert heard(far) == ["STATUS=healthy, proof 2 s old: gründlich ✓", "WATCHDOG=1"]
    clock.now += 1.9
    notify.judged("healthy, proof 2 s old: gründlich ✓")
    assert heard(far) == []
    clock.now += 0.1
    notify.judged("suspect")
    assert heard(far) == ["STATUS=suspect", "WATCHDOG=1"]
    notify.close()


def test_a_full_socket_blocks_nothing_and_what_must_arrive_comes_later_in_order(far: socket.socket) -> None:
    clock = Clock()
    notify = Notify(clock)
    for number in range(1000):
        notify.judged(f"state {number}")
    assert notify.dropped > 900
    notify.reloading()
    notify.ready()
    heard(far)
    notify.judged("state 1000")
    kinds = [message.split("=")[0] for message in heard(far)]
    assert kinds == ["RELOADING", "READY", "STATUS"]
    notify.close()


def test_without_systemd_nothing_is_sent_and_nothing_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for address in ("", str(tmp_path / "nobody-listens")):
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify = Notify(Clock())
        notify.ready()
        notify.judged("healthy")
        assert notify.dropped == 0
        notify.close()


def test_a_socket_in_the_abstract_namespace_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"pp-hostd-{os.getpid()}"
    monkeypatch.setenv("NOTIFY_SOCKET", f"@{name}")
    with systemd(f"\0{name}") as far:
        notify = Notify(Clock())
        notify.ready()
        assert heard(far) == ["READY=1"]
        notify.close()


def test_systemd_s_watchdog_is_not_fed_when_it_watches_another_process(
    far: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHDOG_PID", "1")
    notify = Notify(Clock())
    notify.judged("healthy")
    assert heard(far) == ["STATUS=healthy"]
    notify.close()


def test_a_stored_descriptor_arrives_with_its_name(far: socket.socket, tmp_path: Path) -> None:
    notify = Notify(Clock())
    with open(tmp_path / "device", "w") as device:
        notify.store(device.fileno())
        message, descriptors, _, _ = socket.recv_fds(far, 4096, 4)
        assert message.decode().splitlines() == ["FDSTORE=1", "FDNAME=watchdog", "FDPOLL=0"]
        (descriptor,) = array.array("i", descriptors)
        assert os.path.sameopenfile(descriptor, device.fileno())
        os.close(descriptor)
    notify.close()


def test_a_descriptor_that_was_closed_before_it_could_be_stored_holds_nothing_up(
    far: socket.socket, tmp_path: Path
) -> None:
    notify = Notify(Clock())
    while not notify.dropped:
        notify.judged(f"state {notify.dropped} {os.urandom(4).hex()}")
    with open(tmp_path / "device", "w") as device:
        notify.store(device.fileno())
    notify.forget()
    notify.ready()
    heard(far)
    notify.judged("disarmed")
    kinds = [message.split("=")[0] for message in heard(far)]
    assert kinds == ["FDSTOREREMOVE", "READY", "STATUS"]
    notify.close()


CHILD = """
import json, os, sys
from pp_hostd.service.notify import inherited_descriptors
os.environ["LISTEN_PID"] = sys.argv[1] or str(os.getpid())
found = inherited_descriptors()
left = [name for name in os.environ if name.startswith("LISTEN")]
print(json.dumps([found, [os.get_inheritable(descriptor) for _, descriptor in found], left]))
"""


@pytest.mark.parametrize(
    ("pid", "count", "expected"),
    [
        ("", "2", [[["first", 3], ["watchdog", 4]], [False, False], []]),
        ("1", "2", [[], [], []]),
        ("", "x", [[], [], []]),
    ],
)
def test_descriptors_kept_by_systemd_are_found_by_name_and_not_passed_on(
    pid: str, count: str, expected: list[object], tmp_path: Path
) -> None:
    with open(tmp_path / "a", "w") as first, open(tmp_path / "b", "w") as second:

        def place() -> None:
            high = [os.dup(first.fileno()) + 0, os.dup(second.fileno())]
            for target, source in enumerate([os.dup(each) for each in high], 3):
                os.dup2(source, target)

        environment = {**os.environ, "LISTEN_FDS": count, "LISTEN_FDNAMES": "first:watchdog"}
        program = [sys.executable, "-c", CHILD, pid]
        done = subprocess.run(
            program, env=environment, preexec_fn=place, close_fds=False, capture_output=True, text=True, check=True
        )
    assert json.loads(done.stdout) == expected


def test_a_descriptor_that_is_not_open_is_left_out() -> None:
    environment = {"LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "watchdog"}
    code = f"import os; os.environ.update({environment}); os.environ['LISTEN_PID'] = str(os.getpid()); "
    code += "from pp_hostd.service.notify import inherited_descriptors; print(inherited_descriptors())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
