"""What to do next about the promise, the watchdog and the gate (rules 5 and 6). Pure and total.

One step at a time: each is repeated until its outcome is known, and none depends on a step that may not have happened.
"""

from __future__ import annotations

import enum
import math
from dataclasses import replace

from pp_hostd.agent.shutdown import POWER_OFF_SECONDS, kept_promise
from pp_hostd.model.bond import Bond, Gate, WatchdogArmed
from pp_hostd.model.gate_kind import gate_kind
from pp_hostd.model.ground import Ground
from pp_hostd.model.memory import Memory, Source
from pp_hostd.model.moment import render_moment
from pp_hostd.model.node import Node
from pp_hostd.model.promise import Armed, GateClosed, GateKind, Withdrawn
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Arm, Disarm, LookAtNode, OpenGate, ReadMachine, Step, Store, Wait


class Opens(enum.Enum):
    """When a host that is not to be armed may start workloads."""

    NEVER = enum.auto()
    AT_ONCE = enum.auto()
    WHEN_PROVEN = enum.auto()
    """After a read that found it not condemned: nobody has decided for this boot that it may go unprotected."""


LOOK_INTERVAL_SECONDS = 60.0
"""How often an armed host makes sure that its promise still stands on its Node."""
FREEING = "the leader is freeing its workloads"  # rule 12: the gate honours the marker

CONDEMNED_NODE = "its Node is being remediated, which maintenance does not end"


def plan(settings: Settings, ground: Ground, bond: Bond, memory: Memory, now: float) -> Step:
    """The next step, or what is waited for."""
    if memory.decision is not None and settings.agent.mode != "dry-run":
        return Wait("")  # rule 7: nothing more is promised, and nothing withdrawn
    belied = _belied(bond)
    if belied is not None:
        return Store(Withdrawn(bond.boot, ground.maintenance), belied)
    kept = kept_promise(ground, bond)
    if kept is not None:
        return _power_off(kept, bond, now)
    unarmed_because, opens = _not_to_be_armed(settings, ground, bond, memory)
    if unarmed_because:
        return _leave(settings, ground, bond, memory, unarmed_because, opens, now)
    return _protect(settings, ground, bond, memory, now)


def _protect(settings: Settings, ground: Ground, bond: Bond, memory: Memory, now: float) -> Step:
    """Towards a stored promise and an open gate, one step at a time."""
    if memory.failed_reads and _nobody_relies_on_it(bond) and now >= bond.not_before_at:
        return Disarm()  # rule 6: a boot into isolation stays idle and is not reset
    if bond.look is None:
        return LookAtNode() if now >= bond.not_before_at else Wait(bond.trouble)
    if bond.look.node is None:
        return _without_node(ground, bond, now)
    if memory.missing is not None and bond.look.began_at < memory.missing.ended_at and now >= bond.not_before_at:
        return LookAtNode()  # rule 1: a missing machine, and then the Node
    if bond.watchdog is None and bond.promises and bond.gate is not Gate.CLOSED and now >= bond.not_before_at:
        return Arm()  # rule 5: what stands on the Node binds, whoever put it back there (an etcd restore does)
    if bond.watchdog is None or not bond.promises:
        if now >= bond.look.ended_at + settings.api.read_interval_seconds:
            return LookAtNode()
        obstacle = _obstacle(settings, ground, bond, bond.look.node, memory)
        if obstacle is not None:
            return obstacle
        if bond.watchdog is None:
            return Arm()
    return _keep(settings, ground, bond, bond.look.node, bond.watchdog, now)


def _power_off(promise: Armed, bond: Bond, now: float) -> Step:
    """Rule 8: a host that powers off keeps its promise, so its workloads can be freed; but with a longer timeout of
    the watchdog, in which the rest can end."""
    reason = "the host powers off"
    lasting = replace(promise, watchdog_timeout_seconds=max(promise.watchdog_timeout_seconds, POWER_OFF_SECONDS))
    if promise == lasting and not bond.pending:
        return Wait(reason)
    if bond.look is None or bond.look.node is None:
        return _look_again(bond, reason, now)
    return Store(lasting, bond.look.node)


def _belied(bond: Bond) -> Node | None:
    """Rule 6: the Node, if workloads may run in this boot and it says otherwise: that the gate is closed, or what
    another boot promised. That must not cover this boot's workloads."""
    node = None if bond.look is None else bond.look.node
    if node is None or bond.gate is Gate.CLOSED or bond.promises:
        return None
    says_otherwise = node.agent is not None if bond.stored is None else isinstance(bond.stored, GateClosed)
    return node if says_otherwise else None


def _nobody_relies_on_it(bond: Bond) -> bool:
    """Armed, and certainly nothing was promised yet."""
    return bond.watchdog is not None and bond.looked and not bond.bound_uid


def _not_to_be_armed(settings: Settings, ground: Ground, bond: Bond, memory: Memory) -> tuple[str, Opens]:
    """Why this host is not to be armed, and whether workloads may start all the same."""
    if ground.stopping:
        return "the agent is stopping", Opens.NEVER
    if settings.agent.mode == "dry-run":
        return "a dry run arms nothing", Opens.AT_ONCE
    if ground.maintenance is not None:
        order = ground.maintenance
        return f"maintenance by {order.who} until {render_moment(order.until_wallclock)}: {order.why}", Opens.AT_ONCE
    if ground.opened_by and bond.gate is Gate.CLOSED:
        return f"{ground.opened_by} opens the gate by hand", Opens.AT_ONCE
    if memory.machine_gone and not _is_touched(bond):
        machine = ground.member.machine if ground.member is not None else ""
        return f"its machine {machine} is gone, and its Node untouched", Opens.AT_ONCE
    if ground.electorate is not None and ground.member is not None:
        return _too_few(settings, ground.electorate.n), Opens.WHEN_PROVEN
    if ground.electorate is not None and bond.watchdog is not None:
        return f"Node {ground.node} is no longer in the roster", Opens.NEVER
    return "", Opens.NEVER


def _too_few(settings: Settings, n: int) -> str:
    """Rule 6: why a cluster of n nodes arms none of them; empty if it arms them."""
    if n == 1:
        return "it is the only node, and nobody could take over its workloads"
    if n == 2 and not settings.agent.arm_pairs:
        return "of two nodes none is armed, unless agent.arm_pairs is true"
    return ""


def _is_touched(bond: Bond) -> bool:
    """Whether a leader has begun with the Node: it taints it before it condemns (rule 9)."""
    node = None if bond.look is None else bond.look.node
    return node is not None and (node.tainted or node.freeing is not None)


def _leave(
    settings: Settings, ground: Ground, bond: Bond, memory: Memory, reason: str, opens: Opens, now: float
) -> Step:
    """Rule 5: withdraw, then disarm; what can't be withdrawn is kept. Maintenance lets no condemned host off."""
    maintained = ground.maintenance is not None and not ground.stopping
    if bond.promises and maintained and bond.look is not None and _is_touched(bond):
        stale = now >= max(bond.look.ended_at + settings.api.read_interval_seconds, bond.not_before_at)
        return LookAtNode() if stale else Wait(f"{reason}; {CONDEMNED_NODE}")
    if bond.look is None and (bond.promises or (bond.watchdog is not None and not bond.looked)):
        return _look_again(bond, reason, now)
    if bond.promises and bond.look is not None and bond.look.node is not None:
        return Store(Withdrawn(bond.boot, ground.maintenance), bond.look.node)
    if bond.watchdog is not None:
        return Disarm() if now >= bond.not_before_at else Wait(f"{reason}; {bond.trouble}")
    if opens is Opens.WHEN_PROVEN and bond.gate is Gate.CLOSED:
        obstacle = _unproven_start(settings, bond, memory, now)
        if obstacle is not None:
            return obstacle
    return Wait(reason) if opens is Opens.NEVER else _let_start(settings, ground, bond, reason, now)


def _unproven_start(settings: Settings, bond: Bond, memory: Memory, now: float) -> Step | None:
    """What stands between an unarmed boot and its workloads: "withdrawn" is stored only after a read, begun after the
    look that the write depends on, has found the host not condemned; and only then does the gate open."""
    if memory.condemned_id is not None:
        return Wait(f"condemned under id {memory.condemned_id}")
    if bond.look is None or bond.look.node is None or isinstance(bond.stored, Withdrawn):
        return None
    if now >= bond.look.ended_at + settings.api.read_interval_seconds:
        return LookAtNode()
    return _unproven(bond.look.ended_at, memory)


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
    marked = ground.maintenance is not None and _is_touched(bond)
    if waits and node is not None and (marked or node.freeing is not None):
        stale = now >= bond.look.ended_at + settings.api.read_interval_seconds
        return LookAtNode() if stale else Wait(FREEING if node.freeing is not None else CONDEMNED_NODE)
    dry_run = settings.agent.mode == "dry-run"  # leaves a Node alone that says nothing
    if node is not None and not withdrawn and not (dry_run and node.agent is None and not bond.pending):
        return Store(Withdrawn(bond.boot, ground.maintenance), node)
    return _open_gate(bond, reason, now) if bond.gate is Gate.CLOSED else Wait(reason)


def _open_gate(bond: Bond, reason: str, now: float) -> Step:
    return Wait(bond.trouble) if bond.trouble and now < bond.not_before_at else OpenGate(reason)


def _without_node(ground: Ground, bond: Bond, now: float) -> Step:
    """Rule 6: a host that was never in the cluster passes; for any other, whoever deleted the Node recreates it."""
    new = bond.look is not None and not bond.look.backup and not ground.enrolled_before
    if new and bond.gate is Gate.CLOSED:
        return _open_gate(bond, "this host was never in the cluster", now)
    if now >= bond.not_before_at:
        return LookAtNode()
    return Wait(
        f"Node {ground.node} does not exist; " + ("the kubelet creates it" if new else "the leader recreates it")
    )


def _obstacle(settings: Settings, ground: Ground, bond: Bond, node: Node, memory: Memory) -> Step | None:
    """What stands between this boot and its first promise (rule 6)."""
    kind = gate_kind(settings.agent.gate)
    unsaid = bond.stored is None or isinstance(bond.stored, Withdrawn)  # withdrawn before the kubelet was held
    if bond.gate is Gate.CLOSED and kind is not GateKind.NONE and unsaid:
        return Store(GateClosed(bond.boot, kind, node.boot), node)
    if node.freeing is not None:
        return Wait(FREEING)
    if memory.condemned_id is not None:
        return Wait(f"condemned under id {memory.condemned_id}")
    trouble = _enrolment_trouble(ground)
    if trouble:
        return Wait(trouble)
    return _unproven(bond.look.ended_at if bond.look is not None else math.inf, memory)


def _unproven(looked_at: float, memory: Memory) -> Step | None:
    """The proof must begin after the look, or a condemnation that came and went between the two would be missed; and
    since a failed read disarms whoever has promised nothing, none may have failed after it."""
    proof, last = memory.proof, memory.last_read
    proven = proof is not None and proof.source is Source.OWN_READ and proof.at >= looked_at
    if proven and not memory.failed_reads:
        return None
    if memory.reading_since is not None:
        return Wait("its machine is being read")
    if last is not None and last.began_at >= looked_at:  # it failed; the next one comes by itself
        return Wait(last.failure)
    return ReadMachine()


def _enrolment_trouble(ground: Ground) -> str:
    if ground.electorate is None:
        return ground.roster_trouble or "there is no roster yet"
    member = ground.member
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
            # What was not in the kubelet's way in this boot may not be in the next one either.
            gate=GateKind.NONE if bond.gate is Gate.ABSENT else gate_kind(settings.agent.gate),
            machine_uid=bond.bound_uid or ground.machine.uid,
            roster_version=ground.electorate.version,
            reported_boot=node.boot if current is None else current.reported_boot,
        )
    )
    if wanted is not None and (bond.stored != wanted or bond.pending):
        return Store(wanted, node)
    if bond.gate is Gate.CLOSED:
        return _open_gate(bond, "its promise is stored", now)
    if bond.look is not None and now >= bond.look.ended_at + LOOK_INTERVAL_SECONDS:
        return LookAtNode()
    return Wait(trouble)
