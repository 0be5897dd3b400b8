"""The figures of the cluster that the leader serves: who is protected, and which limits hold."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from pp_hostd.leader.cluster_metrics import limits, protection
from pp_hostd.leader.node_memory import Term
from pp_hostd.leader.plan.valves import Allowance, Limit, Valves
from pp_hostd.leader.requests.node_conditions.protected import REASONS
from pp_hostd.leader.requests.node_conditions.stored import ConditionsSeen
from pp_hostd.leader.steps.nodes import Condition
from pp_hostd.model.control import Control, Maintenance, Pause
from pp_hostd.model.keys import PROTECTED
from pp_hostd.model.observed import NodeSeen, Observed
from pp_hostd.model.settings import Leader, Settings
from pp_hostd.service.metric import render
from tests.agent.values import node

ROOT = Path(__file__).parents[2]
WHEN = datetime(2026, 3, 1, tzinfo=timezone.utc)
CALM = Valves("", 0, frozenset(), frozenset(), frozenset("abc"), {}, {}, 0.0, Allowance(3, {}, None, 0), ())
SETTINGS = Settings(leader=Leader(start_grace_seconds=10.0, max_at_once=2))


def holding(valves: Valves, observed: Observed = Observed(), now: float = 100.0) -> set[str]:  # noqa: B008
    text = render(limits(SETTINGS, observed, Term("x", 50.0), valves, now, WHEN))
    assert text.count("pp_leader_limit{") == len(Limit)
    return set(re.findall('pp_leader_limit{limit="([a-z-]+)"} 1\n', text))


def test_each_limit_is_a_figure_while_it_holds() -> None:
    assert holding(CALM) == set()
    assert holding(CALM, now=55.0) == {"starting"}
    assert holding(replace(CALM, storm="too many", calm_at=200.0)) == {"storm"}
    assert holding(replace(CALM, calm_at=200.0)) == {"cool-down"}
    assert holding(replace(CALM, busy=2)) == {"max-at-once"}
    assert holding(replace(CALM, busy_control_plane=frozenset("a"))) == {"quorum"}
    assert holding(replace(CALM, silent_control_plane=frozenset("a"))) == {"quorum"}
    assert holding(replace(CALM, allowance=Allowance(0, {}, None, 0))) == {"budget"}


def test_a_person_s_orders_are_limits() -> None:
    def ordered(**orders: Any) -> Observed:
        return Observed(control=Control(**{"paused": None, "maintenance": None, **orders}))

    def until(end: datetime) -> Maintenance:
        return Maintenance("root", WHEN, "a switch", end)

    assert holding(CALM, ordered(paused=Pause("root", WHEN, "a test"))) == {"paused"}
    assert holding(CALM, ordered(maintenance=until(WHEN + timedelta(hours=1)))) == {"maintenance"}
    assert holding(CALM, ordered(maintenance=until(WHEN))) == set()


def test_nodes_are_counted_by_the_condition_that_stands_on_them() -> None:
    def says(status: str, reason: str) -> Mapping[str, Condition]:
        return {PROTECTED: Condition(PROTECTED, status, reason, "")}

    conditions = {
        "a": says("True", "Armed"),
        "b": says("False", "NoPromise"),
        "c": says("False", "NoPromise"),
        "d": says("False", "Foreign"),
        "gone": says("False", "Maintenance"),
    }
    nodes = {name: NodeSeen(node(), name) for name in "abcde"}
    text = render(protection(Observed(nodes=nodes, parts={ConditionsSeen: ConditionsSeen(conditions)})))
    assert "pp_leader_protected_nodes 1\n" in text
    assert 'pp_leader_unprotected_nodes{reason="NoPromise"} 2\n' in text
    assert 'pp_leader_unprotected_nodes{reason="Unknown"} 2\n' in text
    assert 'pp_leader_unprotected_nodes{reason="Maintenance"} 0\n' in text


def test_the_reasons_are_those_of_the_code_and_of_the_page() -> None:
    code = "".join(
        (ROOT / "pp_hostd/leader" / path).read_text()
        for path in ("remedies/poison_pill/certainty.py", "requests/node_conditions/protected.py")
    )
    assert set(re.findall(r'Trouble\("(\w+)"', code)) == set(REASONS)
    page = (ROOT / "docs/leader.md").read_text()
    assert all(f"`{reason}`" in page for reason in REASONS)
