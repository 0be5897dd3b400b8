"""The opinion of NodeRemedyConfigurations on a node at one moment, for people, by the wall clock alone."""

from __future__ import annotations

import math
from datetime import datetime, timezone

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import NodeMemory, Term
from pp_hostd.leader.plan.view import Electorates, View
from pp_hostd.leader.remedies.node_fence.configuration import ConfigurationsSeen
from pp_hostd.leader.remedies.node_fence.fence import fence_name
from pp_hostd.leader.requests.thresholds.judge import CALM
from pp_hostd.leader.requests.thresholds.plan import ThresholdMemory, remembered, told_storm, told_twice, why_not
from pp_hostd.model.moment import render_moment
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings


def sentences(observed: Observed, node: str, at: datetime) -> list[str]:
    """Of `pp-leader explain`; empty where there is no configuration."""
    seen, seconds = observed.part(ConfigurationsSeen), at.timestamp()
    every = sorted(seen.configurations.values(), key=lambda each: each.name)
    said = [f"{each.key} has nobody fenced: {each.rules}." for each in every if isinstance(each.rules, Unreadable)]
    judgement = remembered(ThresholdMemory(), seen, seconds, seconds).judgement
    selecting = judgement.selecting(node)
    if not selecting:
        return [*said, *(["No NodeRemedyConfiguration selects it."] if every else [])]
    opinion, key = judgement.known[node][2], seen.configurations[selecting[0]].key
    if opinion.reached is not None:
        held = told_storm(judgement, observed) or why_not(_view(observed, node), seen, selecting)
        if held:
            return [*said, f"{key} does not have it fenced, though it has had {opinion.reached}: {held}."]
        return [*said, f"{key} has it fenced (NodeFence {fence_name(node)}): it has had {opinion.reached}."]
    if len(selecting) > 1:
        told = told_twice(node, selecting)
        return [*said, f"{told[0].upper()}{told[1:]}."]
    if opinion is CALM:
        return [*said, f"{key} selects it, and it has reached no threshold."]
    due = render_moment(datetime.fromtimestamp(math.ceil(opinion.due_at), timezone.utc))
    return [*said, f"{key} has it fenced at {due}, once it has had {opinion.awaited}."]


def _view(observed: Observed, node: str) -> View:
    """As the plan looks at it. Only where machines are Cluster API's, Clusters are read."""
    settings, key = Settings(), observed.nodes[node].machine_key if node in observed.nodes else ""
    if observed.clusters.pauses:
        settings = replace(settings, api=replace(settings.api, machines="cluster-api"))
    machine_key, term = key if isinstance(key, str) else "", Term(own_node="", began_at=-math.inf)
    return View(settings, observed, Electorates(observed.roster), term, NodeMemory(), node, machine_key, 0.0)
