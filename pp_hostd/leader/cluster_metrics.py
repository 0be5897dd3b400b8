"""The metrics of the cluster as the leader sees it: who is protected, and which limits hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from pp_hostd.leader.node_memory import Term
from pp_hostd.leader.plan.valves import Limit, Valves
from pp_hostd.leader.requests.node_conditions.protected import REASONS
from pp_hostd.leader.requests.node_conditions.stored import ConditionsSeen
from pp_hostd.model.control import Maintenance
from pp_hostd.model.keys import PROTECTED
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings
from pp_hostd.service.metric import Metric, gauge

UNKNOWN = "Unknown"
"""The leader has not yet written the condition of that Node, or somebody else has written another one."""


def protection(observed: Observed) -> Iterator[Metric]:
    """By the condition that stands on each Node: to judge thousands at each scrape would hold the leader up."""
    conditions = observed.part(ConditionsSeen).of_nodes
    found: Counter[str] = Counter()
    for name in observed.nodes:
        condition = conditions.get(name, {}).get(PROTECTED)
        if condition is not None and condition.status == "True":
            found[PROTECTED] += 1
        else:
            found[condition.reason if condition is not None and condition.reason in REASONS else UNKNOWN] += 1
    yield gauge("pp_leader_protected_nodes", "Nodes whose host is protected.", found[PROTECTED])
    reasons = [({"reason": reason}, found[reason]) for reason in (*REASONS, UNKNOWN)]
    text = "Nodes whose host is not protected, by the reason of their condition."
    yield Metric("pp_leader_unprotected_nodes", text, "gauge", reasons)


def limits(
    settings: Settings, observed: Observed, term: Term, valves: Valves, now: float, wallclock: datetime
) -> Iterator[Metric]:
    control = observed.control
    holding = {each.limit for each in valves.limits(settings, term.began_at, now)}
    others = {
        Limit.PAUSED: control.paused is not None,
        Limit.MAINTENANCE: isinstance(control.maintenance, Maintenance)
        and wallclock < control.maintenance.until_wallclock,
        Limit.QUORUM: any(map(valves.leaves_no_quorum, valves.control_plane)),
        Limit.BUDGET: not valves.allowance.left,
    }
    samples = [({"limit": each.value}, int(each in holding or others.get(each, False))) for each in Limit]
    yield Metric("pp_leader_limit", "1 while this limit keeps remediations from beginning.", "gauge", samples)
    allowance = valves.allowance
    yield gauge("pp_leader_resets_per_hour", "Remediations that may begin in an hour.", allowance.most)
    yield gauge("pp_leader_resets_left", "Remediations that may still begin now.", allowance.left)
