"""The facts of a host on which all is well; tests change one thing at a time."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

from pp_hostd.agent.act.watchdog_device import Seen
from pp_hostd.agent.doctor.diagnose import diagnose
from pp_hostd.agent.doctor.facts import (
    AccessFacts,
    Attempt,
    DaemonFacts,
    Expiring,
    Facts,
    KernelFacts,
    KeyFacts,
    Line,
    Link,
    PeerFacts,
    RosterFacts,
    SystemdFacts,
)
from pp_hostd.config import Loaded
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.gate_kind import GateFacts, ServerFacts
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Member, Roster
from pp_hostd.model.settings import Settings
from pp_hostd.peers.client import Heard
from pp_hostd.peers.knock import Knocked
from pp_hostd.peers.signing import Keyring
from tests.agent.values import judged

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
GATE = "pp-hostd-gate.service"
UNIT = {
    "LoadState": "loaded",
    "UnitFileState": "enabled",
    "ActiveState": "active",
    "FileDescriptorStoreMax": "4",
    "NFileDescriptorStore": "1",
    "LimitMEMLOCK": "infinity",
}
SLEEPERS = ("sleep", "suspend", "hibernate", "hybrid-sleep", "suspend-then-hibernate")
SYSTEMD = SystemdFacts(
    {"Version": "252-38", "RuntimeWatchdogUSec": "0", "RebootWatchdogUSec": "10min", "WatchdogDevice": ""},
    {
        "pp-hostd.service": UNIT,
        GATE: UNIT,
        "kubelet.service": {"LoadState": "loaded", "Requires": f"system.slice {GATE}", "After": f"{GATE} basic.target"},
        **{f"{name}.target": {"LoadState": "masked"} for name in SLEEPERS},
    },
)
SEEN = Seen(
    device="/dev/watchdog",
    exists=True,
    identity="iTCO_wdt",
    driver="iTCO_wdt",
    state="active",
    timeout_seconds=10,
    time_left_seconds=8,
    min_timeout_seconds=2,
    max_timeout_seconds=614,
    boot_status=0,
    nowayout=0,
    options=0x8180,
    holders=("systemd (pid 1)", "pp-hostd (pid 77)"),
)


def electorate(*names: str) -> Electorate:
    members = [Member(name, None, f"192.0.2.{number}", f"uid-{name}", 3, None) for number, name in enumerate(names, 1)]
    found = Roster.of(3, 3, members).as_of(3)
    assert not isinstance(found, Unreadable)
    return found


def answered(peer: str, health: Health = Health.HEALTHY) -> PeerAnswered:
    condemned = 7 if health is Health.UNHEALTHY else None
    return PeerAnswered(peer, 1.0, 1.1, Answer(health, condemned, "token", "nonce", peer, "a", "a"), "")


def heard(why: str = "", ahead_seconds: float = 0.0) -> Heard:
    """A knock of 20 ms, half of which the peer took to call back."""
    knocked = Knocked(not why, why, 1000.005 + ahead_seconds, 1000.015 + ahead_seconds)
    return Heard(knocked, 1000.0, 1000.02)


PEERS = PeerFacts(
    asked=(),
    answers={"b": answered("b"), "c": answered("c")},
    knocks={"b": heard(), "c": heard()},
    unsigned={"b": 403, "c": 403},
    heard_by="the daemon",
)
WELL = Facts(
    now_wallclock=NOW,
    loaded=Loaded(Settings(), ("/etc/pp-hostd/pp-hostd.toml",), {}),
    node="a",
    daemon=DaemonFacts(77, judged(), "unlimited", 40960),
    watchdog=SEEN,
    other_watchdogs=("watchdog0 (iTCO_wdt)",),
    rivals=(),
    kernel=KernelFacts(0, 16, True, False),
    systemd=SYSTEMD,
    gate=GateFacts(servers=(ServerFacts("192.0.2.10"),)),
    access=AccessFacts(
        "/etc/pp-hostd/kubeconfig",
        attempts=(Attempt("api-read-node", "get nodes a"),),
        expiring=(Expiring("client-certificate", "the client certificate", NOW + timedelta(days=300)),),
    ),
    roster=RosterFacts(electorate("a", "b", "c"), kept=False),
    links=(Link("lo", True, True, False, ("127.0.0.1",)), Link("eth0", True, True, True, ("192.0.2.1",))),
    key=KeyFacts("/etc/pp-hostd/peer.key", Keyring((b"k" * 32,)), 0),
    peers=PEERS,
)


def lines(**changes: Any) -> list[Line]:
    return list(diagnose(replace(WELL, **changes)))


def about(check: str, **changes: Any) -> list[tuple[str, str]]:
    """Outcome and finding of each line about that."""
    return [(line.outcome.value, line.found) for line in lines(**changes) if line.check == check]
