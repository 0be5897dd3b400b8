"""A host that learns that it is condemned: it resets itself at once, by whatever means there are, and stays held."""

from __future__ import annotations

import time

from pp_hostd.model.promise import GateClosed
from tests.machines.bed import WATCHDOG_SECONDS, Bed, Plan
from tests.machines.guest import Guest
from tests.machines.patience import eventually

FAST_SECONDS = 2.0
OTHERS = ("other-1", "other-2")
POWERLESS = """[Service]
CapabilityBoundingSet=
CapabilityBoundingSet=CAP_IPC_LOCK CAP_SYS_NICE
InaccessiblePaths=/proc/sysrq-trigger
"""
"""An agent that may neither reboot nor press keys."""


def is_held(bed: Bed, guest: Guest, boot: str) -> bool:
    record = bed.record(guest)
    return isinstance(record, GateClosed) and record.boot == boot


def test_a_condemned_host_resets_in_two_seconds_and_comes_up_with_its_kubelet_held_until_it_is_given_back(
    bed: Bed,
) -> None:
    (guest,) = bed.gather({"condemned": Plan()}, OTHERS)
    bed.start_armed(guest)
    last_boot, since = guest.boot_id(), time.time()
    bed.condemn(guest)
    reset = guest.await_reset(since, 10)
    print(f"reset {reset.at_wallclock - since:.2f} s after it was condemned")
    assert reset.at_wallclock - since < FAST_SECONDS
    assert not guest.was_reset_by_watchdog()
    boot = guest.await_boot_after(last_boot)
    eventually(lambda: is_held(bed, guest, boot), "it says that its gate is closed", 120)
    assert "condemned" in guest.run("pp-hostd gate status")
    assert boot not in guest.ticks()
    bed.contents.lift(guest.name)
    eventually(lambda: boot in guest.ticks(), "its kubelet is let go", 60)
    assert "condemned" in guest.journal("--unit=pp-hostd", "--boot")


def test_without_sysrq_and_reboot_the_hardware_watchdog_resets_a_condemned_host(bed: Bed) -> None:
    drop_in = {"/etc/systemd/system/pp-hostd.service.d/powerless.conf": POWERLESS.encode()}
    (guest,) = bed.gather({"powerless": Plan(files=drop_in, before="systemctl daemon-reload")}, OTHERS)
    bed.start_armed(guest)
    since = time.time()
    bed.condemn(guest)
    reset = guest.await_reset(since, WATCHDOG_SECONDS + 5)
    print(f"reset {reset.at_wallclock - since:.2f} s after it was condemned, by its watchdog")
    assert guest.was_reset_by_watchdog()
