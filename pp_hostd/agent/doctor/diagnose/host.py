"""The host itself: its configuration, the daemon, other programs that reset it, its kernel and its systemd."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pp_hostd.agent.act.watchdog_device import SOFTDOG_IDENTITY, Seen
from pp_hostd.agent.doctor.facts import (
    DaemonFacts,
    Facts,
    KernelFacts,
    Line,
    NotKnown,
    Properties,
    SystemdFacts,
    failure,
    not_checked,
    ok,
    warning,
)
from pp_hostd.config import ConfigError, Problem
from pp_hostd.model.gate_kind import GateFacts, gate_kind, hindrance, objection
from pp_hostd.model.promise import GateKind
from pp_hostd.model.settings import Settings

CONFIGURATION = "configuration"


def configuration(facts: Facts) -> Iterator[Line]:
    loaded = facts.loaded
    if isinstance(loaded, NotKnown):
        yield failure(CONFIGURATION, loaded.why, loaded.advice or "Make the files in /etc/pp-hostd readable.")
    elif isinstance(loaded, ConfigError):
        for problem in loaded.errors:
            yield failure(CONFIGURATION, _told(problem), "Correct it; see: pp-hostd check-config --help")
    elif loaded.settings.agent.mode == "dry-run":
        yield warning(
            CONFIGURATION, "a dry run: this host judges, and never resets itself", 'Set agent.mode = "enforce".'
        )
    else:
        yield ok(CONFIGURATION, f"no error in {', '.join(loaded.files)}")


def _told(problem: Problem) -> str:
    place = f"{problem.file}, line {problem.line}" if problem.line else problem.file
    return f"{place}: {' '.join(f'{problem.key} {problem.message}'.split())}"


START = "When the rest is well: systemctl enable --now pp-hostd"
LIMIT = "Let the unit have LimitMEMLOCK=infinity: a page that must come from a hung disk hangs the agent."


def daemon(facts: Facts) -> Iterator[Line]:
    found = facts.daemon
    if isinstance(found, NotKnown):
        yield not_checked("daemon", found.why, found.advice or "Run this as root.")
        return
    if not found.pid:
        yield warning("daemon", "it does not run, so this host is not protected", START)
    elif isinstance(found.report, NotKnown):
        yield warning("daemon", found.report.why, found.report.advice or "See: systemctl status pp-hostd")
    else:
        yield ok("daemon", f"runs (pid {found.pid}): {found.report['sentence']}")
        for trouble in found.report["troubles"]:
            yield warning("daemon", str(trouble), "See: journalctl -u pp-hostd; pp-hostd explain")
    yield _locked(found, facts.systemd)


def _locked(found: DaemonFacts, systemd: Any) -> Line:
    if found.pid and found.locked_kib is not None:
        limit = f"limit {found.locked_limit or 'unknown'}"
        if found.locked_kib:
            return ok("memory-lock", f"{found.locked_kib} KiB are locked ({limit})")
        return warning("memory-lock", f"the daemon's memory is not locked ({limit})", LIMIT)
    unit = systemd.units.get("pp-hostd.service", {}) if isinstance(systemd, SystemdFacts) else {}
    limit = unit.get("LimitMEMLOCK", "")
    if limit in ("infinity", "18446744073709551615"):
        return ok("memory-lock", "the unit may lock all of the daemon's memory (LimitMEMLOCK=infinity)")
    if limit:
        return warning("memory-lock", f"the unit may lock {limit} bytes of memory only", LIMIT)
    return not_checked("memory-lock", "the daemon does not run, and systemd shows nothing about its unit", START)


OTHER_AGENTS = "other-agents"


def rivals(facts: Facts) -> Iterator[Line]:
    if isinstance(facts.rivals, NotKnown):
        yield not_checked(
            OTHER_AGENTS, facts.rivals.why, "Look for sbd, watchdog, watchdogd, wdmd: systemctl list-units"
        )
        return
    for rival in facts.rivals:
        yield warning(
            OTHER_AGENTS,
            f"{rival.program} runs (pid {rival.pid}): it resets hosts, or feeds watchdogs, by rules of its own",
            "Two that fence one host get in each other's way: disable it, unless it has another device and you know "
            "why it is there.",
        )
    if not facts.rivals:
        yield ok(OTHER_AGENTS, "no other program is seen that fences this host or feeds a watchdog")


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
        "/proc/sysrq-trigger in a maintenance window. Other fencing of this host must wait for the dump (fence_kdump, "
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


AGENT, GATE = "pp-hostd.service", "pp-hostd-gate.service"
SLEEP = ("sleep.target", "suspend.target", "hibernate.target", "hybrid-sleep.target", "suspend-then-hibernate.target")
PRESERVES_SINCE = 254
INSTALL = "Install the package pp-hostd; the units are in its systemd/ directory."
ABSENT: Properties = {"LoadState": "not-found"}


def systemd(facts: Facts) -> Iterator[Line]:
    found = facts.systemd
    if isinstance(found, NotKnown):
        yield not_checked("systemd", found.why, found.advice or "On a host with systemd, run this as root.")
        return
    yield _version(found)
    yield _unit(found)
    yield from _gate(found, facts.settings or Settings(), facts.gate)
    yield _fd_store(found, armed=bool(facts.report.get("armed")))
    yield _sleep(found)
    yield _reboot_watchdog(found.manager)


def _version(found: SystemdFacts) -> Line:
    version = found.manager.get("Version", "unknown")
    numbers = re.findall("[0-9]+", version)
    if numbers and int(numbers[0]) < PRESERVES_SINCE:
        return ok("systemd", f"version {version}: keeps the watchdog open over a restart, not over a stop")
    return ok("systemd", f"version {version}")


def _unit(found: SystemdFacts) -> Line:
    unit = found.units.get(AGENT, ABSENT)
    if unit.get("LoadState") != "loaded":
        return failure("unit", f"{AGENT} is {unit.get('LoadState')}", INSTALL)
    state = unit.get("UnitFileState", "")
    if not state.startswith(("enabled", "static", "generated")):
        return warning(
            "unit", f"{AGENT} is {state or 'not enabled'}: it does not start at boot", f"systemctl enable {AGENT}"
        )
    return ok("unit", f"{AGENT} is {state}, {unit.get('ActiveState')}")


def _gate(found: SystemdFacts, settings: Settings, facts: GateFacts | NotKnown) -> Iterator[Line]:
    configured, kubelet = settings.agent.gate, settings.agent.kubelet_unit
    if isinstance(facts, NotKnown):
        why = f"whether this host starts the control plane: {facts.why}"
        yield not_checked("gate", why, facts.advice or "Run this again.")
    hindered_by = "" if isinstance(facts, NotKnown) else hindrance(facts)
    refused = objection(configured, hindered_by)
    if refused:
        yield failure("gate", f"agent.gate {refused}", 'Set agent.gate = "auto", and do: systemctl restart pp-hostd')
        return
    kind = gate_kind(configured, hindered_by)
    if kind is not GateKind.HOLD:
        because = f', here "{kind.value}", since {hindered_by}' if hindered_by and kind.value != configured else ""
        yield ok("gate", f'agent.gate is "{configured}"{because}: no unit holds {kubelet}')
        return
    gate, held = found.units.get(GATE, ABSENT), found.units.get(kubelet, ABSENT)
    if gate.get("LoadState") != "loaded":
        yield failure("gate", f"{GATE} is {gate.get('LoadState')}: nothing holds the kubelet after a boot", INSTALL)
    elif held.get("LoadState") != "loaded":
        advice = "Set agent.kubelet_unit to the unit that runs the kubelet here."
        yield warning("gate", f"{kubelet}, which the gate is to hold, is {held.get('LoadState')}", advice)
    elif GATE not in held.get("Requires", "").split() or GATE not in held.get("After", "").split():
        said = f"{kubelet} does not require {GATE}: it starts workloads in a boot that has promised nothing"
        yield failure("gate", said, f"Do: systemctl enable {GATE}; it must be RequiredBy={kubelet} and Before it.")
    else:
        yield ok("gate", f"{kubelet} requires {GATE} and starts after it")


def _fd_store(found: SystemdFacts, *, armed: bool) -> Line:
    unit = found.units.get(AGENT, ABSENT)
    most, kept = unit.get("FileDescriptorStoreMax", ""), unit.get("NFileDescriptorStore", "")
    if most in ("", "0"):
        said = "systemd keeps no descriptor for the agent: a restart closes the armed watchdog, and must open it again"
        return failure("fd-store", said, f"Let {AGENT} have FileDescriptorStoreMax=4.")
    if armed and kept == "0":
        said = "the daemon is armed, and systemd keeps no descriptor of its watchdog"
        return failure("fd-store", said, "Is it systemd that runs the daemon? See: systemctl status pp-hostd")
    return ok("fd-store", f"systemd keeps up to {most} descriptors over a restart{f', {kept} now' if kept else ''}")


def _sleep(found: SystemdFacts) -> Line:
    awake = [name for name in SLEEP if found.units.get(name, ABSENT).get("LoadState") not in ("masked", "not-found")]
    if awake:
        said = f"this host can be put to sleep, and a sleeping host breaks every bound: {', '.join(awake)}"
        return failure("sleep", said, f"Do: systemctl mask {' '.join(awake)}")
    return ok("sleep", "the targets for sleep are masked")


def _reboot_watchdog(manager: Properties) -> Line:
    runtime, reboot = manager.get("RuntimeWatchdogUSec", "0"), manager.get("RebootWatchdogUSec", "0")
    feeds = "systemd feeds no watchdog" if runtime in ("0", "") else f"systemd feeds one within {runtime}"
    late = "" if reboot in ("0", "") else f"; in a reboot, once all units have ended, it does for up to {reboot}"
    return ok("systemd-watchdog", f"{feeds} while the host runs{late}")
