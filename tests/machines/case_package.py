"""The package and the unit on an armed host: a newer agent takes over without a gap, a removal leaves nothing behind,
and a stop is none where the watchdog never stops."""

from __future__ import annotations

import time

from pp_hostd.model.promise import Armed, Withdrawn
from tests.machines.bed import BOUND_SECONDS, Bed, Plan
from tests.machines.bound import Fate, protected_or_reset
from tests.machines.package import package
from tests.machines.patience import eventually

OTHERS = ("other-1", "other-2")
PATIENT = {"watchdog.timeout_seconds": 30, "agent.self_timeout_seconds": 40.0}
"""Longer than an agent takes to start and to get a proof, in an emulated machine that also unpacks a package."""
MAIN_PID = "systemctl show --property=MainPID --value pp-hostd"
NEVER_STOPS = "rmmod i6300esb && modprobe i6300esb nowayout=1"
DEVICE = "cat /sys/class/watchdog/watchdog0/state"


def test_an_upgrade_of_an_armed_host_hands_the_watchdog_over_and_keeps_the_promise(bed: Bed) -> None:
    (guest,) = bed.gather({"upgraded": Plan(PATIENT)}, OTHERS)
    bed.start_armed(guest)
    promise, agent = bed.record(guest), guest.run(MAIN_PID)
    guest.write("/root/newer.rpm", package(release=2).read_bytes())
    guest.run("rpm --upgrade --nodeps /root/newer.rpm > /root/upgrade.log 2>&1 &")

    def taken_over() -> bool:
        assert bed.record(guest) == promise
        return (
            guest.run(MAIN_PID) not in (agent, "0\n") and "healthy" in guest.attempt("systemctl status pp-hostd").said
        )

    eventually(taken_over, "the newer agent runs", 120)
    assert "-2." in guest.run("cat /root/upgrade.log; rpm --query pp-hostd")
    assert guest.run("systemctl show --property=NFileDescriptorStore --value pp-hostd") == "1\n"
    assert guest.run(DEVICE) == "active\n"
    until = time.time() + PATIENT["watchdog.timeout_seconds"] + 5
    eventually(lambda: time.time() > until, "longer than the watchdog would wait", 60)
    assert not guest.resets()
    assert isinstance(bed.record(guest), Armed)


def test_a_removal_withdraws_the_promise_disarms_and_leaves_the_kubelet_alone(bed: Bed) -> None:
    (guest,) = bed.gather({"removed": Plan()}, OTHERS)
    bed.start_armed(guest)
    guest.run("rpm --erase pp-hostd", 240)
    removed_at = time.time()
    assert isinstance(bed.record(guest), Withdrawn)
    assert guest.run(DEVICE) == "inactive\n"
    left = guest.attempt("ls -d /usr/share/pp-hostd /usr/bin/pp-hostd /usr/lib/systemd/system/pp-hostd*").said
    assert left.count("No such file") == 3, left
    ticks = len(guest.ticks())
    eventually(lambda: time.time() > removed_at + BOUND_SECONDS, "longer than the bound", BOUND_SECONDS + 5)
    assert not guest.resets()
    assert len(guest.ticks()) > ticks


def test_an_agent_that_was_upgraded_still_resets_a_host_that_is_condemned(bed: Bed) -> None:
    (guest,) = bed.gather({"restarted": Plan(PATIENT)}, OTHERS)
    bed.start_armed(guest)
    since = time.time()
    guest.run("systemctl restart pp-hostd", 60)
    assert protected_or_reset(bed, guest, since) is Fate.PROTECTED


def test_a_stop_is_a_restart_where_the_watchdog_never_stops(bed: Bed) -> None:
    (guest,) = bed.gather({"never-stops": Plan(PATIENT, before=NEVER_STOPS)}, OTHERS)
    bed.start_armed(guest)
    agent, since = guest.run(MAIN_PID), time.time()
    guest.attempt("systemctl stop pp-hostd", 120)
    eventually(lambda: guest.run(MAIN_PID) not in (agent, "0\n"), "systemd has started it again", 120)
    assert "can't be disarmed before its next boot" in " ".join(guest.journal("--unit=pp-hostd").split())
    bed.await_armed(guest)
    assert protected_or_reset(bed, guest, since) is Fate.PROTECTED
