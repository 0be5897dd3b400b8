"""The actions of NodeRemedyConfigurations: NodeFences for Nodes that have reached a threshold, and the status.

A threshold only begins a flow. All certainty, and the limits of flows that run, are those of the remedy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.facts.ages import Ages, Sightings
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Stage, Term
from pp_hostd.leader.plan.valves import in_maintenance, most_of, paused
from pp_hostd.leader.plan.view import Electorates, View
from pp_hostd.leader.remedies.node_fence.configuration import (
    FENCING_ALLOWED,
    OVERLAPPING,
    Configuration,
    ConfigurationsSeen,
    ConfigurationStatus,
    RemedyRules,
)
from pp_hostd.leader.remedies.node_fence.fence import FENCE
from pp_hostd.leader.remedies.node_fence.flow import at_work
from pp_hostd.leader.remedies.node_fence.seen import FencesSeen
from pp_hostd.leader.remedies.node_fence.survey import ahead_key, look_around
from pp_hostd.leader.requests.thresholds.judge import NOBODY, Judgement, Summary, judged
from pp_hostd.leader.requests.thresholds.steps import CreateFence, SetStatus
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings

LOOK_AGAIN_SECONDS = 30.0
"""Between two attempts to create the same NodeFence, while no watch shows one."""
AHEAD_SECONDS = 4.0
"""So long before a Node reaches its threshold the leader looks around: longer than the look takes."""
STATUS_SECONDS = 5.0
"""Between two writes of a status at least."""
TOO_MANY = "TooManyNotResponding"
_ALL = "thresholds"
_NOTICES = {"Allowed": FENCING_ALLOWED, "None": "NotOverlapping"}


@frozen
class ThresholdMemory:
    """The last judgement of this term, the rules that it is by, and when the next one is due."""

    judgement: Judgement = Judgement()
    rules: Mapping[str, RemedyRules] = field(default_factory=dict)
    sightings: Sightings = field(default_factory=dict)
    changes: int = -1
    due_at: float = -math.inf


@frozen
class Paced:
    """When this was last done."""

    at: float = -math.inf


def thresholds(
    settings: Settings, observed: Observed, term: Term, now: float
) -> Iterator[tuple[NextAction | None, NodeMemory]]:
    """Yields all actions of all configurations. They are told by Events and by the status of configurations alone."""
    seen = observed.part(ConfigurationsSeen)
    if not seen.configurations:
        return
    memory = term.memories.get(_ALL, NodeMemory())
    known = remembered(memory.part(ThresholdMemory), seen, now, term.draw.wallclock_seconds)
    electorates = Electorates(observed.roster)

    def view_of(key: str, node: str = "") -> View:
        of_key = term.memories.get(key, NodeMemory())
        return View(settings, observed, electorates, term, of_key, node, _machine_of(node, observed), now)

    storm = told_storm(known.judgement, observed)
    for node in () if storm else known.judgement.matching:
        key = f"{FENCE.called} for {node}"
        step = _fence(view_of(key, node), seen, known.judgement)
        if step is not None:
            yield _paced(view_of(key, node), key, step, LOOK_AGAIN_SECONDS, str(step.threshold))
    for node, reached_at in ({} if storm else _next_to_be_fenced(known.judgement, observed)).items():
        view = view_of(ahead_key(node), node)
        if not why_not(view, seen, known.judgement.selecting(node)):
            yield _looks_ahead(view, reached_at), view.memory
    for name, configuration in sorted(seen.configurations.items()):
        summary = known.judgement.summaries.get(name, NOBODY)
        status, view = summed_up(configuration, summary, storm), view_of(configuration.key)
        if status != configuration.status:
            written = _status_written(configuration, status, known.judgement)
            yield _paced(view, configuration.key, written, STATUS_SECONDS, "writing its status")
        else:  # whose memory keeps the pace
            yield (
                NextAction("", "", Stage.REMEDIATING, "its status is true", of=configuration.key, quiet=True),
                view.memory,
            )
    due_at = None if known.due_at == math.inf else known.due_at
    yield NextAction("", "", Stage.REMEDIATING, "judging", due_at=due_at, of=_ALL, quiet=True), memory.with_part(known)


def remembered(
    known: ThresholdMemory, seen: ConfigurationsSeen, now: float, wallclock_seconds: float
) -> ThresholdMemory:
    """Judges again if something has changed, or time has passed that matters."""
    if known.changes == seen.changes and now < known.due_at:
        return known
    every = sorted(seen.configurations.items())
    rules = {name: each.rules for name, each in every if isinstance(each.rules, RemedyRules)}
    ages = Ages(known.sightings, now, wallclock_seconds)
    before = known.judgement if known.rules == rules else Judgement()
    judgement = judged(rules, seen.nodes, before, ages)
    return ThresholdMemory(judgement, rules, ages.seen, seen.changes, judgement.due_at)


def told_storm(judgement: Judgement, observed: Observed) -> str:
    """Why nobody is fenced now, if too many Nodes have reached a threshold at once: then the trouble is rather that of
    something else. Empty if not."""
    share = observed.part(FencesSeen).config_maps.numbers.max_non_responsive
    nodes = len(observed.part(ConfigurationsSeen).nodes)
    count, most = len(judgement.matching), most_of(share, nodes, 1)
    if count <= most:
        return ""
    return f"{count} of {nodes} Nodes have reached a threshold, and at most {most} may at once: no flow begins"


def _next_to_be_fenced(judgement: Judgement, observed: Observed) -> dict[str, float]:
    """The Nodes that are fenced next, if nothing changes, and when each reaches its threshold (-inf: it has). No more
    than may begin."""
    part = observed.part(FencesSeen)
    free = part.config_maps.numbers.max_at_once - sum(map(at_work, part.fences.values()))
    due = {**judgement.awaited, **dict.fromkeys(judgement.matching, -math.inf)}
    waiting = sorted((each for each in due if each not in part.fences), key=lambda name: (due[name], name))
    return {name: due[name] for name in waiting[: max(0, free)]}


def _looks_ahead(view: View, due_at: float) -> NextAction:
    """The look around before that time, so that the flow need not wait for it. It is remembered until then."""
    told, begins_at = "asking agents about it before it reaches its threshold", due_at - AHEAD_SECONDS
    looks = look_around(view) if begins_at <= view.now < due_at else None
    waits_until_at = begins_at if view.now < begins_at else None
    looks = looks or NextAction(view.name, "", Stage.REMEDIATING, told, due_at=waits_until_at)
    return replace(looks, of=ahead_key(view.name), quiet=True)


def _fence(view: View, seen: ConfigurationsSeen, judgement: Judgement) -> CreateFence | None:
    node, selecting = view.name, judgement.selecting(view.name)
    if node in view.observed.part(FencesSeen).fences or why_not(view, seen, selecting):
        return None
    return CreateFence(seen.configurations[selecting[0]], node, seen.nodes[node].uid, judgement.matching[node])


def why_not(view: View, seen: ConfigurationsSeen, selecting: tuple[str, ...]) -> str:
    """Why this Node, which has reached a threshold, is not fenced now; empty if it is. Storms are another matter."""
    found = view.seen
    if len(selecting) > 1:
        return told_twice(view.name, selecting)
    configuration = seen.configurations[selecting[0]]
    if configuration.paused:
        return f"{configuration.key} is paused by {configuration.paused}"
    if found is None:
        return "the leader can't read its Node"
    if seen.nodes[view.name].deleting:
        return "its Node is being deleted"
    order = in_maintenance(view)
    if order:
        return order
    if found.marked or view.backup_seen is not None or _is_requested(view):
        return "another remedy has it"
    return paused(view)


def told_twice(node: str, selecting: tuple[str, ...]) -> str:
    kinds = " and ".join(selecting)
    return f"the NodeRemedyConfigurations {kinds} select Node {node}: none of them has it fenced until one alone does"


def _is_requested(view: View) -> bool:
    """Whether a remediation is requested or under way, of its machine or of one that names the Node."""
    seen = (view.observed.machines.get(key) for key in view.observed.requests)
    machines = (each.machine for each in seen if each is not None)
    own = (each for each in machines if view.name == each.node or view.machine_key == each.machine_key)
    return any(not isinstance(each.condemnation, NotRequested) for each in own)


def _machine_of(node: str, observed: Observed) -> str:
    key = observed.nodes[node].machine_key if node in observed.nodes else ""
    return key if isinstance(key, str) else ""


def summed_up(configuration: Configuration, summary: Summary, storm: str) -> ConfigurationStatus:
    rules = configuration.rules
    if isinstance(rules, Unreadable):
        told = FENCING_ALLOWED, "False", "Unreadable", f"{rules}. Correct it: until then it has nobody fenced"
    elif configuration.paused:
        told = FENCING_ALLOWED, "False", "Paused", f"it is paused by {configuration.paused}"
    elif storm and summary.matching:
        told = FENCING_ALLOWED, "False", TOO_MANY, storm
    else:
        told = FENCING_ALLOWED, "True", "Allowed", "Nodes that reach a threshold are fenced"
    overlap = OVERLAPPING, "False", "None", "no other configuration selects the same Nodes"
    if summary.others:
        nodes = ", ".join(summary.overlapping[:3]) + (" and more" if len(summary.overlapping) > 3 else "")
        why = f"{', '.join(summary.others)} also select some of its Nodes, which are not fenced therefore: {nodes}"
        overlap = OVERLAPPING, "True", "SameNodes", why
    counts = configuration.generation, summary.selected, summary.matching, summary.overlapping
    return ConfigurationStatus(*counts, (told, overlap))


def _status_written(configuration: Configuration, status: ConfigurationStatus, judgement: Judgement) -> SetStatus:
    """Events report the conditions that have changed, and the Nodes that two configurations select from now on: the
    first of both reports each."""
    before = {of_type: (value, reason) for of_type, value, reason, _ in configuration.status.conditions}
    notices = []
    for of_type, value, reason, message in status.conditions:
        bad = (of_type == FENCING_ALLOWED) == (value == "False")
        if before.get(of_type, ("", "")) != (value, reason) and (bad or of_type in before):
            notices.append((_NOTICES.get(reason, reason), message, bad))
    overlapping = tuple(
        (node, judgement.known[node][0].uid, told_twice(node, judgement.selecting(node)))
        for node in status.overlapping
        if node not in configuration.status.overlapping and judgement.selecting(node)[0] == configuration.name
    )
    return SetStatus(configuration, status, tuple(notices), overlapping)


def _paced(
    view: View, key: str, step: LeaderStep, pause_seconds: float, sentence: str
) -> tuple[NextAction, NodeMemory]:
    """The step, unless it was done less than so long ago."""
    due_at = view.memory.part(Paced).at + pause_seconds
    if view.now < due_at and not view.memory.trouble:
        return replace(view.waits(Stage.REMEDIATING, sentence, due_at), of=key, quiet=True), view.memory
    told = replace(view.does(Stage.REMEDIATING, step, f"{key}: {sentence}"), of=key, quiet=True)
    return told, view.memory if told.step is None else view.memory.with_part(Paced(view.now))
