"""A healthy host that is shut down on purpose: no watchdog fires, and a promise stands only for a host that is off."""

from __future__ import annotations

from pp_hostd.agent.shutdown import POWER_OFF_SECONDS
from pp_hostd.model.promise import Armed, GateClosed, Withdrawn
from tests.machines.bed import Bed, Plan
from tests.machines.debian import NEWEST
from tests.machines.image import image
from tests.machines.patience import eventually
from tests.machines.qemu import COMMAND_LINE

OTHERS = ("other-1", "other-2")
LEAVE_SECONDS = 120


def later(command: str) -> str:
    """So that there is time to answer."""
    return f"(sleep 1; {command}) > /dev/null 2>&1 &"


def test_a_reboot_withdraws_the_promise_and_the_host_comes_back_armed(bed: Bed) -> None:
    (guest,) = bed.gather({"rebooted": Plan()}, OTHERS)
    bed.start_armed(guest)
    boot = guest.boot_id()
    guest.run(later("shutdown -r now"))
    eventually(lambda: isinstance(bed.record(guest), Withdrawn), "the promise is withdrawn", LEAVE_SECONDS)
    assert not guest.resets()
    guest.await_reset(0, LEAVE_SECONDS)
    assert isinstance(bed.record(guest), (Withdrawn, GateClosed))
    guest.await_boot_after(boot)
    bed.await_armed(guest)
    assert not guest.was_reset_by_watchdog()


def test_a_host_that_is_switched_off_keeps_its_promise_and_stays_off(bed: Bed) -> None:
    (guest,) = bed.gather({"off": Plan()}, OTHERS)
    bed.start_armed(guest)
    guest.run(later("poweroff"))
    eventually(lambda: guest.qmp.events("SHUTDOWN"), "it is off", LEAVE_SECONDS)
    promise = bed.record(guest)
    assert isinstance(promise, Armed) and promise.watchdog_timeout_seconds == POWER_OFF_SECONDS
    assert not guest.was_reset_by_watchdog()


def test_a_new_kernel_by_kexec_is_a_new_boot_with_a_promise_of_its_own(bed: Bed) -> None:
    (guest,) = bed.gather({"kexec": Plan()}, OTHERS)
    bed.start_armed(guest)
    system, boot = image(NEWEST), guest.boot_id()
    guest.write("/boot/vmlinuz", system.vmlinuz.read_bytes())
    guest.write("/boot/initramfs", system.initramfs.read_bytes())
    guest.run(f"kexec --load /boot/vmlinuz --initrd=/boot/initramfs --append='{COMMAND_LINE}'", 60)
    guest.run(later("systemctl kexec"))
    eventually(lambda: isinstance(bed.record(guest), Withdrawn), "the promise is withdrawn", LEAVE_SECONDS)
    guest.await_boot_after(boot)
    bed.await_armed(guest)
    assert not guest.was_reset_by_watchdog()
    assert not guest.resets()
