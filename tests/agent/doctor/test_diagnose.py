"""The doctor's diagnosis of facts: a line for each check, and advice for all that is not well."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta
from typing import Any

import pytest

from pp_hostd.agent.doctor.diagnose.cluster import drift
from pp_hostd.agent.doctor.facts import (
    AccessFacts,
    Attempt,
    DaemonFacts,
    Expiring,
    Facts,
    KernelFacts,
    KeyFacts,
    Link,
    NotKnown,
    Outcome,
    Rival,
    RosterFacts,
)
from pp_hostd.config import ConfigError, Loaded, Problem
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.outcome import Outcome as ApiOutcome
from pp_hostd.model.answer import Health
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.gate_kind import GateFacts
from pp_hostd.model.settings import Agent, Settings, Watchdog
from pp_hostd.peers.client import Silence
from pp_hostd.peers.signing import UNSIGNED, Keyring
from tests.agent.doctor.values import (
    GATE,
    NOW,
    PEERS,
    SEEN,
    SYSTEMD,
    UNIT,
    WELL,
    about,
    answered,
    electorate,
    heard,
    lines,
)
from tests.agent.values import judged

UNARMED = DaemonFacts(77, {**judged(), "armed": None}, "unlimited", 40960)
SILENT = PeerAnswered("c", 1.0, 3.0, None, "connection refused")
PROBLEM = Problem("/etc/pp-hostd/pp-hostd.toml", 3, "must be\n a number", key="api.retry_seconds")
ERRORS = ConfigError([PROBLEM, Problem("/etc/pp-hostd/conf.d", None, "must be a directory")])


def loaded(**tables: Any) -> Loaded:
    return Loaded(replace(Settings(), **tables), ("x",), {})


def units(**changes: dict[str, str]) -> Any:
    named = {f"{name.replace('_', '-')}.service": unit for name, unit in changes.items()}
    return replace(SYSTEMD, units={**SYSTEMD.units, **named})


def manager(**changes: str) -> Any:
    return replace(SYSTEMD, manager={**SYSTEMD.manager, **changes})


def refused(outcome: ApiOutcome, sentence: str = "it was refused", reason: str = "") -> Any:
    error = ApiError(outcome, sentence, reason=reason)
    return AccessFacts("kubeconfig", attempts=(Attempt("api-read-node", "get nodes a", error),))


def ending(**left: float) -> Any:
    certificate = Expiring("client-certificate", "it", NOW + timedelta(**left))
    return AccessFacts("kubeconfig", expiring=(certificate,))


def test_where_all_is_well_every_line_says_so_and_none_has_advice() -> None:
    assert [line for line in lines() if line.outcome is not Outcome.OK or line.advice] == []
    assert len(lines()) > 20


@pytest.mark.parametrize("name", [each.name for each in fields(Facts) if "NotKnown" in str(each.type)])
def test_whatever_could_not_be_found_out_is_told_with_the_reason_and_the_rest_goes_on(name: str) -> None:
    found = lines(**{name: NotKnown("it hangs")})
    unknown = [line for line in found if "it hangs" in line.found or "configuration" in line.found]
    assert unknown and all(line.outcome is not Outcome.OK for line in unknown)
    assert all(line.advice for line in found if line.outcome is not Outcome.OK)
    assert len(found) > len(lines()) / 2


def test_with_nothing_known_at_all_there_is_still_a_diagnosis() -> None:
    nothing = {each.name: NotKnown("gone") for each in fields(Facts) if "NotKnown" in str(each.type)}
    found = lines(**nothing)
    assert {line.outcome for line in found} == {Outcome.WARNING, Outcome.FAILURE}


CASES: list[tuple[str, dict[str, Any], str, str]] = [
    ("configuration", {"loaded": loaded(agent=Agent(mode="dry-run"))}, "warning", "a dry run: this host judges"),
    ("daemon", {"daemon": DaemonFacts()}, "warning", "it does not run, so this host is not protected"),
    ("daemon", {"daemon": DaemonFacts(77, NotKnown("it hangs"))}, "warning", "it hangs"),
    ("memory-lock", {"daemon": DaemonFacts(77, judged(), "65536", 0)}, "warning", "the daemon's memory is not locked"),
    ("memory-lock", {"daemon": DaemonFacts()}, "ok", "the unit may lock all of the daemon's memory"),
    (
        "memory-lock",
        {"daemon": DaemonFacts(), "systemd": units(pp_hostd={**UNIT, "LimitMEMLOCK": "65536"})},
        "warning",
        "the unit may lock 65536 bytes",
    ),
    ("watchdog-device", {"watchdog": replace(SEEN, exists=False)}, "failure", "/dev/watchdog does not exist"),
    ("watchdog-identity", {"watchdog": replace(SEEN, identity="Software Watchdog")}, "warning", "softdog: the kernel"),
    ("watchdog-identity", {"watchdog": replace(SEEN, identity=None)}, "ok", "armed by the daemon as hardware"),
    (
        "watchdog-identity",
        {"watchdog": replace(SEEN, identity=None), "daemon": UNARMED},
        "warning",
        "not checked: sysfs does not show the device",
    ),
    (
        "watchdog-timeout",
        {"watchdog": replace(SEEN, min_timeout_seconds=30)},
        "failure",
        "10 s is configured (it takes",
    ),
    ("watchdog-timeout", {"watchdog": replace(SEEN, max_timeout_seconds=5)}, "failure", "10 s is configured (it takes"),
    (
        "watchdog-timeout",
        {"loaded": loaded(watchdog=Watchdog(timeout_seconds=12))},
        "warning",
        "12 s is configured, and the device keeps 10 s",
    ),
    ("watchdog-timeout", {"daemon": UNARMED}, "ok", "10 s (it takes 2 to 614 s), it stands at 10 s"),
    ("watchdog-stopping", {"watchdog": replace(SEEN, nowayout=1)}, "warning", "nowayout: once armed"),
    ("watchdog-stopping", {"watchdog": replace(SEEN, options=0x8080)}, "failure", "no magic close"),
    ("watchdog-stopping", {"watchdog": replace(SEEN, options=None)}, "ok", "the daemon has found a magic close"),
    (
        "watchdog-holders",
        {"watchdog": replace(SEEN, holders=("sbd (pid 5)",))},
        "failure",
        "sbd (pid 5) holds /dev/watchdog",
    ),
    (
        "watchdog-holders",
        {"daemon": UNARMED},
        "failure",
        "systemd (pid 1) holds /dev/watchdog",  # for whom, if not for an armed daemon?
    ),
    ("watchdog-holders", {"watchdog": replace(SEEN, holders=())}, "ok", "nobody has it open"),
    (
        "watchdog-holders",
        {"systemd": manager(RuntimeWatchdogUSec="30s")},
        "failure",
        "systemd feeds this device itself (RuntimeWatchdogSec=30s)",
    ),
    (
        "watchdog-holders",
        {"systemd": manager(RuntimeWatchdogUSec="infinity", WatchdogDevice="/dev/watchdog")},
        "failure",
        "systemd feeds this device itself",
    ),
    (
        "watchdog-holders",
        {"systemd": manager(RuntimeWatchdogUSec="30s", WatchdogDevice="/dev/watchdog1")},
        "ok",
        "only the agent has it",
    ),
    ("other-agents", {"rivals": [Rival("sbd", 5)]}, "warning", "sbd runs (pid 5)"),
    ("kernel-panic", {"kernel": KernelFacts(10, 16, True, False)}, "ok", "a kernel that panics reboots after 10 s"),
    ("kernel-panic", {"kernel": KernelFacts(-1, 16, True, False)}, "ok", "a kernel that panics reboots at once"),
    ("kernel-panic", {}, "ok", "a kernel that panics stands still (kernel.panic = 0) until the watchdog"),
    (
        "kernel-panic",
        {"watchdog": replace(SEEN, identity="Software Watchdog")},
        "warning",
        "a kernel that panics stands still (kernel.panic = 0), and softdog",
    ),
    ("kernel-panic", {"kernel": KernelFacts()}, "warning", "not checked: /proc/sys/kernel/panic"),
    ("sysrq", {}, "ok", "/proc/sysrq-trigger is there, for root; kernel.sysrq = 16 limits keyboards only"),
    ("sysrq", {"kernel": KernelFacts(0, 16, False, False)}, "warning", "this kernel has no /proc/sysrq-trigger"),
    ("kdump", {"kernel": KernelFacts(0, 16, True, True)}, "warning", "a crash kernel is loaded"),
    ("virtual-machine", {"kernel": KernelFacts(0, 16, True, False)}, "ok", "no hypervisor is known to run this host"),
    (
        "virtual-machine",
        {"kernel": KernelFacts(0, 16, True, False, "QEMU")},
        "warning",
        "this host is a virtual machine (QEMU): while it is paused, its clocks and its emulated watchdog stand still",
    ),
    ("systemd", {}, "ok", "version 252-38: keeps the watchdog open over a restart, not over a stop"),
    ("systemd", {"systemd": manager(Version="257.5")}, "ok", "version 257.5"),
    ("unit", {"systemd": units(pp_hostd={"LoadState": "not-found"})}, "failure", "pp-hostd.service is not-found"),
    (
        "unit",
        {"systemd": units(pp_hostd={**UNIT, "UnitFileState": "disabled"})},
        "warning",
        "pp-hostd.service is disabled: it does not start at boot",
    ),
    ("gate", {"systemd": units(pp_hostd_gate={"LoadState": "not-found"})}, "failure", f"{GATE} is not-found"),
    ("gate", {"systemd": units(kubelet={"LoadState": "not-found"})}, "warning", "kubelet.service, which the gate"),
    (
        "gate",
        {"systemd": units(kubelet={"LoadState": "loaded", "Requires": "basic.target", "After": GATE})},
        "failure",
        f"kubelet.service does not require {GATE}",
    ),
    (
        "gate",
        {"systemd": units(kubelet={"LoadState": "loaded", "Requires": GATE, "After": ""})},
        "failure",
        f"kubelet.service does not require {GATE}",
    ),
    ("gate", {"loaded": loaded(agent=Agent(gate="taint"))}, "ok", 'agent.gate is "taint"'),
    ("gate", {"gate": GateFacts("k3s.service")}, "ok", 'agent.gate is "auto", here "taint", since this host starts'),
    (
        "gate",
        {"loaded": loaded(agent=Agent(gate="hold")), "gate": GateFacts("k3s.service")},
        "failure",
        'agent.gate "hold" could keep this host waiting for ever: this host starts a part of the control plane',
    ),
    (
        "fd-store",
        {"systemd": units(pp_hostd={**UNIT, "FileDescriptorStoreMax": "0"})},
        "failure",
        "systemd keeps no descriptor for the agent",
    ),
    (
        "fd-store",
        {"systemd": units(pp_hostd={**UNIT, "NFileDescriptorStore": "0"})},
        "failure",
        "the daemon is armed, and systemd keeps no descriptor",
    ),
    (
        "sleep",
        {"systemd": replace(SYSTEMD, units={**SYSTEMD.units, "suspend.target": {"LoadState": "loaded"}})},
        "failure",
        "this host can be put to sleep, and a sleeping host breaks every bound: suspend.target",
    ),
    ("systemd-watchdog", {}, "ok", "systemd feeds no watchdog while the host runs; in a reboot"),
    ("kubeconfig", {"access": AccessFacts("k", "k: does not exist")}, "failure", "k: does not exist"),
    ("kubeconfig", {"access": AccessFacts("k", exposed="mode 0644")}, "warning", "k: others than its owner may read"),
    ("api-read-node", {"access": refused(ApiOutcome.FORBIDDEN)}, "failure", "the right is missing to get nodes a"),
    (
        "api-read-node",
        {"access": AccessFacts("k", attempts=(Attempt("api-read-node", "get nodes a", None, 2.6),))},
        "warning",
        "granted: get nodes a; but it took 2.6 s, and the agent waits for 2 s",
    ),
    ("api-read-node", {"access": refused(ApiOutcome.TIMED_OUT)}, "failure", "it was refused"),
    ("client-certificate", {"access": ending(days=-1)}, "failure", "it has expired, at 2026-02-28 00:00Z"),
    ("client-certificate", {"access": ending(days=29)}, "warning", "it expires in 29 days"),
    ("client-certificate", {"access": ending(hours=5)}, "warning", "it expires in 5.0 hours"),
    ("client-certificate", {"access": ending(days=31)}, "ok", "it expires in 31 days"),
    ("roster", {"node": "stranger"}, "failure", "stranger is not in it (version 3, 3 nodes)"),
    (
        "roster",
        {"roster": RosterFacts(electorate("a"), kept=False)},
        "warning",
        "version 3, 1 nodes: this host is alone",
    ),
    (
        "roster",
        {"roster": RosterFacts(electorate("a", "b"), kept=True)},
        "ok",
        "version 3, 2 nodes, as the daemon keeps",
    ),
    (
        "address",
        {"links": [Link("eth0", True, True, True, ("192.0.2.9",))]},
        "failure",
        "the roster says that this host is at 192.0.2.1, and no link here has",
    ),
    (
        "address",
        {"links": [Link("eth0", True, False, True, ("192.0.2.1",))]},
        "failure",
        "192.0.2.1 is on eth0, which has no carrier",
    ),
    ("links", {"links": [Link("eth1", True, False, True, ())]}, "warning", "up, and without a carrier: eth1"),
    ("links", {"links": [Link("docker0", True, False, False, ())]}, "failure", "no link has a carrier"),
    ("peer-key", {"key": KeyFacts("k", UNSIGNED, 0)}, "warning", 'auth = "none"'),
    ("peer-key", {"key": NotKnown("k: does not exist")}, "failure", "k: does not exist"),
    ("peer-key", {"key": NotKnown("k: denied", "As root.", forbidden=True)}, "warning", "not checked: k: denied"),
    ("peer-key", {"key": KeyFacts("k", Keyring((b"k",)), 1000)}, "failure", "k belongs to user id 1000"),
    ("peer-key", {"key": KeyFacts("k", Keyring((b"k", b"l")), 0)}, "warning", "k holds two keys"),
    (
        "peers-to",
        {"peers": replace(PEERS, answers={"c": SILENT})},
        "failure",
        "no peer answers: c (connection refused)",
    ),
    (
        "peers-to",
        {"peers": replace(PEERS, answers={"b": answered("b"), "c": SILENT})},
        "warning",
        "b says healthy; silent: c (connection refused)",
    ),
    (
        "peers-to",
        {"peers": replace(PEERS, answers={"b": answered("b", Health.UNHEALTHY)})},
        "warning",
        "b says unhealthy: this host is condemned",
    ),
    (
        "peers-to",
        {"peers": replace(PEERS, answers={"b": replace(answered("b"), ended_at=4.0)})},
        "warning",
        "b says healthy; but the slowest took 3.0 s, and a round of questions lasts 2 s",
    ),
    ("peers-to", {"peers": replace(PEERS, answers={"b": answered("b", Health.API_ERROR)})}, "ok", "b says api-error"),
    (
        "peers-from",
        {"peers": replace(PEERS, knocks={"b": heard("timed out"), "c": heard("timed out")})},
        "failure",
        "no peer reaches this host (the daemon): b (timed out); c (timed out)",
    ),
    (
        "peers-from",
        {"peers": replace(PEERS, knocks={"b": heard(), "c": Silence("status 404")})},
        "warning",
        "b called back; not so: c (status 404)",
    ),
    (
        "peers-from",
        {"peers": replace(PEERS, knocks={"c": Silence("status 404")})},
        "warning",
        "not checked: no peer could be made to call back: c (status 404)",
    ),
    (
        "peers-unsigned",
        {"peers": replace(PEERS, unsigned={"b": 200})},
        "failure",
        "answered a question that nobody had signed: b",
    ),
    (
        "peers-unsigned",
        {"peers": replace(PEERS, unsigned={"b": 200}), "key": KeyFacts("k", UNSIGNED, 0)},
        "ok",
        "answered, as nothing is signed: b",
    ),
    (
        "peers-unsigned",
        {"peers": replace(PEERS, unsigned={"b": "ConnectTimeout"})},
        "warning",
        "plain HTTP gets no sound answer: b (ConnectTimeout)",
    ),
    ("clock", {}, "ok", "peers' clocks against this one: b +0.000 s (+/- 0.005)"),
    (
        "clock",
        {"peers": replace(PEERS, knocks={"b": heard(ahead_seconds=-7)})},
        "warning",
        "peers' clocks against this one: b -7.000 s (+/- 0.005)",
    ),
    (
        "clock",
        {"peers": replace(PEERS, knocks={"b": Silence("gone")})},
        "warning",
        "not checked: no peer reported its time",
    ),
]


@pytest.mark.parametrize(("check", "changes", "outcome", "found"), CASES)
def test_each_fact_has_its_line(check: str, changes: dict[str, Any], outcome: str, found: str) -> None:
    (line,) = [line for line in lines(**changes) if line.check == check]
    assert line.outcome.value == outcome
    assert line.found.startswith(found), line.found
    assert bool(line.advice) == (outcome != "ok")


def test_every_error_of_the_configuration_has_a_line_of_its_own() -> None:
    assert about("configuration", loaded=ERRORS) == [
        ("failure", "/etc/pp-hostd/pp-hostd.toml, line 3: api.retry_seconds must be a number"),
        ("failure", "/etc/pp-hostd/conf.d: must be a directory"),
    ]


def test_every_trouble_of_the_daemon_has_a_line_of_its_own() -> None:
    troubled = DaemonFacts(77, {**judged(), "troubles": ["one", "two"]}, "unlimited", 1)
    assert [outcome for outcome, _ in about("daemon", daemon=troubled)] == ["ok", "warning", "warning"]


def test_a_missing_right_names_who_grants_it() -> None:
    (line,) = [line for line in lines(access=refused(ApiOutcome.FORBIDDEN)) if line.check == "api-read-node"]
    assert "pp-leader install" in line.advice and "pp-leader enroll" in line.advice


@pytest.mark.parametrize(
    ("outcome", "reason", "advice"),
    [
        (ApiOutcome.NOT_FOUND, "NotFound", "set agent.node_name"),
        (ApiOutcome.NOT_FOUND, "", "set api.machines"),
        (ApiOutcome.UNAUTHORIZED, "", "pp-leader enroll"),
        (ApiOutcome.UNREACHABLE, "", "api.servers"),
        (ApiOutcome.SERVER_ERROR, "", "log"),
    ],
)
def test_what_to_do_about_a_failed_call_depends_on_how_it_failed(outcome: ApiOutcome, reason: str, advice: str) -> None:
    (line,) = [line for line in lines(access=refused(outcome, reason=reason)) if line.check == "api-read-node"]
    assert advice in line.advice


def test_what_others_renew_may_be_short_lived() -> None:
    soon = Expiring("token", "the token", NOW + timedelta(minutes=50), renewed=True)
    assert about("token", access=AccessFacts("k", expiring=(soon,)))[0][0] == "ok"
    sooner = replace(soon, ends_wallclock=NOW + timedelta(minutes=5))
    assert about("token", access=AccessFacts("k", expiring=(sooner,)))[0][0] == "warning"


@pytest.mark.parametrize("ahead_seconds", [-3600.0, -0.25, 0.0, 12.5])
def test_the_drift_is_right_within_the_bound_that_is_told(ahead_seconds: float) -> None:
    seconds, error = drift(heard(ahead_seconds=ahead_seconds))
    assert abs(seconds - ahead_seconds) <= error + 1e-6
    assert error == pytest.approx(0.005)


def test_the_facts_of_a_broken_configuration_have_no_settings() -> None:
    assert (WELL.settings, replace(WELL, loaded=ERRORS).settings) == (Settings(), None)
