"""Disks that are full, read-only or gone: a host needs none of them to live, nor to die in time."""

from __future__ import annotations

import signal

from tests.harness.bed.host import Host
from tests.harness.eventually import eventually
from tests.scenarios.faults import dies_by_the_bound, isolate, status
from tests.scenarios.stage import LONG_SECONDS, WATCHDOG_SECONDS, Stage, outlive, says

VAR = "/var/lib/pp-hostd"
EXIT_USER_ERROR = 2
ORDER = ("pp-hostd", "maintenance", "on", "--until", "1h", "--why", "a new fan")


def break_disk(host: Host, fault: str) -> None:
    if fault == "/run is full":
        host.fill("/run")
    elif fault == "the disk is full":
        host.fill(VAR)
    elif fault == "the disk is read-only":
        host.make_read_only(VAR)
    else:
        host.run("mount", "-t", "tmpfs", "nothing", "/etc/pp-hostd")


FAULTS = ("/run is full", "the disk is full", "the disk is read-only", "/etc is gone")


def test_a_host_whose_disks_fail_lives_on_if_it_is_well_and_dies_if_it_is_not(stage: Stage) -> None:
    spare, *hosts = stage.hosts(9, tokens=1)
    cut_off, well = hosts[:4], hosts[4:]
    for host, fault in zip(hosts, (*FAULTS, *FAULTS)):
        stage.alter(host)
        break_disk(host, fault)
    for host, proof_at in isolate(stage, cut_off).items():
        dies_by_the_bound(host, proof_at)
    outlive(well, LONG_SECONDS)
    stage.list_in_roster([spare, *well])
    run_full, disk_full, read_only, no_etc = well
    says(run_full, "keeping the roster: /run/pp-hostd/roster-")
    for host in (run_full, disk_full, read_only):  # whose last proof is kept all the same, or it would be reset now
        host.signal_agent(signal.SIGKILL)
    no_etc.signal_agent(signal.SIGHUP)
    outlive(well, WATCHDOG_SECONDS)
    for host in well:
        eventually(lambda: stage.is_well(host), f"{host.name} is well")  # noqa: B023  (called here)
    see_troubles(run_full, disk_full, read_only, no_etc)


def see_troubles(run_full: Host, disk_full: Host, read_only: Host, no_etc: Host) -> None:
    assert is_troubled(run_full, "/run/pp-hostd/state: can't be written (No space left on device)")
    assert is_troubled(no_etc, "/etc/pp-hostd/token: does not exist")
    assert "/etc/pp-hostd/pp-hostd.toml does not exist" in says(no_etc, "the old settings stay in force")
    for host, reason in ((disk_full, "No space left on device"), (read_only, "Read-only file system")):
        refused = host.run(*ORDER, check=False)
        assert refused.returncode == EXIT_USER_ERROR
        assert f"the order could not be stored: {VAR}/maintenance: can't be written ({reason})" in refused.stderr
    trouble = f"{VAR}/reset.json can't be opened for a reset (Read-only file system)"
    says(read_only, trouble)
    assert is_troubled(read_only, trouble)


def is_troubled(host: Host, words: str) -> bool:
    return any(words in trouble for trouble in status(host)["troubles"])


def test_a_disk_that_hangs_delays_an_order_and_no_judgement(stage: Stage) -> None:
    host, *_ = stage.hosts(3)
    stage.alter(host)
    host.run("mkfifo", f"{VAR}/maintenance.new")  # to open it is to wait for ever
    refused = host.run(*ORDER, check=False)
    assert refused.returncode == EXIT_USER_ERROR
    assert "the order could not be stored: the disk did not take it within" in refused.stderr
    outlive([host], 0)
