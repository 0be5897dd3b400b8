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
