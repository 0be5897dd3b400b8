"""A reset happens in the order of rule 8, whatever hangs on the way; here reboot(2) ends a pid namespace only."""

from __future__ import annotations

import asyncio
import ctypes
import fcntl
import json
import os
import signal
import time
from pathlib import Path
from typing import Any, Callable

import pytest

from pp_hostd.agent.act.reset import SYNC_SECONDS, DryReset, Reset
from pp_hostd.agent.act.watchdog import Places, SoftwareOnly, Watchdog, acquire
from tests.agent.watchdogs import Watchdogs, watchdogs
from tests.harness.isolated import CLONE_NEWUSER, isolated, run_isolated

DEVICES = {"watchdog": {}, "sysrq": {"is_watchdog": False}}
NO_WATCHDOG = SoftwareOnly(10, ())


def refuse_outside_of_namespaces() -> None:
    whole_machine = Path("/proc/self/uid_map").read_text().split()[2] != "1"
    assert os.getpid() == 1 and not whole_machine, "this would reboot the machine"


def armed(served: Watchdogs) -> Watchdog:
    return asyncio.run(acquire(served.path(), 10, 2, Places(sysfs="/nowhere", modprobe=("false",))))


def carried_out(reset: Reset, watchdog: Watchdog, record: str, start_node_record: Callable[[], None]) -> str:
    """As the daemon does it, whose event loop runs during the pause."""
    loop = asyncio.new_event_loop()
    reset.begin(watchdog, record, start_node_record)
    loop.call_later(SYNC_SECONDS, loop.stop)
    loop.run_forever()
    loop.close()
    return reset.finish()


def reset_host(directory: Path, start_node_record: Callable[[], None]) -> str:
    """Resets the host as a condemned agent does; returns only where this process has no right to reboot."""
    refuse_outside_of_namespaces()
    with watchdogs(directory, DEVICES) as served:
        watchdog = armed(served)
        reset = Reset(str(directory / "reset.json"), sysrq=served.path("sysrq"))
        assert reset.troubles == []
        return carried_out(reset, watchdog, '{"v":1}', start_node_record)


def events(directory: Path) -> list[tuple[str, Any]]:
    """From the shortening on, in order: which device saw what, and when."""
    lines = [json.loads(line) for line in (directory / "record").read_text().splitlines()]
    interesting = [line for line in lines if line["event"] in ("settimeout", "feed", "node")]
    return [(line.get("written") or line.get("granted_seconds") or line["event"], line["at"]) for line in interesting]


def note_node_record(directory: Path) -> None:
    with open(directory / "record", "a") as file:
        line = {"at": time.clock_gettime(time.CLOCK_BOOTTIME), "device": "node", "event": "node"}
        file.write(json.dumps(line) + "\n")


def test_a_reset_shortens_records_syncs_and_then_ends_the_host(tmp_path: Path) -> None:
    status, trace = run_isolated(lambda: reset_host(tmp_path, lambda: note_node_record(tmp_path)))
    assert status == -signal.SIGHUP, trace  # the kernel's sign that reboot(2) ended a pid namespace
    seen = events(tmp_path)
    assert [what for what, _ in seen] == [10, 1, "node", "s", "b"]
    synced_at, reset_at = seen[-2][1], seen[-1][1]
    assert 0.5 <= reset_at - synced_at < 1
    assert (tmp_path / "reset.json").read_text() == '{"v":1}'


def test_a_record_that_raises_or_a_disk_that_hangs_delays_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "reset.json")
    disk = os.open(tmp_path / "reset.json", os.O_RDWR | os.O_NONBLOCK)
    os.write(disk, bytes(fcntl.fcntl(disk, 1032)))  # F_GETPIPE_SZ: full, so the next write hangs

    def raise_error() -> None:
        raise RuntimeError

    started_at = time.monotonic()
    status, trace = run_isolated(lambda: reset_host(tmp_path, raise_error))
    assert status == -signal.SIGHUP, trace
    seen = events(tmp_path)
    assert [what for what, _ in seen] == [10, 1, "s", "b"]
    assert seen[-1][1] - seen[1][1] < 1
    assert time.monotonic() - started_at < 5
    os.close(disk)


@isolated
def test_where_nothing_may_reboot_the_watchdog_fires_within_its_shortened_timeout(tmp_path: Path) -> None:
    refuse_outside_of_namespaces()
    with watchdogs(tmp_path, DEVICES) as served:
        watchdog = armed(served)
        reset = Reset(str(tmp_path / "reset.json"), sysrq=str(tmp_path / "no-sysrq"))
        assert reset.troubles == [f"{tmp_path}/no-sysrq can't be opened for a reset (No such file or directory)"]
        assert ctypes.CDLL(None).unshare(CLONE_NEWUSER) == 0  # no rights over this pid namespace any more
        said = carried_out(reset, watchdog, "{}", lambda: None)
        assert said == "this program could not reset the host (Operation not permitted); its watchdog is not fed"
        served.await_event("fired")
        shortened, fired = served.events()[-2:]
        assert 1 <= fired["at"] - shortened["at"] < 1.5


@isolated
def test_a_disk_that_can_not_be_written_is_said_before_it_matters(tmp_path: Path) -> None:
    reset = Reset(str(tmp_path / "absent" / "reset.json"), sysrq=str(tmp_path))
    assert [trouble.split(" can't")[0] for trouble in reset.troubles] == [
        f"{tmp_path}/absent/reset.json",
        str(tmp_path),
    ]
    reset.close()


def test_a_dry_run_says_what_it_would_do_and_does_nothing() -> None:
    def fail() -> None:
        pytest.fail("a dry run wrote to the Node")

    reset = DryReset()
    reset.begin(NO_WATCHDOG, "{}", fail)
    assert reset.finish() == "dry run: the agent would have reset this host now, and no longer fed its watchdog"
