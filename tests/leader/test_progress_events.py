"""The leader's reports about each course: every write, every refusal, each wait that lasts, and the end."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from pp_hostd.kube.events import About
from pp_hostd.kube.resources import NODES
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.progress_events import TELL_AGAIN_SECONDS, ProgressEvents
from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.steps.machines import Inspect
from pp_hostd.leader.steps.nodes import Cordon
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.condemnation import Requested
from pp_hostd.model.leader_status import Told
from pp_hostd.model.machine import Machine
from pp_hostd.model.node import Node
from pp_hostd.model.observed import MachineSeen, NodeSeen, Observed
from pp_hostd.model.promise import Armed, GateKind, WatchdogKind
from pp_hostd.model.settings import Settings
from pp_hostd.service.journal import Journal
from pp_hostd.service.metric import render

WHEN = datetime(2026, 3, 1, tzinfo=timezone.utc)
NODE = Node("x", "node-uid", "1", None, None, None, False, False)
MACHINE = Machine("machines", "x", "machine-uid", "1", Requested(0), "x")
OBSERVED = Observed(
    nodes={"x": NodeSeen(NODE, "machines/x")},
    machines={"machines/x": MachineSeen(MACHINE, 1)},
    requests=("machines/x",),
)
PROMISE = Armed("boot-1", 22, 10, WatchdogKind.HARDWARE, GateKind.HOLD, "machine-uid", 3)
SETTINGS = replace(Settings(), api=replace(Settings().api, machines="openshift"))
CORDON = Cordon("x", "node-uid", "1", 1)
CONDEMN = Condemn("machines/x", "machine-uid", "1", 1)


class Desk:
    """Everything that was told, at a time that a test sets."""

    def __init__(self, journal: Journal) -> None:
        self.now, self.observed = 100.0, OBSERVED
        self.events: list[tuple[About, str, str, bool]] = []
        self.history: list[Told] = []
        self.progress_events = ProgressEvents(
            SETTINGS,
            journal,
            lambda *event: self.events.append(event),
            self.history.append,
            lambda: self.now,
            lambda: WHEN,
        )

    def tell(self, stage: Stage, sentence: str, step: LeaderStep | None = None, *, refused: bool = False) -> int:
        """How many lines of history this made."""
        before = len(self.history)
        next_action = NextAction("x", "machines/x", stage, sentence, step, due_at=self.now + 30, refused=refused)
        self.progress_events.tell((next_action,), self.observed)
        return len(self.history) - before

    def dates(self) -> tuple[datetime | None, datetime | None]:
        """When the remediation began, and by when its host is dead."""
        [told] = self.progress_events.next_actions()
        return told.began_wallclock, told.dead_by_wallclock


@pytest.fixture
def desk() -> Iterator[Desk]:
    far, near = os.pipe()
    journal = Journal("/nonexistent", near)
    yield Desk(journal)
    journal.close()
    os.close(far)
    os.close(near)


def test_every_write_is_told_once_on_node_and_machine(desk: Desk) -> None:
    assert desk.tell(Stage.CONDEMNING, "cordoning its Node", CORDON) == 1
    assert desk.tell(Stage.CONDEMNING, "cordoning its Node", CORDON) == 0
    assert desk.tell(Stage.CONDEMNING, "condemning its machine", CONDEMN) == 1
    assert [(about.kind.kind, about.uid, sentence) for about, _, sentence, _ in desk.events[:2]] == [
        ("Node", "node-uid", "cordoning its Node"),
        ("Machine", "machine-uid", "cordoning its Node"),
    ]
    assert {(reason, warning) for _, reason, _, warning in desk.events} == {("Condemning", False)}


def test_reads_and_questions_are_no_news_by_themselves(desk: Desk) -> None:
    desk.tell(Stage.CHECKING, "checking once more", Inspect("machines/x", "x"))
    assert desk.tell(Stage.CHECKING, "looks again", Inspect("machines/x", "x")) == 0


def test_a_refusal_is_a_warning_and_told_again_when_it_changes(desk: Desk) -> None:
    desk.tell(Stage.HELD, "no promise", refused=True)
    assert desk.tell(Stage.HELD, "no promise", refused=True) == 0
    assert desk.tell(Stage.HELD, "no machine", refused=True) == 1
    assert {(reason, warning) for _, reason, _, warning in desk.events} == {("Refused", True)}


def test_what_keeps_it_waiting_is_told_if_it_lasts(desk: Desk) -> None:
    desk.tell(Stage.ACKNOWLEDGING, "0 of 5 have acknowledged")
    assert desk.tell(Stage.ACKNOWLEDGING, "2 of 5 have acknowledged") == 0
    desk.now += TELL_AGAIN_SECONDS
    assert desk.tell(Stage.ACKNOWLEDGING, "2 of 5 have acknowledged") == 1
    assert desk.tell(Stage.ACKNOWLEDGING, "2 of 5 have acknowledged; a: silent") == 0
    desk.now += TELL_AGAIN_SECONDS
    assert desk.tell(Stage.ACKNOWLEDGING, "2 of 5 have acknowledged") == 0


def test_the_status_tells_since_when_and_until_when(desk: Desk) -> None:
    desk.tell(Stage.WAITING, "waits")
    (next_action,) = desk.progress_events.next_actions()
    assert (next_action.stage, next_action.since_wallclock, next_action.refused) == ("waiting", WHEN, False)
    assert next_action.due_wallclock is not None
    assert (next_action.due_wallclock - WHEN).total_seconds() == 30


def test_the_end_is_told_and_how_long_it_took(desk: Desk) -> None:
    desk.tell(Stage.WAITING, "waits")
    desk.now += 44
    desk.tell(Stage.CLEARING, "clears")
    desk.now += 1
    desk.progress_events.tell((), OBSERVED)
    assert desk.history[-1].stage == "finished"
    assert desk.progress_events.next_actions() == ()
    figures = render(desk.progress_events.metrics())
    assert "pp_leader_remediation_seconds_count 1\n" in figures
    assert "pp_leader_remediation_seconds_sum 45.0\n" in figures
    assert 'pp_leader_stage_seconds_sum{stage="waiting"} 44.0\n' in figures
    assert 'pp_leader_stage_seconds_bucket{stage="waiting",le="30"} 0\n' in figures
    assert 'pp_leader_stage_seconds_bucket{stage="waiting",le="60"} 1\n' in figures
    assert 'pp_leader_stage_seconds_count{stage="clearing"} 1\n' in figures
    assert 'pp_leader_nodes{stage="waiting"} 0\n' in figures


def test_a_node_that_is_missing_is_told_of_under_its_name(desk: Desk) -> None:
    next_action = NextAction("y", "machines/y", Stage.FREEING, "freeing its workloads")
    desk.progress_events.tell((next_action,), OBSERVED)
    assert desk.events == [(About(NODES, None, "y", "y"), "Freeing", "freeing its workloads", False)]
    assert desk.history[-1].node == "y"


def test_a_machine_without_a_node_is_told_of_alone(desk: Desk) -> None:
    desk.progress_events.tell((NextAction("", "machines/x", Stage.HELD, "no nodeRef", refused=True),), OBSERVED)
    assert [about.kind.kind for about, *_ in desk.events] == ["Machine"]


def test_a_remediation_has_a_promised_end_from_its_beginning_to_its_last_line(desk: Desk) -> None:
    """First as the Node promises (T + 2W and the margin, 44 s), then as the leader waits."""
    desk.observed = replace(OBSERVED, nodes={"x": NodeSeen(replace(NODE, agent=PROMISE), "machines/x")})
    desk.tell(Stage.HELD, "too many at once")
    assert desk.dates() == (None, None)
    desk.tell(Stage.CONDEMNING, "cordoning its Node", CORDON)
    assert desk.dates() == (WHEN, WHEN + timedelta(seconds=44))
    desk.tell(Stage.WAITING, "half of 3 nodes know")
    assert desk.dates() == (WHEN, WHEN + timedelta(seconds=30))
    desk.observed = OBSERVED
    desk.tell(Stage.RESTORING, "recreating its Node")
    assert desk.dates() == (WHEN, WHEN + timedelta(seconds=30))
    desk.progress_events.tell((), OBSERVED)
    assert desk.history[-1].dead_by_wallclock == WHEN + timedelta(seconds=30)


def test_what_nothing_promises_has_no_end(desk: Desk) -> None:
    desk.tell(Stage.FENCING, "off by ipmi")
    assert desk.dates() == (WHEN, None)
