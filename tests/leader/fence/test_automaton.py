"""The automaton as a table: each row is a sentence of the proposal, or of our own where that is silent."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.leader.remedies.node_fence.automaton import KEPT_SECONDS, Situation, Wait, Work, next_move
from pp_hostd.leader.remedies.node_fence.config_maps import ClusterConfig
from pp_hostd.leader.remedies.node_fence.fence import GAVE_UP, MethodRun, Outcome, Progress, State, Status, Step

CONFIG = ClusterConfig(grace_seconds=300, boot_seconds=600, step_retries=2, giveup_retries=5)
BAD = Situation(is_well=False, needs_boot=False, age_seconds=0.0, methods=2)
WELL = replace(BAD, is_well=True)
ISOLATION, POWER, RECOVERY = Step.ISOLATION, Step.POWER_MANAGEMENT, Step.RECOVERY
NEW, RUNNING, DONE, FINAL, ERROR = Status.NEW, Status.RUNNING, Status.DONE, Status.FINAL, Status.ERROR


def ran(*outcomes: Outcome) -> tuple[MethodRun, ...]:
    return tuple(MethodRun(f"m{number}", "", each) for number, each in enumerate(outcomes))


ALL_DONE, FAILED = ran(Outcome.DONE, Outcome.DONE), ran(Outcome.DONE, Outcome.FAILED)

ROWS: list[tuple[str, Progress, Situation, Any]] = [
    ("a bad node in the state new is isolated", Progress(), BAD, (ISOLATION, RUNNING)),
    ("one that is Ready before anything ran is forgotten", Progress(), WELL, Work.FORGET),
    ("the methods of isolation run", Progress(status=RUNNING), BAD, Work.RUN),
    ("once isolation is completed, the node is running", Progress(status=RUNNING, methods=ALL_DONE), BAD,
     (ISOLATION, DONE)),
    ("one that is Ready in the middle of isolation is done", Progress(status=RUNNING, methods=ran(Outcome.DONE)), WELL,
     (POWER, DONE)),
    ("a running node that is Ready is done", Progress(status=DONE), WELL, (POWER, DONE)),
    ("a running node has the grace time to become Ready", Progress(status=DONE), replace(BAD, age_seconds=299), 1.0),
    ("then power management is triggered", Progress(status=DONE), replace(BAD, age_seconds=300), (POWER, NEW)),
    ("and runs", Progress(POWER, NEW), BAD, (POWER, RUNNING)),
    ("unless the node is Ready by then", Progress(POWER, NEW), WELL, (POWER, DONE)),
    ("or before its first method", Progress(POWER, RUNNING), WELL, (POWER, DONE)),
    ("once power management is completed, the node is done", Progress(POWER, RUNNING, methods=ALL_DONE), BAD,
     (POWER, DONE)),
    ("a done node that is Ready is recovered", Progress(POWER, DONE), WELL, (RECOVERY, NEW)),
    ("a done node has the boot timeout to become Ready", Progress(POWER, DONE), replace(BAD, age_seconds=599), 1.0),
    ("then it is in error", Progress(POWER, DONE), replace(BAD, age_seconds=600), (POWER, ERROR)),
    ("recovery runs", Progress(RECOVERY, NEW), WELL, (RECOVERY, RUNNING)),
    ("once recovery is completed", Progress(RECOVERY, RUNNING, methods=ALL_DONE), WELL, (RECOVERY, DONE)),
    ("the node is final", Progress(RECOVERY, DONE), WELL, (RECOVERY, FINAL)),
    ("a final one is kept for a while", Progress(RECOVERY, FINAL), replace(WELL, age_seconds=KEPT_SECONDS - 1), 1.0),
    ("and then forgotten", Progress(RECOVERY, FINAL), replace(WELL, age_seconds=KEPT_SECONDS), Work.FORGET),
    ("a step that fails is tried again", Progress(POWER, RUNNING, methods=FAILED), BAD, (POWER, RUNNING)),
    ("and is in error after so many tries", Progress(POWER, RUNNING, retries=2, methods=FAILED), BAD, (POWER, ERROR)),
    ("isolation likewise", Progress(status=RUNNING, retries=2, methods=FAILED), BAD, (ISOLATION, ERROR)),
    ("recovery likewise", Progress(RECOVERY, RUNNING, retries=2, methods=FAILED), WELL, (RECOVERY, ERROR)),
    ("from error the whole flow begins again", Progress(POWER, ERROR), BAD, (ISOLATION, NEW)),
    ("after the grace time", Progress(restarts=1), replace(BAD, age_seconds=299), 1.0),
    ("with isolation", Progress(restarts=1), replace(BAD, age_seconds=300), (ISOLATION, RUNNING)),
    ("one that is Ready by then is done", Progress(restarts=1), WELL, (POWER, DONE)),
    ("unless it has to boot, which power management alone brings about", Progress(restarts=1),
     replace(WELL, needs_boot=True, age_seconds=300), (ISOLATION, RUNNING)),
    ("where workloads were freed only another boot is well", Progress(status=DONE),
     replace(WELL, needs_boot=True, age_seconds=300), (POWER, NEW)),
    ("also after power management", Progress(POWER, DONE), replace(WELL, needs_boot=True), 600.0),
    ("a ladder goes on after a rung that has failed", Progress(status=RUNNING, retries=2, methods=ran(Outcome.FAILED)),
     replace(BAD, climbs=True), Work.RUN),
    ("and has no grace time at its end", Progress(status=DONE), replace(BAD, climbs=True), (POWER, NEW)),
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_the_table(row: tuple[str, Progress, Situation, Any]) -> None:
    _, progress, at, expected = row
    move = next_move(progress, at, CONFIG)
    if isinstance(move, Progress):
        assert (move.step, move.status) == expected
    elif isinstance(move, Wait):
        assert move.seconds == expected
    else:
        assert move is expected


STATES = [
    (ISOLATION, NEW, State.NEW), (ISOLATION, RUNNING, State.NEW), (ISOLATION, DONE, State.RUNNING),
    (POWER, NEW, State.RUNNING), (POWER, RUNNING, State.RUNNING), (POWER, DONE, State.DONE),
    (RECOVERY, NEW, State.DONE), (RECOVERY, RUNNING, State.DONE), (RECOVERY, DONE, State.FINAL),
    (RECOVERY, FINAL, State.FINAL), (ISOLATION, ERROR, State.ERROR), (RECOVERY, ERROR, State.ERROR),
]  # fmt: skip


@pytest.mark.parametrize(("step", "status", "state"), STATES)
def test_the_state_of_the_node_follows_from_the_step_and_its_status(step: Step, status: Status, state: State) -> None:
    assert Progress(step, status).state is state


def test_a_flow_that_has_failed_too_often_gives_up_and_stays() -> None:
    given_up = next_move(Progress(POWER, ERROR, restarts=5, reason="the BMC is silent"), BAD, CONFIG)
    assert isinstance(given_up, Progress)
    assert given_up.gave_up
    assert "the BMC is silent" in given_up.conditions[0][3]
    assert next_move(given_up, WELL, CONFIG) is Work.STAY
    assert given_up.conditions[0][0] == GAVE_UP


progresses = st.builds(
    Progress,
    step=st.sampled_from(Step),
    status=st.sampled_from(Status),
    retries=st.integers(0, 4),
    restarts=st.integers(0, 7),
    methods=st.lists(st.sampled_from(Outcome), max_size=3).map(lambda found: ran(*found)),
    cleaned=st.booleans(),
)
situations = st.builds(
    Situation,
    is_well=st.booleans(),
    needs_boot=st.booleans(),
    age_seconds=st.floats(0, 2000),
    methods=st.integers(0, 3),
    pause_seconds=st.floats(0, 10),
    climbs=st.booleans(),
)


@given(progress=progresses, at=situations)
def test_every_state_however_odd_has_a_move_and_no_move_is_to_where_it_is(progress: Progress, at: Situation) -> None:
    move = next_move(progress, at, CONFIG)
    assert move != progress
    if isinstance(move, Wait):
        assert move.seconds > 0
        assert move.sentence


@given(progress=progresses, at=situations)
def test_recovery_follows_only_where_the_node_is_well_in_a_boot_that_may_have_its_storage(
    progress: Progress, at: Situation
) -> None:
    move = next_move(progress, at, CONFIG)
    if isinstance(move, Progress) and move.step is RECOVERY and progress.step is not RECOVERY:
        assert at.is_well and not at.needs_boot
