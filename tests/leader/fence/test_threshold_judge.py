"""Which threshold a Node has reached: boundaries by the second, two clocks, and nothing that is judged twice."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.leader.facts.ages import Ages
from pp_hostd.leader.facts.nodes import NodeFacts
from pp_hostd.leader.facts.selector import Requirement, Selector
from pp_hostd.leader.remedies.node_fence.configuration import RemedyRules, Threshold
from pp_hostd.leader.requests.thresholds.judge import CALM, LATER_SECONDS, Judgement, Opinion, judged, opinion
from tests.leader.health.test_judge import NOW, WALLCLOCK, node

SILENT = Threshold("Ready", "Unknown", 60.0)
FULL = Threshold("DiskPressure", "True", 600.0)


def said(facts: NodeFacts, *thresholds: Threshold, now: float = NOW, wallclock: float = WALLCLOCK) -> Opinion:
    return opinion(thresholds or (SILENT,), facts, Ages({}, now, wallclock))


@pytest.mark.parametrize(("seconds", "reached"), [(59, None), (60, SILENT), (61, SILENT), (10**6, SILENT)])
def test_a_threshold_is_reached_once_its_period_has_passed(seconds: int, reached: Threshold | None) -> None:
    assert said(node(("Ready", "Unknown", seconds))).reached == reached


def test_one_that_will_be_reached_is_due_then() -> None:
    facts = node(("Ready", "Unknown", 20), ("DiskPressure", "True", 599))
    assert said(facts, SILENT, FULL) == said(facts, FULL, SILENT) == Opinion(None, FULL, NOW + 1 + LATER_SECONDS)


@pytest.mark.parametrize(
    "facts", [node(("Ready", "True", 900)), node(("Ready", "False", 900)), node(("Disk", "Unknown", 900)), node()]
)
def test_another_condition_or_status_is_calm(facts: NodeFacts) -> None:
    assert said(facts) is CALM


@pytest.mark.parametrize(("silent_seconds", "full_seconds", "reached"), [(70, 609, SILENT), (70, 611, FULL)])
def test_of_several_the_one_counts_that_was_reached_first(
    silent_seconds: int, full_seconds: int, reached: Threshold
) -> None:
    """Whatever their order."""
    facts = node(("Ready", "Unknown", silent_seconds), ("DiskPressure", "True", full_seconds))
    assert said(facts, SILENT, FULL).reached == said(facts, FULL, SILENT).reached == reached


def test_one_that_is_reached_wins_over_one_that_is_awaited() -> None:
    facts = node(("Ready", "Unknown", 60), ("DiskPressure", "True", 599))
    assert said(facts, FULL, SILENT) == Opinion(SILENT)


@pytest.mark.parametrize(
    ("passed", "wallclock_passed", "reached"),
    [(49, 49, None), (50, 50, SILENT), (49, 3600, None), (50, 3600, SILENT), (3600, 49, None), (3600, 50, SILENT)],
)
def test_both_clocks_must_agree_that_the_period_has_passed(
    passed: int, wallclock_passed: int, reached: Threshold | None
) -> None:
    facts = node(("Ready", "Unknown", 10))
    first = Ages({}, NOW, WALLCLOCK)
    assert opinion((SILENT,), facts, first).reached is None
    later = Ages(first.seen, NOW + passed, WALLCLOCK + wallclock_passed)
    assert opinion((SILENT,), facts, later).reached == reached


def test_a_condition_that_comes_again_begins_again() -> None:
    first = Ages({}, NOW, WALLCLOCK)
    opinion((SILENT,), node(("Ready", "Unknown", 59)), first)
    again = Ages(first.seen, NOW + 30, WALLCLOCK + 30)
    assert opinion((SILENT,), node(("Ready", "Unknown", -30)), again).reached is None


# All Nodes and all configurations.


def rules(*labels: tuple[str, str], thresholds: tuple[Threshold, ...] = (SILENT,)) -> RemedyRules:
    return RemedyRules(Selector(tuple(Requirement(key, "In", (value,)) for key, value in labels)), thresholds)


def by(before: Judgement | None = None, /, *, passed: int = 0, **nodes: NodeFacts) -> Any:
    every = {"north": rules(("zone", "n")), "south": rules(("zone", "s")), "stores": rules(("store", "yes"))}
    return judged(every, nodes, before or Judgement(), Ages({}, NOW + passed, WALLCLOCK + passed))


def test_each_node_is_judged_by_the_configuration_that_selects_it() -> None:
    sick = ("Ready", "Unknown", 90)
    found = by(
        a=node(sick, zone="n"), b=node(("Ready", "True", 90), zone="n"), c=node(sick, zone="x"), d=node(zone="s")
    )
    assert dict(found.matching) == {"a": SILENT}
    counts = {name: (each.selected, each.matching) for name, each in found.summaries.items()}
    assert counts == {"north": (2, 1), "south": (1, 0), "stores": (0, 0)}


def test_a_node_that_two_select_is_named_for_both_and_counts_in_a_storm() -> None:
    found = by(a=node(("Ready", "Unknown", 90), zone="n", store="yes"), b=node(zone="n"))
    assert found.selecting("a") == ("north", "stores")
    summary = found.summaries
    assert (summary["north"].overlapping, summary["north"].others) == (("a",), ("stores",))
    assert (summary["stores"].overlapping, summary["stores"].others) == (("a",), ("north",))
    assert (summary["south"].overlapping, summary["south"].others) == ((), ())
    assert list(found.matching) == ["a"]


def test_a_calm_node_that_did_not_change_is_not_judged_again_and_others_are() -> None:
    calm, awaited, elsewhere = node(zone="n"), node(("Ready", "Unknown", 50), zone="s"), node(("Ready", "Unknown", 90))
    first = by(a=calm, b=awaited, c=elsewhere)
    assert first.due_at == NOW + 10 + LATER_SECONDS
    second = by(first, passed=11, a=calm, b=awaited, c=elsewhere)
    assert second.known["a"] is first.known["a"]
    assert second.known["c"] is first.known["c"]
    assert list(second.matching) == ["b"]
    third = by(second, passed=12, a=node(("Ready", "Unknown", 90), zone="n"), b=awaited)
    assert list(third.matching) == ["a", "b"]
    assert "c" not in third.known
