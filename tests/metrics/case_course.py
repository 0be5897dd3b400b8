"""Real daemons, scraped by a real Prometheus, in trouble and out of it: figures, dashboard, alerts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from tests.metrics.course import Course
from tests.metrics.dashboard import queries
from tests.metrics.prometheus import CHECKOUT, promtool

ROW = re.compile(r"(?m)^\| `(pp_[a-z_]+)(?:{([a-z_,]+)})?` \| (\w+) \|")
STATES = (
    *("armed", "unarmed", "in an outage", "after a reset"),
    *("leading", "leading, with a remediation", "standing by", "nobody leads"),
)


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Course]:
    with Course.begin(tmp_path_factory.mktemp("prometheus")) as course:
        course.play()
        yield course


@pytest.mark.parametrize("state", STATES)
def test_promtool_finds_nothing_wrong_with_the_figures(course: Course, state: str) -> None:
    assert promtool("check", "metrics", stdin=course.outputs[state]) == ""


def test_every_query_of_the_dashboard_shows_something(course: Course) -> None:
    assert set().union(*course.shown.values()) == set(queries())


def test_while_all_is_well_only_those_panels_are_empty_that_say_so(course: Course) -> None:
    empty = {each.panel for each in queries() if each not in course.shown["all is well"]}
    assert empty <= {each.panel for each in queries() if each.may_be_empty}


def test_in_an_outage_of_the_api_two_alerts_begin(course: Course) -> None:
    assert course.alerts["outage"] >= {"PpHostdControlPlaneOutage", "PpHostdNobodyLeads"}


def test_the_record_of_resets_outlives_the_reset(course: Course) -> None:
    assert 'pp_hostd_recorded_resets{reason="condemned"} 1\n' in course.outputs["after a reset"]
    assert 'pp_hostd_recorded_resets{reason="condemned"} 0\n' in course.outputs["armed"]


def test_a_host_says_why_it_is_not_protected(course: Course) -> None:
    assert "pp_hostd_protected 1\n" in course.outputs["armed"]
    assert "pp_hostd_protected 0\n" in course.outputs["unarmed"]
    assert 'pp_hostd_unprotected_reason{reason="maintenance"} 1\n' in course.outputs["unarmed"]


def test_the_page_has_every_metric_with_its_type_and_labels(course: Course) -> None:
    served: dict[str, tuple[str, set[str]]] = {}
    for text in course.outputs.values():
        types = dict(re.findall(r"(?m)^# TYPE (\S+) (\S+)$", text))
        for name, kind in types.items():
            labels = set(served.get(name, ("", set()))[1])
            for line in re.findall(rf"(?m)^{name}(?:_bucket|_sum|_count)?{{(.*)}} \S+$", text):
                labels.update(re.findall(r'(\w+)="', line))
            served[name] = kind, labels - {"le"}
    page = (CHECKOUT / "docs/metrics.md").read_text()
    told = {name: (kind, set(filter(None, labels.split(",")))) for name, labels, kind in ROW.findall(page)}
    for name, (kind, labels) in told.items():
        if name not in ("pp_hostd_up", "pp_leader_up"):
            assert kind == served[name][0], name
            assert served[name][1] <= labels, name
    assert set(served) <= set(told)
