"""Values of the agent as tests need them: a host that is armed and healthy, and small changes to it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pp_hostd.agent.binding import standing
from pp_hostd.agent.judge import judge
from pp_hostd.agent.plan import plan
from pp_hostd.agent.report import Extras, Report, report
from pp_hostd.model.boot_commitments import BootCommitments, Gate, Look, WatchdogArmed
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.evidence import HostContext
from pp_hostd.model.inquiry import Inquiry, Reply, Said
from pp_hostd.model.machine import Machine
from pp_hostd.model.memory import LastRead, Memory, Proof, Source
from pp_hostd.model.node import Node
from pp_hostd.model.promise import Armed, GateClosed, GateKind, WatchdogKind
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Member, Roster
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Wait

BOOT = "5a1e0000-0000-4000-8000-00000000b007"
UID = "0d1f2a3b-0000-4000-8000-0123456789ab"
NOW = 1000.0

MEMORY = Memory(proof=Proof(998.0, Source.OWN_READ), last_read=LastRead(998.0, 998.1, ""))
PROMISE = Armed(BOOT, 22.0, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, UID, 3)
BOND = BootCommitments(BOOT, Gate.OPEN, WatchdogArmed(WatchdogKind.HARDWARE, 10.0), PROMISE)
INQUIRY = Inquiry(
    started_at=990.0,
    seed=-(1 << 70),
    round=2,
    round_began_at=992.0,
    asked=("b", "c", "d"),
    in_round=2,
    replies=(Reply("b", Said.API_ERROR, None), Reply("c", Said.UNHEALTHY, 7)),
)


def roster(*names: str, version: int = 3) -> Roster:
    """The first node is `UID`'s."""
    uids = (UID if number == 0 else f"uid-{name}" for number, name in enumerate(names))
    members = (Member(name, None, "192.0.2.1", uid, version, None) for name, uid in zip(names, uids))
    return Roster.of(version, version, members)


def electorate(*names: str) -> Electorate:
    found = roster(*names).as_of(3)
    assert not isinstance(found, Unreadable)
    return found


def node(freeing: int | None = None) -> Node:
    return Node("a", "node-uid", "17", "192.0.2.1", None, freeing, tainted=False, unschedulable=False)


def looked(**known: Any) -> Look:
    return Look(NOW - 1, NOW - 1, **(known or {"node": node()}))


GROUND = HostContext("a", electorate("a", "b", "c", "d"), machine=Machine(None, "a", UID, "5", NotRequested(0), "a"))
UNARMED = BootCommitments(BOOT, Gate.CLOSED, stored=GateClosed(BOOT, GateKind.HOLD), look=looked())


def judged(
    memory: Memory = MEMORY,
    commitments: BootCommitments = BOND,
    host_context: HostContext | None = None,
    settings: Settings | None = None,
    extras: Extras | None = None,
    now: float = NOW,
) -> Report:
    """The report after one real plan and one real judgement of these values."""
    host_context, settings, extras = host_context or GROUND, settings or Settings(), extras or Extras()
    step = plan(settings, host_context, commitments, memory, now)
    waiting_for = step.reason if isinstance(step, Wait) else ""
    rosters = (
        {} if host_context.electorate is None else {host_context.electorate.version: host_context.electorate.names}
    )
    bound = standing(settings, host_context, commitments, memory, rosters, waiting_for)
    judgement = judge(settings, bound, memory, (), now, seed=1)
    extras = replace(extras, waiting_for=waiting_for)
    return report(settings, host_context, commitments, judgement.memory, judgement.verdict, extras, now)
