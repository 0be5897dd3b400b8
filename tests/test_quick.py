"""The tests that a quick run leaves out: all that can start a program or play a day, by whatever way."""

from __future__ import annotations

import subprocess
import sys
from typing import Any, Callable

import pytest

from pp_hostd.sim.run import run as play
from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster
from tests.quick import Known, needs_control_plane, reaches, takes_long


def starts() -> int:
    return subprocess.run([sys.executable], check=True).returncode


def calls_one_that_starts() -> None:
    starts()


def starts_inside() -> list[int]:
    return [starts() for _ in range(1)]


def starts_if_none_is_given(start: Callable[[], int] = starts) -> None:
    start()


def starts_a_cluster() -> None:
    EmbeddedCluster.start()


def starts_a_control_plane() -> None:
    RealCluster.start()


def chooses_its_fixture(request: pytest.FixtureRequest) -> Any:
    return request.getfixturevalue("any")


def plays_a_day() -> object:
    return play


def first_of_two(number: int) -> int:
    return number and second_of_two(number - 1)


def second_of_two(number: int) -> int:
    return first_of_two(number - 1) if number else starts()


def computes() -> int:
    return len([sys.maxsize])


@pytest.mark.parametrize(
    "function",
    [
        starts,
        calls_one_that_starts,
        starts_inside,
        starts_if_none_is_given,
        starts_a_cluster,
        chooses_its_fixture,
        plays_a_day,
        first_of_two,
        second_of_two,
    ],
)
def test_whatever_can_start_a_program_or_play_a_day_is_left_out(function: Callable[..., Any]) -> None:
    assert reaches(function, Known(takes_long))


def test_one_that_uses_another_is_left_out_whichever_is_looked_at_first() -> None:
    known = Known(takes_long)
    assert reaches(first_of_two, known) and reaches(second_of_two, known)


def test_what_only_computes_is_quick() -> None:
    assert not reaches(computes, Known(takes_long))


@pytest.mark.parametrize("function", [starts_a_control_plane, chooses_its_fixture])
def test_whoever_can_start_a_control_plane_waits_for_it(function: Callable[..., Any]) -> None:
    assert reaches(function, Known(needs_control_plane))


@pytest.mark.parametrize("function", [starts, starts_a_cluster, plays_a_day])
def test_whoever_starts_other_programs_alone_does_not_wait_for_a_control_plane(function: Callable[..., Any]) -> None:
    assert not reaches(function, Known(needs_control_plane))
