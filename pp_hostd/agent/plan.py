"""The next step about the promise, the watchdog and the gate (rules 5 and 6). Pure and total.

One step at a time: each is repeated until its outcome is known, and none depends on a step that may not have happened.
"""

from __future__ import annotations

import enum
import math

from pp_hostd.agent.shutdown import POWER_OFF_SECONDS, kept_promise
from pp_hostd.frozen import replace
from pp_hostd.model.boot_commitments import BootCommitments, Gate, WatchdogArmed
from pp_hostd.model.evidence import HostContext
from pp_hostd.model.gate_kind import gate_kind
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


class Reopening(enum.Enum):
    """The last daemon armed the watchdog, and nobody kept its descriptor: the next daemon takes one of these ways."""

    FORGET = enum.auto()
    """That daemon withdrew its promise, and perhaps disarmed, just before it ended."""
    OPEN = enum.auto()
    LEAVE = enum.auto()
    """Opening the device feeds it, and there is no proof: it fires in time."""


LOOK_INTERVAL_SECONDS = 60.0
"""How often a host makes sure that its Node still says what it has stored there."""
FREEING = "the leader is freeing its workloads"  # rule 12: the gate honours the marker

CONDEMNED_NODE = "its Node is being remediated, which maintenance does not end"


def plan(
    settings: Settings, host_context: HostContext, commitments: BootCommitments, memory: Memory, now: float
) -> Step:
    """The next step, or what is waited for."""
    if memory.decision is not None and settings.agent.mode != "dry-run":
        return Wait("")  # rule 7: nothing more is promised, and nothing withdrawn
    belied = _belied(commitments)
    if belied is not None:
        return Store(Withdrawn(commitments.boot, host_context.maintenance), belied)
    kept = kept_promise(host_context, commitments)
    if kept is not None:
        return _power_off(kept, commitments, now)
    unarmed_because, opens = _not_to_be_armed(settings, host_context, commitments, memory)
    if unarmed_because:
        step = _leave(settings, host_context, commitments, memory, unarmed_because, opens, now)
        return LookAtNode() if isinstance(step, Wait) and _is_look_due(host_context, commitments, now) else step
    return _protect(settings, host_context, commitments, memory, now)


def next_reopening(settings: Settings, commitments: BootCommitments, memory: Memory, now: float) -> Reopening:
    """Returns the way to take with an armed watchdog that has no descriptor any more."""
    if not commitments.bound_uid:
        return Reopening.FORGET
    timeouts = [settings.agent.self_timeout_seconds, *(each.self_timeout_seconds for each in commitments.promises)]
    proven = memory.proof is not None and now < memory.proof.at + min(timeouts)
    return Reopening.OPEN if proven and memory.decision is None else Reopening.LEAVE


def _protect(
    settings: Settings, host_context: HostContext, commitments: BootCommitments, memory: Memory, now: float
) -> Step:
    """Towards a stored promise and an open gate, one step at a time."""
    if memory.failed_reads and _nobody_relies_on_it(commitments) and now >= commitments.not_before_at:
        return Disarm()  # rule 6: a boot into isolation stays idle and is not reset
    if commitments.look is None:
        return LookAtNode() if now >= commitments.not_before_at else Wait(commitments.trouble)
    if commitments.look.node is None:
        return _without_node(host_context, commitments, now)
    if (
        memory.missing is not None
        and commitments.look.began_at < memory.missing.ended_at
        and now >= commitments.not_before_at
    ):
        return LookAtNode()  # rule 1: a missing machine, and then the Node
    if (
        commitments.watchdog is None
        and commitments.promises
        and commitments.gate is not Gate.CLOSED
        and now >= commitments.not_before_at
    ):
        return Arm()  # rule 5: what stands on the Node binds, whoever put it back there (an etcd restore does)
    if commitments.watchdog is None or not commitments.promises:
        if now >= commitments.look.ended_at + settings.api.read_interval_seconds:
            return LookAtNode()
        obstacle = _obstacle(settings, host_context, commitments, commitments.look.node, memory)
        if obstacle is not None:
            return obstacle
        if commitments.watchdog is None:
            return Arm()
    return _keep(settings, host_context, commitments, commitments.look.node, commitments.watchdog, now)


def _power_off(promise: Armed, commitments: BootCommitments, now: float) -> Step:
    """Rule 8: a host that powers off keeps its promise, so its workloads can be freed; but with a longer timeout of
    the watchdog, in which the rest can end."""
    reason = "the host powers off"
    lasting = replace(promise, watchdog_timeout_seconds=max(promise.watchdog_timeout_seconds, POWER_OFF_SECONDS))
    if promise == lasting and not commitments.pending:
        return Wait(reason)
    if commitments.look is None or commitments.look.node is None:
        return _look_again(commitments, reason, now)
    return Store(lasting, commitments.look.node)


def _belied(commitments: BootCommitments) -> Node | None:
    """Rule 6: the Node, if workloads may run in this boot and it says otherwise: that the gate is closed, or what
    another boot promised. That must not cover this boot's workloads."""
    node = None if commitments.look is None else commitments.look.node
    if node is None or commitments.gate is Gate.CLOSED or commitments.promises:
        return None
    says_otherwise = (
        node.agent is not None if commitments.stored is None else isinstance(commitments.stored, GateClosed)
    )
    return node if says_otherwise else None


def _nobody_relies_on_it(commitments: BootCommitments) -> bool:
    """Armed, and certainly nothing was promised yet."""
    return commitments.watchdog is not None and commitments.looked and not commitments.bound_uid


def _not_to_be_armed(
    settings: Settings, host_context: HostContext, commitments: BootCommitments, memory: Memory
) -> tuple[str, Opens]:
    """Why this host is not to be armed, and whether workloads may start all the same."""
    if host_context.stopping:
        return "the agent is stopping", Opens.NEVER
    if settings.agent.mode == "dry-run":
        return "a dry run arms nothing", Opens.AT_ONCE
    if host_context.maintenance is not None:
        order = host_context.maintenance
        return f"maintenance by {order.who} until {render_moment(order.until_wallclock)}: {order.why}", Opens.AT_ONCE
    if host_context.opened_by and commitments.gate is Gate.CLOSED:
        return f"{host_context.opened_by} opens the gate by hand", Opens.AT_ONCE
    if memory.machine_gone and not _is_touched(commitments):
        machine = host_context.member.machine if host_context.member is not None else ""
        return f"its machine {machine} is gone, and its Node untouched", Opens.AT_ONCE
    if host_context.electorate is not None and host_context.member is not None:
        return too_few(settings, host_context.electorate.n), Opens.WHEN_PROVEN
    if host_context.electorate is not None and commitments.watchdog is not None:
        return f"Node {host_context.node} is no longer in the roster", Opens.NEVER
    if host_context.electorate is not None and commitments.gate is Gate.CLOSED:
        # The leader lists no Node without an address, and a recreated one has none before its kubelet runs.
        return _enrolment_trouble(host_context), Opens.WHEN_PROVEN
    return "", Opens.NEVER


def too_few(settings: Settings, n: int) -> str:
    """Rule 6: why a cluster of n nodes arms none of them; empty if it arms them."""
    if n == 1:
        return "it is the only node, and nobody could take over its workloads"
    if n == 2 and not settings.agent.arm_pairs:
        return "of two nodes none is armed, unless agent.arm_pairs is true"
    return ""


def _is_touched(commitments: BootCommitments) -> bool:
    """Whether a leader has begun with the Node: it taints it before it condemns (rule 9)."""
    node = None if commitments.look is None else commitments.look.node
    return node is not None and (node.tainted or node.freeing is not None)


def _leave(
    settings: Settings,
    host_context: HostContext,
    commitments: BootCommitments,
    memory: Memory,
    reason: str,
    opens: Opens,
    now: float,
) -> Step:
    """Rule 5: withdraw, then disarm; what can't be withdrawn is kept. Maintenance lets no condemned host off."""
    maintained = host_context.maintenance is not None and not host_context.stopping
    if commitments.promises and maintained and commitments.look is not None and _is_touched(commitments):
        stale = now >= max(commitments.look.ended_at + settings.api.read_interval_seconds, commitments.not_before_at)
        return LookAtNode() if stale else Wait(f"{reason}; {CONDEMNED_NODE}")
    if commitments.look is None and (
        commitments.promises or (commitments.watchdog is not None and not commitments.looked)
    ):
        return _look_again(commitments, reason, now)
    if commitments.promises and commitments.look is not None and commitments.look.node is not None:
        return Store(Withdrawn(commitments.boot, host_context.maintenance), commitments.look.node)
    if commitments.watchdog is not None:
        return Disarm() if now >= commitments.not_before_at else Wait(f"{reason}; {commitments.trouble}")
    if opens is Opens.WHEN_PROVEN and commitments.gate is Gate.CLOSED:
        obstacle = _unproven_start(settings, commitments, memory, now)
        if obstacle is not None:
            return obstacle
    return Wait(reason) if opens is Opens.NEVER else _let_start(settings, host_context, commitments, reason, now)


def _unproven_start(settings: Settings, commitments: BootCommitments, memory: Memory, now: float) -> Step | None:
    """Returns the step that must come before an unarmed boot starts workloads; None if none is found here. The agent
    stores "withdrawn" only after a read, begun after the look that the write depends on, has found the host not
    condemned; only then does the gate open."""
    if memory.condemned_id is not None:
        return Wait(f"condemned under id {memory.condemned_id}")
    if commitments.look is None or commitments.look.node is None or isinstance(commitments.stored, Withdrawn):
        return None
    if now >= commitments.look.ended_at + settings.api.read_interval_seconds:
        return LookAtNode()
    return _unproven(commitments.look.ended_at, memory)


def _look_again(commitments: BootCommitments, reason: str, now: float) -> Step:
    return LookAtNode() if now >= commitments.not_before_at else Wait(f"{reason}; {commitments.trouble}")


def _let_start(
    settings: Settings, host_context: HostContext, commitments: BootCommitments, reason: str, now: float
) -> Step:
    """Workloads run with nothing promised, so no record, of whichever boot, may say that they don't run or will die."""
    if commitments.look is None:
        return _look_again(commitments, reason, now)
    node, withdrawn = commitments.look.node, isinstance(commitments.stored, Withdrawn)
    waits = commitments.gate is Gate.CLOSED and not host_context.opened_by
    if waits and node is None:
        return _without_node(host_context, commitments, now)
    marked = host_context.maintenance is not None and _is_touched(commitments)
    if waits and node is not None and (marked or node.freeing is not None):
        stale = now >= commitments.look.ended_at + settings.api.read_interval_seconds
        return LookAtNode() if stale else Wait(FREEING if node.freeing is not None else CONDEMNED_NODE)
    dry_run = settings.agent.mode == "dry-run"  # leaves a Node alone that says nothing
    if node is not None and not withdrawn and not (dry_run and node.agent is None and not commitments.pending):
        return Store(Withdrawn(commitments.boot, host_context.maintenance), node)
    return _open_gate(commitments, reason, now) if commitments.gate is Gate.CLOSED else Wait(reason)


def _open_gate(commitments: BootCommitments, reason: str, now: float) -> Step:
    return Wait(commitments.trouble) if commitments.trouble and now < commitments.not_before_at else OpenGate(reason)


def _without_node(host_context: HostContext, commitments: BootCommitments, now: float) -> Step:
    """Rule 6: a leader that deletes a Node keeps a backup of it until the Node is there again. Without one, nobody but
    the kubelet creates the Node."""
    new = commitments.look is not None and not commitments.look.backup
    if new and commitments.gate is Gate.CLOSED:
        reason = f"Node {host_context.node} does not exist, and no leader has a backup of it"
        return _open_gate(commitments, reason, now)
    if now >= commitments.not_before_at:
        return LookAtNode()
    creator = "its kubelet registers it when it starts" if new else "the leader recreates it"
    return Wait(f"Node {host_context.node} does not exist; {creator}")


def _obstacle(
    settings: Settings, host_context: HostContext, commitments: BootCommitments, node: Node, memory: Memory
) -> Step | None:
    """Returns the step that must come before the first promise of this boot (rule 6); None if none."""
    kind = gate_kind(settings.agent.gate)
    unsaid = commitments.stored is None or isinstance(
        commitments.stored, Withdrawn
    )  # withdrawn before the kubelet was held
    if commitments.gate is Gate.CLOSED and kind is not GateKind.NONE and unsaid:
        return Store(GateClosed(commitments.boot, kind, node.boot), node)
    if node.freeing is not None:
        return Wait(FREEING)
    if memory.condemned_id is not None:
        return Wait(f"condemned under id {memory.condemned_id}")
    trouble = _enrolment_trouble(host_context)
    if trouble:
        return Wait(trouble)
    return _unproven(commitments.look.ended_at if commitments.look is not None else math.inf, memory)


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


def _enrolment_trouble(host_context: HostContext) -> str:
    if host_context.electorate is None:
        return host_context.roster_trouble or "there is no roster yet"
    member = host_context.member
    if member is None:
        return f"Node {host_context.node} is not in the roster; enrol it with: pp-leader enroll {host_context.node}"
    if host_context.machine is None:
        return "its machine has not been read yet"
    if member.uid != host_context.machine.uid or (member.machine or member.name) != host_context.machine.machine_key:
        return (
            f"the roster names machine {member.machine or member.name} (uid {member.uid}) for this node, "
            f"and its own machine is {host_context.machine.machine_key} (uid {host_context.machine.uid})"
        )
    return ""


def _keep(
    settings: Settings,
    host_context: HostContext,
    commitments: BootCommitments,
    node: Node,
    watchdog: WatchdogArmed,
    now: float,
) -> Step:
    """Rule 5: what is to be promised is stored before it is relied on; only then does the gate open (rule 6)."""
    trouble = _enrolment_trouble(host_context)
    current = commitments.stored if isinstance(commitments.stored, Armed) else None
    if trouble and current is None:
        return Wait(trouble)
    wanted = (
        current
        if trouble or host_context.electorate is None or host_context.machine is None
        else Armed(
            boot=commitments.boot,
            self_timeout_seconds=settings.agent.self_timeout_seconds,
            watchdog_timeout_seconds=watchdog.timeout_seconds,
            watchdog=watchdog.kind,
            # A gate that was not in the kubelet's way in this boot may not be there in the next one either.
            gate=GateKind.NONE if commitments.gate is Gate.ABSENT else gate_kind(settings.agent.gate),
            machine_uid=commitments.bound_uid or host_context.machine.uid,
            roster_version=host_context.electorate.version,
            reported_boot=node.boot if current is None else current.reported_boot,
        )
    )
    if wanted is not None and (commitments.stored != wanted or commitments.pending):
        return Store(wanted, node)
    if commitments.gate is Gate.CLOSED:
        return _open_gate(commitments, "its promise is stored", now)
    return LookAtNode() if _is_look_due(host_context, commitments, now) else Wait(trouble)


def _is_look_due(host_context: HostContext, commitments: BootCommitments, now: float) -> bool:
    """Rule 5: an etcd restore may have put a promise back that nobody keeps, or taken one away."""
    if commitments.look is None or host_context.stopping:
        return False
    return now >= max(commitments.look.ended_at + LOOK_INTERVAL_SECONDS, commitments.not_before_at)
