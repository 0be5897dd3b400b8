"""Which suspects the leader tries, and when it says of a host that it is unreachable.

Agents only suspect. The leader believes none of them: it tries the host itself, has others try it, and looks whether
its kubelet still renews its Lease. The leader then sets a condition of the Node, and a health check may request.
"""

from __future__ import annotations

from collections.abc import Iterator

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Stage, Term
from pp_hostd.leader.plan.view import Electorates, View
from pp_hostd.leader.requests.unreachable.seen import SuspicionsSeen
from pp_hostd.leader.requests.unreachable.steps import TryHost, Warn
from pp_hostd.leader.steps.nodes import Condition, SetCondition
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.condemnation import NotRequested, Requested
from pp_hostd.model.keys import UNREACHABLE
from pp_hostd.model.observed import NodeSeen, Observed
from pp_hostd.model.promise import promise_in
from pp_hostd.model.reachability import ASKED
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Member
from pp_hostd.model.settings import Settings

AGAIN_SECONDS = 2.0
"""Between two looks at a host that is silent."""
REACHED_SECONDS = 10.0
"""Between two looks at a host that was reached, and is suspected all the same."""
MOST_TRIED = 20
"""So many suspects are tried at once while too many hosts are silent."""
_GUARD = "silent hosts"


@frozen
class ReachMemory:
    """The last look at a suspect. `lease` is what its kubelet's Lease said then; empty if nobody has looked."""

    tried_at: float = float("-inf")
    silent: bool = False
    reached: bool = False
    lease: str | None = None
    heard: int = 0


@frozen
class GuardMemory:
    """Whether too many were silent at once, as people were told."""

    told: bool = False


def most_silent(n: int) -> int:
    """So many of n agents may be silent at once, before it is taken for something else than dead hosts: a quarter, and
    at least one."""
    return max(1, n // 4)


def unreachable(
    settings: Settings, observed: Observed, term: Term, now: float
) -> Iterator[tuple[NextAction | None, NodeMemory]]:
    """Yields the next look at each suspect, or the write of the condition that follows from the last one."""
    seen = observed.part(SuspicionsSeen)
    if not (seen.suspects or seen.unreachable):
        return
    electorates, electorate = Electorates(observed.roster), _newest(observed)
    if electorate is None:
        return
    suspects = {
        name: member
        for name in sorted({*seen.suspects, *(name for name, said in seen.unreachable.items() if said != "False")})
        for member in [electorate.member(name)]
        if member is not None and name != term.own_node and _is_armed(observed.nodes.get(name))
    }
    memories = {name: term.memories.get(f"reaching {name}", NodeMemory()) for name in suspects}
    reaches = {name: memory.part(ReachMemory) for name, memory in memories.items()}
    most, silent = most_silent(electorate.n), sum(not reach.reached for reach in reaches.values())
    too_many = silent > most
    next_tried = sorted(suspects, key=lambda name: reaches[name].tried_at)[:MOST_TRIED]
    for name, member in suspects.items():
        key, memory = f"reaching {name}", memories[name]
        view = View(settings, observed, electorates, term, memory, name, "", now)
        step, due_at, sentence = _next(view, member, electorate, too_many, name in next_tried)
        action = (
            view.waits(Stage.CHECKING, sentence, due_at) if step is None else view.does(Stage.CHECKING, step, sentence)
        )
        yield replace(action, of=key, quiet=True), memory
    for name in sorted(set(seen.unreachable).difference(suspects)):
        if seen.unreachable[name] != "False" and name in observed.nodes:
            key = f"reaching {name}"
            memory = term.memories.get(key, NodeMemory())
            view = View(settings, observed, electorates, term, memory, name, "", now)
            step = _told(observed.nodes[name], "False", "NotSuspected", "no agent suspects it, or it is not armed")
            yield replace(view.does(Stage.CHECKING, step, "nobody suspects it"), of=key, quiet=True), memory
    yield from _guarded(settings, observed, term, now, silent, most)


def _newest(observed: Observed) -> Electorate | None:
    roster = None if observed.roster is None else observed.roster.roster
    found = None if roster is None or isinstance(roster, Unreadable) else roster.as_of(roster.version)
    return None if isinstance(found, Unreadable) else found


def _is_armed(seen: NodeSeen | None) -> bool:
    """Whether its agent stands by a promise: a host that is in maintenance, reboots or was freed may be silent."""
    return seen is not None and promise_in(seen.node.agent) is not None and not seen.away


def _next(
    view: View, member: Member, electorate: Electorate, too_many: bool, may_try: bool
) -> tuple[LeaderStep | None, float | None, str]:
    reach, seen = view.memory.part(ReachMemory), view.seen
    assert seen is not None
    said = view.observed.part(SuspicionsSeen).unreachable.get(view.name, "")
    if _is_worked_on(view, seen):
        return None, None, "the leader works on it already"
    if too_many and said == "True":
        why = "too many hosts are silent at once: perhaps it is the network"
        return _told(seen, "Unknown", "TooManySilent", why), None, why
    again_at = reach.tried_at + (REACHED_SECONDS if reach.reached else AGAIN_SECONDS)
    if too_many and not may_try:
        return None, view.now + AGAIN_SECONDS, "others are tried first"
    if view.now >= again_at:
        return TryHost(member, _others(electorate, view)), None, "checking whether it is silent"
    if too_many and not reach.reached:
        return None, again_at, "too many hosts are silent at once"
    if reach.silent and said != "True":
        by = ", ".join(sorted(view.observed.part(SuspicionsSeen).suspects.get(view.name, ()))[:ASKED])
        why = (
            f"suspected by {by or 'agents before'}; the leader can't reach it, nor can {reach.heard} others that it "
            "has asked, and its kubelet renews no Lease"
        )
        return _told(seen, "True", "Silent", why), None, why
    if not reach.silent and said in ("True", "Unknown"):
        return _told(seen, "False", "Reached", "the leader or another host reaches it"), None, "it is reached again"
    return None, again_at, "it is silent" if reach.silent else "it is reached"


def _is_worked_on(view: View, seen: NodeSeen) -> bool:
    key = seen.machine_key
    found = None if isinstance(key, Unreadable) else view.observed.machines.get(key)
    condemned = found is not None and not isinstance(found.machine.condemnation, (NotRequested, Requested))
    return condemned or seen.marked or view.backup_seen is not None


def _told(seen: NodeSeen, status: str, reason: str, message: str) -> SetCondition:
    condition = Condition(UNREACHABLE, status, reason, message)
    return SetCondition(seen.node.name, seen.node.uid, seen.node.resource_version, condition)


def _others(electorate: Electorate, view: View) -> tuple[Member, ...]:
    """A few others, at random: never the suspect itself, nor the host of this leader."""
    names = [name for name in electorate.names if name not in (view.name, view.term.own_node)]
    if not names:
        return ()
    first, apart = view.term.draw.dice % len(names), max(1, len(names) // ASKED)
    chosen = dict.fromkeys(names[(first + number * apart) % len(names)] for number in range(min(ASKED, len(names))))
    return tuple(member for member in map(electorate.member, chosen) if member is not None)


def _guarded(
    settings: Settings, observed: Observed, term: Term, now: float, silent: int, most: int
) -> Iterator[tuple[NextAction, NodeMemory]]:
    """An Event reports it once, whenever too many are silent."""
    memory = term.memories.get(_GUARD, NodeMemory())
    too_many = silent > most
    view = View(settings, observed, Electorates(observed.roster), term, memory, "", "", now)
    sentence = (
        f"agents suspect {silent} hosts that nobody has reached since, and at most {most} may be silent at once: "
        "nobody is remediated for that, since the network may have failed instead"
    )
    idle = NextAction("", "", Stage.CHECKING, "counting", of=_GUARD, quiet=True)
    told = replace(view.does(Stage.CHECKING, Warn(sentence), sentence), of=_GUARD, quiet=True)
    warns = too_many and not memory.part(GuardMemory).told
    yield told if warns else idle, memory.with_part(GuardMemory(too_many))
