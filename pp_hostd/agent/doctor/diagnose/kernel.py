"""What the kernel does when it panics, and the means of a quick reset."""

from __future__ import annotations

from collections.abc import Iterator

from pp_hostd.agent.act.watchdog_device import SOFTDOG_IDENTITY
from pp_hostd.agent.act.watchdog_look import Seen
from pp_hostd.agent.doctor.facts import Facts, KernelFacts, NotKnown
from pp_hostd.agent.doctor.line import Line, not_checked, ok, warning

PANIC, SYSRQ, KDUMP, VIRTUAL = "kernel-panic", "sysrq", "kdump", "virtual-machine"


def kernel(facts: Facts) -> Iterator[Line]:
    found = facts.kernel
    if isinstance(found, NotKnown):
        yield not_checked("kernel", found.why, "Is /proc mounted?")
        return
    yield _panic(found, facts.watchdog)
    yield _sysrq(found)
    yield _kdump(found)
    yield _virtual(found)


def _panic(found: KernelFacts, seen: Seen | NotKnown) -> Line:
    seconds = found.panic_seconds
    if seconds is None:
        return not_checked(PANIC, "/proc/sys/kernel/panic can't be read", "Is /proc mounted?")
    if seconds:
        when = "at once" if seconds < 0 else f"after {seconds} s"
        return ok(PANIC, f"a kernel that panics reboots {when} (kernel.panic = {seconds})")
    hangs = "a kernel that panics stands still (kernel.panic = 0)"
    if isinstance(seen, Seen) and seen.exists and seen.identity != SOFTDOG_IDENTITY:
        return ok(PANIC, f"{hangs} until the watchdog resets the host")
    return warning(PANIC, f"{hangs}, and softdog stands still with it", "Do: sysctl kernel.panic=10")


def _sysrq(found: KernelFacts) -> Line:
    if not found.sysrq_trigger:
        left = "a reset goes by reboot(2), with the watchdog behind it"
        return warning(SYSRQ, f"this kernel has no /proc/sysrq-trigger: {left}", "Nothing, if reboot(2) works here.")
    mask = "" if found.sysrq_mask is None else f"; kernel.sysrq = {found.sysrq_mask} limits keyboards only"
    return ok(SYSRQ, f"/proc/sysrq-trigger is there, for root{mask}")


def _kdump(found: KernelFacts) -> Line:
    if not found.crash_kernel_loaded:
        unknown = " (the kernel does not tell)" if found.crash_kernel_loaded is None else ""
        return ok(KDUMP, f"no crash kernel is loaded{unknown}")
    return warning(
        KDUMP,
        "a crash kernel is loaded: after a panic it runs in place of this one and dumps. No workload runs in it, but "
        "an armed watchdog cuts the dump short, unless the crash kernel stops or feeds it; then the host is back late",
        "If dumps matter, put the watchdog's driver into the crash kernel's initramfs and try it with echo c > "
        "/proc/sysrq-trigger in a maintenance window. What else fences this host must wait for the dump (fence_kdump, "
        "or a longer timeout).",
    )


def _virtual(found: KernelFacts) -> Line:
    if not found.hypervisor:
        return ok(VIRTUAL, "no hypervisor is known to run this host")
    return warning(
        VIRTUAL,
        f"this host is a virtual machine ({found.hypervisor}): while it is paused, its clocks and its emulated "
        "watchdog stand still and the cluster goes on, so its workloads may run twice after that",
        "Never pause, snapshot or move it while it is armed (pp-hostd maintenance on). Let the hypervisor reset it: in "
        "libvirt <watchdog action='reset'/>, <on_crash>restart</on_crash>, and error_policy='report' for disks.",
    )
