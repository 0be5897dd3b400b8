"""The look around before a flow begins: whether it is the network of the leader that is ill, and not the node.

Agents are asked whether they reach the node's host. A leader that fewer than half of them answer to is cut off itself.
A host that others reach is up, whatever its Node says. Where no agents run, nobody can be asked.

An agent takes 1.6 s to say that a host is silent. So that a flow need not wait for that, the leader may look around
ahead of it, while a condition's time runs out. Such a look counts no longer than any other.
"""

from __future__ import annotations

from pp_hostd.frozen import replace
from pp_hostd.leader.facts.nodes import READY
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Stage, Term
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.node_fence.configuration import ConfigurationsSeen
from pp_hostd.leader.remedies.node_fence.flow import Flow
from pp_hostd.leader.remedies.node_fence.memory import FenceMemory
from pp_hostd.leader.remedies.node_fence.steps import LookAround, ProbeStorage
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Member

MOST_ASKED = 20
"""So many agents are asked."""
AGAIN_SECONDS = 10.0
"""Between two looks around."""


def ahead_key(node: str) -> str:
    """Under which a look around is remembered that begins before there is a NodeFence."""
    return f"looking around {node}"


def with_look_ahead(part: FenceMemory, term: Term, node: str) -> FenceMemory:
    """The same, with the look around that was made ahead of the flow, if that is the newest."""
    ahead = term.memories.get(ahead_key(node), NodeMemory()).part(FenceMemory).survey
    if ahead is None or (part.survey is not None and part.survey.at >= ahead.at):
        return part
    return replace(part, survey=ahead)


def look_around(view: View) -> NextAction | None:
    """The look around, if it is due by this memory. None if it is not, or if nobody can be asked."""
    host, others = _members(view)
    last = view.memory.part(FenceMemory).survey
    if not others or (last is not None and view.now < last.at + AGAIN_SECONDS):
        return None
    told = f"asking {len(others)} agents whether they reach its host"
    return view.does(Stage.HELD, LookAround(view.name, host, others), told)


def surveyed(flow: Flow) -> NextAction | None:
    """The look around, or why the flow must not begin by what it has found; None if it may."""
    view, found = flow.view, flow.part.survey
    looks = look_around(view)
    if looks is not None or found is None or view.now >= found.at + AGAIN_SECONDS:
        return looks
    due_at = found.at + AGAIN_SECONDS
    if 2 * found.answered < found.asked:
        told = f"only {found.answered} of {found.asked} agents answer this leader: its own network is ill"
        return view.waits(Stage.HELD, told, due_at)
    if found.reached and _is_unknown(flow):
        told = f"{found.reached} agents reach its host, though its Node is Unknown: the host is up, and is not fenced"
        return view.waits(Stage.HELD, told, due_at)
    return None


def probed(flow: Flow) -> NextAction | None:
    """The look whether the storage answers, or that it does not; None if it does, or if nobody wants to know."""
    view, address, last = flow.view, flow.config.storage_probe, flow.part.probed
    if address is None:
        return None
    where = f"the storage at {address[0]}, port {address[1]}"
    if last is None or view.now >= last.at + AGAIN_SECONDS:
        return view.does(Stage.HELD, ProbeStorage(*address), f"trying {where}")
    told = f"{where} does not answer this leader: the trouble is rather there, and no node is fenced for it"
    return None if last.answers else view.waits(Stage.HELD, told, last.at + AGAIN_SECONDS)


def _members(view: View) -> tuple[Member | None, tuple[Member, ...]]:
    """The host if an agent runs on it, and the agents that are asked: those of the newest roster."""
    found = view.observed.roster
    roster = None if found is None or isinstance(found.roster, Unreadable) else found.roster
    newest = None if roster is None else roster.as_of(roster.version)
    if not isinstance(newest, Electorate):
        return None, ()
    names = [name for name in newest.names if name not in (view.name, view.term.own_node)]
    others = (newest.member(name) for name in names[:: max(1, len(names) // MOST_ASKED)][:MOST_ASKED])
    return newest.member(view.name), tuple(each for each in others if each is not None)


def _is_unknown(flow: Flow) -> bool:
    facts = flow.view.observed.part(ConfigurationsSeen).nodes.get(flow.view.name)
    ready = None if facts is None else facts.condition(READY)
    return ready is not None and ready.status == "Unknown"
