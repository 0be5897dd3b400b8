"""A control plane that lives on the hosts it guards: no loss of power, no reboot and no outage keeps anybody out."""

from __future__ import annotations

import re
from functools import partial

from tests.harness.bed.relay import Mode
from tests.machines.bed import Bed, Plan
from tests.machines.case_leaving import LEAVE_SECONDS, OTHERS, later
from tests.machines.guest import BOOT_SECONDS, Guest
from tests.machines.patience import eventually

API_SERVER = Plan(files={"/etc/kubernetes/manifests/static": b"metadata:\n  name: kube-apiserver\n"})
"""Its kubelet starts the API server, as kubeadm sets it up. The gate is as it is by default."""
REBOOTS = 10
OFF_SECONDS = 30.0
POWER_DOWN = re.compile(r"\[ *(\d+\.\d+)\] reboot: Power down")


def loses_power(guest: Guest) -> None:
    """Its configuration, which the case has just written, was on its disk for long."""
    guest.run("sync")
    guest.qmp.ask("system_reset")


def ticks_in(boot: str, guest: Guest) -> bool:
    """Whether its kubelet runs in that boot."""
    return boot in guest.ticks()


def resets_after(guest: Guest, resets: int) -> bool:
    return len(guest.resets()) > resets


def is_held(guest: Guest) -> bool:
    return "is held" in guest.attempt("systemctl status pp-hostd-gate").said


def test_after_a_power_loss_of_the_site_the_control_plane_starts_and_lets_the_workers_go(bed: Bed) -> None:
    guests = bed.gather({"control-plane": API_SERVER, "worker-1": Plan(), "worker-2": Plan()})
    bed.start_armed(*guests)
    control_plane, *workers = guests
    bed.set_api(Mode.REFUSE, *guests)
    boots = {guest.name: guest.boot_id() for guest in guests}
    for guest in guests:
        loses_power(guest)
    boots = {guest.name: guest.await_boot_after(boots[guest.name]) for guest in guests}
    starts = partial(ticks_in, boots[control_plane.name], control_plane)
    eventually(starts, "the control-plane host starts its API server", BOOT_SECONDS)
    for guest in workers:
        eventually(partial(is_held, guest), f"{guest.name} is held", BOOT_SECONDS)
        assert not ticks_in(boots[guest.name], guest)
    bed.set_api(Mode.PASS, *guests)
    for guest in guests:
        bed.await_armed(guest)
        eventually(partial(ticks_in, boots[guest.name], guest), f"the kubelet of {guest.name} runs", BOOT_SECONDS)
    assert not any(guest.was_reset_by_watchdog() for guest in guests)


def test_the_only_control_plane_host_reboots_again_and_again_and_is_never_held(bed: Bed) -> None:
    (guest,) = bed.gather({"control-plane": API_SERVER}, OTHERS)
    bed.start_armed(guest)
    for _ in range(REBOOTS):
        boot, resets = guest.boot_id(), len(guest.resets())
        guest.run(later("systemctl reboot"))
        eventually(partial(resets_after, guest, resets), "it reboots", LEAVE_SECONDS)
        bed.set_api(Mode.REFUSE, guest)  # until its own kubelet starts it
        boot = guest.await_boot_after(boot)
        eventually(partial(ticks_in, boot, guest), "its kubelet runs", BOOT_SECONDS)
        bed.set_api(Mode.PASS, guest)
        bed.await_armed(guest)
    assert not guest.was_reset_by_watchdog()


def test_a_host_that_is_switched_off_in_an_outage_is_soon_off(bed: Bed) -> None:
    guests = bed.gather({"off": Plan(), "worker-1": Plan(), "worker-2": Plan()})
    bed.start_armed(*guests)
    bed.set_api(Mode.REFUSE, *guests)
    guest = guests[0]
    outage = "the control plane is out, not this host"
    eventually(lambda: outage in guest.run("systemctl status pp-hostd"), "it knows of the outage", 60)
    ordered_at = float(guest.run("cut -d' ' -f1 /proc/uptime"))
    guest.run(later("systemctl poweroff"))
    eventually(lambda: guest.qmp.events("SHUTDOWN"), "it is off", LEAVE_SECONDS)
    (off_at,) = map(float, POWER_DOWN.findall(guest.console()))
    print(f"off {off_at - ordered_at:.1f} s after the order, of {OFF_SECONDS:g} s")
    assert off_at - ordered_at < OFF_SECONDS
    assert not guest.was_reset_by_watchdog()
