"""The watchdog for tests behaves as a real one does, so that what is shown with it is worth something."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.agent.watchdogs import watchdogs
from tests.harness.eventually import eventually
from tests.harness.isolated import isolated
from tests.harness.watchdog_device import GETTIMELEFT, GETTIMEOUT, KEEPALIVE, SETTIMEOUT


def ask(descriptor: int, command: int, value: int = 0) -> int:
    answer: int = struct.unpack("=i", fcntl.ioctl(descriptor, command, struct.pack("=i", value)))[0]
    return answer


@isolated
def test_closed_without_the_magic_character_it_stays_armed_and_fires_after_its_timeout(tmp_path: Path) -> None:
    with watchdogs(tmp_path) as served:
        descriptor = os.open(served.path(), os.O_WRONLY)
        ask(descriptor, SETTIMEOUT, 1)
        os.close(descriptor)
        served.await_event("fired")
        assert served.names() == ["open", "settimeout", "close", "fired"]
        _, fed, closed, fired = served.events()
        assert closed["armed"] is True
        assert 1 <= fired["at"] - fed["at"] < 1.5


@isolated
def test_closed_with_the_magic_character_it_never_fires(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {}, "other": {"timeout_seconds": 2}}) as served:
        descriptor = os.open(served.path(), os.O_WRONLY)
        ask(descriptor, SETTIMEOUT, 1)
        os.write(descriptor, b"V")
        os.close(descriptor)
        os.close(os.open(served.path("other"), os.O_WRONLY))
        served.await_event("fired", "other")
        assert served.names() == ["open", "settimeout", "feed", "magic", "close"]


@isolated
def test_every_feed_puts_the_firing_off(tmp_path: Path) -> None:
    with watchdogs(tmp_path) as served:
        descriptor = os.open(served.path(), os.O_WRONLY)
        ask(descriptor, SETTIMEOUT, 1)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            ask(descriptor, KEEPALIVE)
            time.sleep(0.1)
        last_feed = served.events()[-1]
        served.await_event("fired")
        assert last_feed["event"] == "feed"
        assert 1 <= served.events()[-1]["at"] - last_feed["at"] < 1.5


@isolated
def test_a_holder_that_is_killed_leaves_it_armed_and_the_host_dies(tmp_path: Path) -> None:
    host = subprocess.Popen(["sleep", "60"])
    with watchdogs(tmp_path, {"watchdog": {"timeout_seconds": 1}}, f"kill -9 {host.pid}") as served:
        code = f"import os, time; os.open({served.path()!r}, os.O_WRONLY); time.sleep(60)"
        with subprocess.Popen([sys.executable, "-c", code]) as holder:
            served.await_event("open")
            holder.kill()
        assert host.wait(10) == -signal.SIGKILL
        assert served.names() == ["open", "close", "fired"]


@isolated
def test_a_second_open_is_refused_while_the_first_lasts(tmp_path: Path) -> None:
    with watchdogs(tmp_path) as served:
        descriptor = os.open(served.path(), os.O_WRONLY)
        with pytest.raises(OSError) as refused:
            os.open(served.path(), os.O_WRONLY)
        assert refused.value.errno == errno.EBUSY
        os.close(descriptor)
        os.close(os.open(served.path(), os.O_WRONLY))


@isolated
def test_it_can_grant_another_timeout_and_keep_the_time_left_to_itself(tmp_path: Path) -> None:
    with watchdogs(tmp_path, {"watchdog": {"granted_seconds": 7, "tells_time_left": False}}) as served:
        descriptor = os.open(served.path(), os.O_WRONLY)
        assert ask(descriptor, SETTIMEOUT, 5) == 7
        assert ask(descriptor, GETTIMEOUT) == 7
        with pytest.raises(OSError) as refused:
            ask(descriptor, GETTIMELEFT)
        assert refused.value.errno == errno.EOPNOTSUPP


@isolated
def test_an_unknown_name_does_not_exist_and_the_server_survives_a_killed_asker(tmp_path: Path) -> None:
    with watchdogs(tmp_path) as served:
        assert not os.path.exists(served.path("elsewhere"))
        code = f"open({served.path()!r}, 'wb')\nwhile True: pass"
        for opened in range(1, 4):
            with subprocess.Popen([sys.executable, "-c", code]) as holder:
                eventually(lambda: served.names().count("open") == opened, "it is open")  # noqa: B023
                holder.kill()
            eventually(lambda: served.names().count("close") == opened, "it is closed")  # noqa: B023
