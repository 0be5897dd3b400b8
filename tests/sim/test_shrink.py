"""The rest of a schedule after everything is taken out that the violation does not need."""

from __future__ import annotations

from typing import Callable

from pp_hostd.sim.hunt import shrink
from pp_hostd.sim.run import Outcome
from pp_hostd.sim.schedule import Schedule, Trouble

GUILTY = Trouble(20.0, "request", ("node-2",))
ACCOMPLICE = Trouble(60.0, "cut off", ("node-1",), 64.0)
INNOCENT = tuple(Trouble(float(second), "agent is killed", ("node-5",)) for second in range(10, 70, 7))
WHOLE = Schedule(1, 9, tuple(sorted((*INNOCENT, GUILTY, ACCOMPLICE), key=lambda trouble: trouble.at)))


def judged(is_guilty: Callable[[Schedule], bool], kind: str = "two copies") -> Callable[[Schedule], Outcome]:
    def run(schedule: Schedule) -> Outcome:
        found = kind if is_guilty(schedule) else ""
        return Outcome(schedule, f"{found}: a sentence" if found else "", found, 1, 0, 0, 0.0, [])

    return run


def shortest(is_guilty: Callable[[Schedule], bool]) -> Schedule:
    run = judged(is_guilty)
    return shrink(run(WHOLE), run).schedule


def test_one_guilty_trouble_among_innocent_ones_is_what_is_left() -> None:
    assert shortest(lambda schedule: GUILTY in schedule.troubles) == Schedule(1, 2, (GUILTY,))


def test_two_that_are_guilty_together_both_stay() -> None:
    left = shortest(lambda schedule: GUILTY in schedule.troubles and ACCOMPLICE in schedule.troubles)
    assert left.troubles == (GUILTY, ACCOMPLICE)


def test_a_violation_that_needs_no_trouble_is_left_with_none() -> None:
    assert shortest(lambda _: True) == Schedule(1, 2, ())


def test_what_lasts_is_shortened_while_it_still_shows() -> None:
    left = shortest(lambda schedule: any(trouble.seconds > 10 for trouble in schedule.troubles))
    assert [trouble.seconds for trouble in left.troubles] == [16.0]
    left = shortest(lambda schedule: any(trouble.what == "cut off" for trouble in schedule.troubles))
    assert [trouble.seconds for trouble in left.troubles] == [0.0]


def test_it_happens_to_nobody_who_is_not_needed() -> None:
    split = Schedule(1, 7, (Trouble(20.0, "split", ("node-3", "node-1", "node-7", "node-2", "node-6")),))
    run = judged(lambda schedule: any({"node-3", "node-2"} <= set(each.who) for each in schedule.troubles))
    assert shrink(run(split), run).schedule == Schedule(1, 3, (Trouble(20.0, "split", ("node-3", "node-2")),))


def test_hosts_are_left_out_as_far_as_it_still_shows() -> None:
    assert shortest(lambda schedule: GUILTY in schedule.troubles and schedule.nodes >= 6).nodes == 6


def test_a_violation_of_another_kind_is_not_the_same() -> None:
    run = judged(lambda schedule: schedule == WHOLE)
    another = judged(lambda _: True, "needless reset")
    assert shrink(run(WHOLE), another).schedule == WHOLE


def test_it_ends_after_as_many_runs_as_it_may_take() -> None:
    runs: list[Schedule] = []

    def run(schedule: Schedule) -> Outcome:
        runs.append(schedule)
        return judged(lambda schedule: GUILTY in schedule.troubles)(schedule)

    shrink(run(WHOLE), run, most_runs=5)
    assert len(runs) == 1 + 5
