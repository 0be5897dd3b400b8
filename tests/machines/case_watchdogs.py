"""Hosts without the watchdog that they should have: the promise says so, and the leader acts accordingly."""

from __future__ import annotations

import time

from pp_hostd.kube.resources import NODES
from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from pp_hostd.model.promise import WatchdogKind
from tests.machines.bed import BOUND_SECONDS, WATCHDOG_SECONDS, Bed, Plan
from tests.machines.bound import Fate, protected_or_reset
from tests.machines.patience import eventually

OTHERS = ("other-1", "other-2")
NO_HARDWARE = "rmmod i6300esb && sed -i /i6300esb/d /etc/modules-load.d/machines.conf"
TAKEN = r"""mkdir -p /etc/systemd/system.conf.d
printf '[Manager]\nRuntimeWatchdogSec=30\n' > /etc/systemd/system.conf.d/watchdog.conf
systemctl daemon-reexec"""
TRY = "pp-hostd test-reset --yes-reset-this-host"
NO_SOFTDOG = "find /lib/modules -name 'softdog.ko*' -delete && depmod"


def test_softdog_resets_a_host_without_hardware_whose_agent_hangs(bed: Bed) -> None:
    (guest,) = bed.gather({"softdog": Plan(before=NO_HARDWARE)}, OTHERS)
    bed.start_armed(guest)
    promise = bed.await_armed(guest)
    assert (promise.watchdog, promise.watchdog_timeout_seconds) == (WatchdogKind.SOFTDOG, WATCHDOG_SECONDS)
    since = time.time()
    guest.run("systemctl kill --signal=SIGSTOP pp-hostd")
    assert protected_or_reset(bed, guest, since) is Fate.RESET
    assert not guest.was_reset_by_watchdog()


def test_without_any_watchdog_the_promise_says_so_the_leader_refuses_and_software_resets_the_host(bed: Bed) -> None:
    (guest,) = bed.gather({"software": Plan(before=f"{NO_HARDWARE} && {NO_SOFTDOG}")}, OTHERS)
    bed.start_armed(guest)
    assert bed.await_armed(guest).watchdog is WatchdogKind.SOFTWARE_ONLY
    uid = bed.contents.machine(guest.name)["metadata"]["uid"]
    with bed.leader():
        bed.contents.patch(NODES, guest.name, {"metadata": {"annotations": {EXTERNAL_REMEDIATION: ""}}})
        eventually(lambda: "accept_software_only" in bed.contents.leader_status(), "the leader says why it refuses", 60)
        assert bed.contents.machine(guest.name)["metadata"]["uid"] == uid
    assert not guest.resets()
    since = time.time()
    bed.condemn(guest)
    guest.await_reset(since, BOUND_SECONDS)
    assert not guest.was_reset_by_watchdog()


def test_a_device_that_systemd_feeds_itself_is_found_taken_and_explained(bed: Bed) -> None:
    (guest,) = bed.gather({"taken": Plan(before=TAKEN)}, OTHERS)
    bed.start_armed(guest)
    assert bed.await_armed(guest).watchdog is WatchdogKind.SOFTDOG
    advice = "is busy: systemd (pid 1) holds it; for systemd, set RuntimeWatchdogSec=0"
    assert advice in " ".join(guest.journal("--unit=pp-hostd").split())
    examined = guest.attempt("pp-hostd doctor", 120)
    assert examined.exit != 0
    assert "systemd feeds this device itself (RuntimeWatchdogSec=30s)" in " ".join(examined.said.split())


def test_a_person_may_try_the_reset_and_the_watchdog_alone(bed: Bed) -> None:
    by_software, by_watchdog = guests = bed.gather({"by-software": Plan(), "by-watchdog": Plan()}, OTHERS)
    bed.start_armed(*guests)
    assert "nothing was done" in by_software.attempt("pp-hostd test-reset").said
    since = time.time()
    by_software.run(f"systemd-run --quiet {TRY}")
    by_watchdog.run(f"systemd-run --quiet {TRY} --watchdog-only")
    by_software.await_reset(since, WATCHDOG_SECONDS)
    by_watchdog.await_reset(since, BOUND_SECONDS)
    assert [guest.was_reset_by_watchdog() for guest in guests] == [False, True]
