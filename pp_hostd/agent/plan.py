"""What to do next about the promise, the watchdog and the gate (rules 5 and 6). Pure and total.

One step at a time: each is repeated until its outcome is known, and none depends on a step that may not have happened.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Union

from pp_hostd.model.bond import (
    Bond,
    BondEvent,
    Gate,
    GateOpened,
    Look,
    Pending,
    StoreEnded,
    WatchdogArmed,
    WatchdogDisarmed,
    Written,
)
from pp_hostd.model.control import Maintenance
from pp_hostd.model.machine import Machine
from pp_hostd.model.memory import Memory, Source, Standing
from pp_hostd.model.moment import render_moment
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord, Armed, Committed, GateClosed, GateKind, Withdrawn
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate
from pp_hostd.model.settings import Settings

LOOK_INTERVAL_SECONDS = 60.0
"""How often an armed host makes sure that its promise still stands on its Node."""
FREEING = "the leader is freeing its workloads"  # rule 12: the gate honours the marker


@dataclass(frozen=True)
class Ground:
    """What the host knows beside its Node. `electorate` holds the nodes of the newest roster; without one,
    `roster_trouble` says why. `machine` is what its own last good read found. `opened_by` is who ordered, by hand, that
    the gate be opened."""

    node: str
    electorate: Electorate | None = None
    roster_trouble: str = ""
    machine: Machine | None = None
    maintenance: Maintenance | None = None
    opened_by: str = ""
    stopping: bool = False
    enrolled_before: bool = False


@dataclass(frozen=True)
class Wait:
    """Nothing to do now. The reason is a sentence for people; empty when all is as it should be."""

    reason: str


@dataclass(frozen=True)
class LookAtNode:
    """Read one's own Node."""


@dataclass(frozen=True)
class ReadMachine:
    """A proof is needed that begins after the last look: read the machine now."""


@dataclass(frozen=True)
class Store:
    """Write this record, conditional on the Node as it was read."""

    record: AgentRecord
    node: Node


@dataclass(frozen=True)
class Arm:
    """Start the watchdog."""


@dataclass(frozen=True)
class Disarm:
    """Stop the watchdog: no promise stands any more."""


@dataclass(frozen=True)
class OpenGate:
    """Let the kubelet start."""

    reason: str


Step = Union[Wait, LookAtNode, ReadMachine, Store, Arm, Disarm, OpenGate]


def ordered(bond: Bond, step: Step) -> Bond:
    """The bond from the order on: a daemon that dies now is bound to what may come of it, and so is a living one."""
    if not isinstance(step, Store):
        return bond
    return replace(bond, pending=(*bond.pending, Pending(step.record, step.node.resource_version)))


def after(bond: Bond, event: BondEvent, pause_seconds: float) -> Bond:
    """The bond once that has happened; what failed is tried again after the pause."""
    if isinstance(event, Look):
        return _after_look(bond, event, pause_seconds)
    if isinstance(event, StoreEnded):
        return _after_store(bond, event, pause_seconds)
    if isinstance(event, WatchdogArmed):
        return replace(bond, watchdog=event)
    if isinstance(event, WatchdogDisarmed):
        return replace(bond, watchdog=None, promised_uid="")
    if isinstance(event, GateOpened):
        return replace(bond, gate=Gate.OPEN)
    return replace(bond, not_before_at=event.at + pause_seconds, trouble=event.sentence)


def _after_look(bond: Bond, look: Look, pause_seconds: float) -> Bond:
    if look.failure:
        return replace(bond, look=None, not_before_at=look.ended_at + pause_seconds, trouble=look.failure)
    record = look.node.agent if look.node is not None else None
    ours = None if record is None or isinstance(record, Unreadable) or _boot(record) != bond.boot else record
    version = look.node.resource_version if look.node is not None else None
    # A write that is conditional on another version than this can no longer land.
    pending = tuple(each for each in bond.pending if each.resource_version == version)
    vanished = bond.stored.machine_uid if isinstance(bond.stored, Armed) else bond.promised_uid
    pause = pause_seconds if look.node is None else 0.0
    return replace(
        bond,
        look=look,
        stored=ours,
        promised_uid=vanished if ours is None else "",  # what vanished was not withdrawn (rules 1 and 5)
        pending=pending,
        not_before_at=look.ended_at + pause,
        trouble="",
    )


def _boot(record: AgentRecord) -> str:
    return record.promise.boot if isinstance(record, Committed) else record.boot


def _after_store(bond: Bond, ended: StoreEnded, pause_seconds: float) -> Bond:
    if ended.written is Written.DONE:
        look = Look(ended.at, ended.at, ended.node) if ended.node is not None else None
        # The version has moved on, so no earlier write can still land.
        return replace(bond, stored=ended.record, promised_uid="", pending=(), look=look, trouble="")
    # Rule 5: until it is known, both are kept. One step at a time: the last one is this.
    pending = tuple(dict.fromkeys(bond.pending)) if ended.written is Written.UNKNOWN else bond.pending[:-1]
    return replace(bond, pending=pending, look=None, not_before_at=ended.at + pause_seconds, trouble=ended.sentence)


def _promised_uid(bond: Bond) -> str:
    """The machine that is promised, may be, or was until its Node vanished; empty if there is none."""
    return next((promise.machine_uid for promise in bond.promises), bond.promised_uid)


def standing(
    settings: Settings, ground: Ground, bond: Bond, memory: Memory, rosters: Mapping[int, tuple[str, ...]], waiting: str
) -> Standing:
    """What binds the judgement: everything that may have been promised, all at once (rule 5)."""
    promises = bond.promises
    versions = {promise.roster_version for promise in promises}
    if not promises and ground.electorate is not None:
        versions = {ground.electorate.version}
    known = all(version in rosters for version in versions)
    unpromised_uid = ground.machine.uid if ground.machine is not None and bond.watchdog is not None else None
    dry_run = settings.agent.mode == "dry-run" and memory.proof is not None
    return Standing(
        node=ground.node,
        machine_uid=_promised_uid(bond) or unpromised_uid,
        armed=bond.watchdog is not None or bool(promises) or dry_run,
        # Rule 5: a shorter T is used at once, a longer one when it is stored.
        self_timeout_seconds=min(
            [settings.agent.self_timeout_seconds, *(promise.self_timeout_seconds for promise in promises)]
        ),
        electorates=tuple(rosters[version] for version in sorted(versions)) if known else (),
        waiting_for=waiting,
    )


def plan(settings: Settings, ground: Ground, bond: Bond, memory: Memory, now: float) -> Step:
    """The next step, or what is waited for."""
    if memory.decision is not None and settings.agent.mode != "dry-run":
        return Wait("")  # rule 7: nothing more is promised, and nothing withdrawn
    unarmed_because, opens_gate = _not_to_be_armed(settings, ground, bond)
    if unarmed_because:
        return _leave(settings, ground, bond, unarmed_because, opens_gate, now)
    if memory.failed_reads and _nobody_relies_on_it(bond) and now >= bond.not_before_at:
        return Disarm()  # rule 6: a boot into isolation stays idle and is not reset
    if bond.look is None:
        return LookAtNode() if now >= bond.not_before_at else Wait(bond.trouble)
    if bond.look.node is None:
        return _without_node(ground, bond, now)
    if bond.watchdog is None or not bond.promises:
        if now >= bond.look.ended_at + settings.api.read_interval_seconds:
            return LookAtNode()
        obstacle = _obstacle(settings, ground, bond, bond.look.node, memory)
        if obstacle is not None:
            return obstacle
        if bond.watchdog is None:
            return Arm()
    return _keep(settings, ground, bond, bond.look.node, bond.watchdog, now)


def _nobody_relies_on_it(bond: Bond) -> bool:
    """Armed, and certainly nothing was promised yet."""
    return bond.watchdog is not None and bond.knows_node and not _promised_uid(bond)


def _not_to_be_armed(settings: Settings, ground: Ground, bond: Bond) -> tuple[str, bool]:
    """Why this host is not to be armed, and whether workloads may start all the same."""
    if ground.stopping:
        return "the agent is stopping", False
    if settings.agent.mode == "dry-run":
        return "a dry run arms nothing", True
    if ground.maintenance is not None:
        order = ground.maintenance
        return f"maintenance by {order.who} until {render_moment(order.until_wallclock)}: {order.why}", True
    if ground.opened_by and bond.gate is Gate.CLOSED:
        return f"{ground.opened_by} opens the gate by hand", True
    if ground.electorate is not None and ground.electorate.n == 1 and ground.electorate.member(ground.node) is not None:
        return "it is the only node, and nobody could take over its workloads", True  # rule 6: n = 1
    if ground.electorate is not None and bond.watchdog is not None and ground.electorate.member(ground.node) is None:
        return f"Node {ground.node} is no longer in the roster", False
    return "", False


def _leave(settings: Settings, ground: Ground, bond: Bond, reason: str, opens_gate: bool, now: float) -> Step:
    """Rule 5: withdraw, then disarm; what can't be withdrawn is kept."""
    if bond.look is None and (bond.promises or (bond.watchdog is not None and not bond.knows_node)):
        return _look_again(bond, reason, now)
    if bond.promises and bond.look is not None and bond.look.node is not None:
        return Store(Withdrawn(bond.boot, ground.maintenance), bond.look.node)
    if bond.watchdog is not None:
        return Disarm() if now >= bond.not_before_at else Wait(f"{reason}; {bond.trouble}")
    return _let_start(settings, ground, bond, reason, now) if opens_gate else Wait(reason)


def _look_again(bond: Bond, reason: str, now: float) -> Step:
    return LookAtNode() if now >= bond.not_before_at else Wait(f"{reason}; {bond.trouble}")


def _let_start(settings: Settings, ground: Ground, bond: Bond, reason: str, now: float) -> Step:
    """Workloads run with nothing promised, so no record, of whichever boot, may say that they don't run or will die."""
    if bond.look is None:
        return _look_again(bond, reason, now)
    node, withdrawn = bond.look.node, isinstance(bond.stored, Withdrawn)
    waits = bond.gate is Gate.CLOSED and not ground.opened_by
    if waits and node is None:
        return _without_node(ground, bond, now)
    if waits and node is not None and node.freeing is not None:
        stale = now >= bond.look.ended_at + settings.api.read_interval_seconds
        return LookAtNode() if stale else Wait(FREEING)
    dry_run = settings.agent.mode == "dry-run"  # leaves a Node alone that says nothing
    if node is not None and not withdrawn and not (dry_run and node.agent is None and not bond.pending):
        return Store(Withdrawn(bond.boot, ground.maintenance), node)
    return OpenGate(reason) if bond.gate is Gate.CLOSED else Wait(reason)


def _without_node(ground: Ground, bond: Bond, now: float) -> Step:
    """Rule 6: a host that was never in the cluster passes; for any other, whoever deleted the Node recreates it."""
    new = bond.look is not None and not bond.look.backup and not ground.enrolled_before
    if new and bond.gate is Gate.CLOSED:
        return OpenGate("this host was never in the cluster")
    if now >= bond.not_before_at:
        return LookAtNode()
    return Wait(
        f"Node {ground.node} does not exist; " + ("the kubelet creates it" if new else "the leader recreates it")
    )


def _obstacle(settings: Settings, ground: Ground, bond: Bond, node: Node, memory: Memory) -> Step | None:
    """What stands between this boot and its first promise (rule 6)."""
    gate_closed = GateClosed(bond.boot, GateKind(settings.agent.gate)) if settings.agent.gate != "none" else None
    if bond.gate is Gate.CLOSED and gate_closed is not None and bond.stored is None:
        return Store(gate_closed, node)
    if bond.gate is not Gate.CLOSED and node.agent is not None and bond.stored is None:
        return Store(Withdrawn(bond.boot), node)  # another boot's promise must not cover this one's workloads
    if node.freeing is not None:
        return Wait(FREEING)
    if memory.condemned_id is not None:
        return Wait(f"condemned under id {memory.condemned_id}")
    trouble = _enrolment_trouble(ground)
    if trouble:
        return Wait(trouble)
    return _unproven(bond.look.ended_at if bond.look is not None else math.inf, memory)


def _unproven(looked_at: float, memory: Memory) -> Step | None:
    """The proof must begin after the look, or a condemnation that came and went between the two would be missed."""
    proof, last = memory.proof, memory.last_read
    if proof is not None and proof.source is Source.OWN_READ and proof.at >= looked_at:
        return None
    if memory.reading_since is not None:
        return Wait("its machine is being read")
    if last is not None and last.began_at >= looked_at:  # it failed; the next one comes by itself
        return Wait(last.failure)
    return ReadMachine()


def _enrolment_trouble(ground: Ground) -> str:
    if ground.electorate is None:
        return ground.roster_trouble or "there is no roster yet"
    member = ground.electorate.member(ground.node)
    if member is None:
        return f"Node {ground.node} is not in the roster; enrol it with: pp-leader enroll {ground.node}"
    if ground.machine is None:
        return "its machine has not been read yet"
    if member.uid != ground.machine.uid or (member.machine or member.name) != ground.machine.subject:
        return (
            f"the roster names machine {member.machine or member.name} (uid {member.uid}) for this node, "
            f"and its own machine is {ground.machine.subject} (uid {ground.machine.uid})"
        )
    return ""


def _keep(settings: Settings, ground: Ground, bond: Bond, node: Node, watchdog: WatchdogArmed, now: float) -> Step:
    """Rule 5: what is to be promised is stored before it is relied on; only then does the gate open (rule 6)."""
    trouble = _enrolment_trouble(ground)
    current = bond.stored if isinstance(bond.stored, Armed) else None
    if trouble and current is None:
        return Wait(trouble)
    wanted = (
        current
        if trouble or ground.electorate is None or ground.machine is None
        else Armed(
            boot=bond.boot,
            self_timeout_seconds=settings.agent.self_timeout_seconds,
            watchdog_timeout_seconds=watchdog.timeout_seconds,
            watchdog=watchdog.kind,
            gate=GateKind(settings.agent.gate),
            machine_uid=_promised_uid(bond) or ground.machine.uid,
            roster_version=ground.electorate.version,
        )
    )
    if wanted is not None and (bond.stored != wanted or bond.pending):
        return Store(wanted, node)
    if bond.gate is Gate.CLOSED:
        return OpenGate("its promise is stored")
    if bond.look is not None and now >= bond.look.ended_at + LOOK_INTERVAL_SECONDS:
        return LookAtNode()
    return Wait(trouble)
