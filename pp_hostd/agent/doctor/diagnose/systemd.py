"""systemd: whether the units are there and start, the gate holds the kubelet, and nothing puts the host to sleep."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pp_hostd.agent.doctor.facts import Facts, NotKnown, Properties, SystemdFacts
from pp_hostd.agent.doctor.line import Line, failure, not_checked, ok, warning
from pp_hostd.model.gate_kind import GateFacts, gate_kind, hindrance, objection
from pp_hostd.model.promise import GateKind
from pp_hostd.model.settings import Settings

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
