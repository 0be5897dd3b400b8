"""A host probes a few others, and suspects them after four misses in a row, never because of its own trouble."""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.agent.probing import (
    MAX_OWED,
    MISSES,
    NEAR_SECONDS,
    REGULAR_SECONDS,
    REPEAT_SECONDS,
    RINGS,
    Probing,
    targets,
)
from pp_hostd.model.reachability import ATTEMPT_SECONDS
from tests.agent.probers import everybodys_targets
from tests.harness.examples import tries
from tests.model.strategies import names as a_name

ABC = ("a", "b", "c")
examples = tries(100)


def run(probing: Probing, seconds: float, silent: set[str], begin: float = 0.0) -> list[tuple[float, str]]:
    """Lets it probe for so long: silent ones miss the deadline, others answer at once. Returns what was sent."""
    sent: list[tuple[float, str]] = []
    under_way: list[tuple[float, str]] = []
    while True:
        ends_at = min((at + ATTEMPT_SECONDS for at, _ in under_way), default=math.inf)
        now = min(ends_at, probing.next_at)
        if now > begin + seconds:
            return sent
        for at, name in [each for each in under_way if each[0] + ATTEMPT_SECONDS <= now]:
            under_way.remove((at, name))
            probing.ended(name, at, False, now)
        for name in probing.due(now):
            sent.append((now, name))
            if name in silent:
                under_way.append((now, name))
            else:
                probing.ended(name, now, True, now)


def suspects(probing: Probing) -> list[str]:
    return list(probing.suspects)


def silenced(*silent: str, names: tuple[str, ...] = ABC, seconds: float = 30.0) -> Probing:
    probing = Probing(names, 0.0)
    run(probing, seconds, set(silent))
    return probing


# Its targets.


@examples
@given(st.sets(a_name, min_size=1, max_size=40))
def test_each_host_probes_a_few_others_and_is_probed_by_some(drawn: set[str]) -> None:
    names = sorted(drawn)
    found = {name: targets(names, name) for name in names}
    for name, chosen in found.items():
        assert name not in chosen
        assert len(chosen) == len(set(chosen)) == min(RINGS, len(names) - 1)
    if len(names) > 1:
        assert {each for chosen in found.values() for each in chosen} == set(names)
    assert found == everybodys_targets(names)


def test_every_host_finds_the_same_rings_whatever_the_order_of_the_names() -> None:
    names = [f"host-{number}" for number in range(50)]
    assert targets(names, "host-7") == targets(names[::-1], "host-7")


def test_a_host_that_the_roster_does_not_list_probes_nobody() -> None:
    assert targets(["a", "b"], "x") == ()
    assert Probing((), 5.0).next_at == math.inf
    assert Probing((), 5.0).due(10.0) == []


def test_a_host_more_changes_few_targets() -> None:
    names = [f"host-{number}" for number in range(200)]
    before, after = everybodys_targets(names), everybodys_targets([*names, "new"])
    assert sum(before[name] != after[name] for name in names) <= 2 * RINGS


# The pace.


def test_one_target_after_the_other_is_probed_from_the_first_moment_on() -> None:
    sent = run(Probing(ABC, 0.7), 12.0, set())
    assert [at for at, _ in sent] == pytest.approx([0.7 + REGULAR_SECONDS * number for number in range(6)])
    assert sorted(name for _, name in sent) == ["a", "a", "b", "b", "c", "c"]


def test_a_target_that_misses_is_probed_again_soon_until_it_is_a_suspect() -> None:
    sent = [at for at, name in run(Probing(("a",), 0.0), 1.9, {"a"})]
    first_miss = ATTEMPT_SECONDS
    assert sent == pytest.approx([0.0, first_miss, first_miss + REPEAT_SECONDS, first_miss + 2 * REPEAT_SECONDS])


@examples
@given(st.integers(1, 4), st.integers(0, 2**32), st.floats(0, 1))
def test_over_time_no_more_than_one_probe_is_sent_in_each_period(count: int, seed: int, loss: float) -> None:
    """Whatever is lost: each outcome comes at the deadline."""
    chance = Random(seed)
    probing, now, sent = Probing([f"t{number}" for number in range(count)], 0.0), 0.0, 0
    waiting: list[tuple[float, str]] = []
    for _ in range(300):
        now = min([probing.next_at, *(at + ATTEMPT_SECONDS for at, _ in waiting)])
        for at, name in [each for each in waiting if each[0] + ATTEMPT_SECONDS <= now]:
            waiting.remove((at, name))
            probing.ended(name, at, chance.random() >= loss, now)
        due = probing.due(now)
        sent += len(due)
        waiting += [(now, name) for name in due]
    assert now > 60.0
    assert sent <= 1 + now / REGULAR_SECONDS + MAX_OWED


def test_a_process_that_stood_still_does_not_catch_up() -> None:
    probing = Probing(ABC, 0.0)
    assert len(probing.due(1000.0)) == 1
    assert probing.due(1000.0) == []
    assert probing.next_at == 1000.0 + REGULAR_SECONDS


@pytest.mark.parametrize("early_seconds", [-NEAR_SECONDS, -0.001, 0.001, NEAR_SECONDS])
def test_a_regular_probe_is_sent_with_what_wakes_the_agent_a_moment_earlier_or_later(early_seconds: float) -> None:
    probing = Probing(ABC, 10.0)
    assert probing.wake_at(10.0 - early_seconds) == 10.0 - early_seconds
    assert len(probing.due(10.0 - early_seconds)) == 1
    assert probing.wake_at(math.inf) >= 10.0 + REGULAR_SECONDS  # early ones bring no later one nearer


def test_a_regular_probe_waits_for_nothing_else() -> None:
    probing = Probing(ABC, 10.0)
    assert probing.wake_at(10.0 + 1.01 * NEAR_SECONDS) == 10.0
    assert probing.due(10.0 - 1.01 * NEAR_SECONDS) == []


def test_a_repeated_probe_waits_for_nothing() -> None:
    probing = Probing(("a",), 0.0)
    probing.due(0.0)
    probing.ended("a", 0.0, False, ATTEMPT_SECONDS)
    assert probing.wake_at(ATTEMPT_SECONDS + REPEAT_SECONDS / 2) == ATTEMPT_SECONDS


def test_probes_stay_beside_reads_that_come_ever_later() -> None:
    """A read begins every 4 s, or a little later. Between two reads the agent wakes up once more, for a probe."""
    probing, now, wakes = Probing(ABC, 0.1), 0.0, 0
    for number in range(2000):
        read_at = 4.003 * number
        while now < read_at:
            probing.due(now)
            now, wakes = probing.wake_at(read_at), wakes + 1
    assert wakes <= 2 * 2000


@examples
@given(st.lists(st.floats(0, REGULAR_SECONDS), min_size=50, max_size=50))
def test_an_agent_that_wakes_often_sends_no_more_probes(pauses: list[float]) -> None:
    probing, now, sent = Probing(ABC, 0.0), 0.0, 0
    for pause_seconds in pauses:
        sent += len(probing.due(now))
        now = probing.wake_at(now + pause_seconds)
    assert sent <= 1 + (now + NEAR_SECONDS) / REGULAR_SECONDS


def test_a_failure_at_once_is_repeated_no_sooner_than_one_at_the_deadline() -> None:
    probing = Probing(("a",), 0.0)
    sent = []
    for _ in range(MISSES):
        now = probing.next_at
        sent += [now for _ in probing.due(now)]
        probing.ended("a", now, False, now)
    assert sent == pytest.approx([0.0, *(ATTEMPT_SECONDS + REPEAT_SECONDS * number for number in range(MISSES - 1))])
    assert suspects(probing) == ["a"]


# Its suspects.


def test_a_silent_target_is_suspected_and_the_others_are_not() -> None:
    assert suspects(silenced("b")) == ["b"]
    assert suspects(silenced()) == []


def test_four_misses_in_a_row_are_needed() -> None:
    probing = Probing(ABC, 0.0)
    for number in range(3 * MISSES):
        assert suspects(probing) == []
        probing.ended("a", float(number), number % MISSES == 0, number + 1.0)
    probing.ended("a", 20.0, False, 21.0)
    assert suspects(probing) == ["a"]


def test_a_target_is_suspected_soon_after_its_first_missed_probe() -> None:
    assert suspects(silenced("a", names=("a",), seconds=2.49)) == []
    assert suspects(silenced("a", names=("a",), seconds=2.5)) == ["a"]


def test_one_success_ends_a_suspicion_and_an_older_miss_does_not_renew_it() -> None:
    probing = silenced("a")
    probing.ended("a", 100.0, True, 100.1)
    assert suspects(probing) == []
    for _ in range(MISSES):
        probing.ended("a", 99.9, False, 100.9)
    assert suspects(probing) == []
    assert probing.next_at > 30.0


def test_a_suspect_is_probed_on_at_the_regular_pace() -> None:
    sent = run(silenced("a", names=("a",)), 20.0, {"a"}, 30.0)
    assert 9 <= len(sent) <= 11


@pytest.mark.parametrize("finding", [None, False])
def test_outcomes_that_say_nothing_about_the_target_count_for_nothing(finding: bool | None) -> None:
    """Those that could not be made, and those that come so late that this process must have stood still."""
    probing = Probing(("a",), 0.0)
    for number in range(10):
        probing.ended("a", 10.0 * number, finding, 10.0 * number + (ATTEMPT_SECONDS + 1.1 if finding is False else 0))
    assert suspects(probing) == []
    assert probing.next_at == 0.0


def test_outcomes_of_targets_that_left_count_for_nothing_and_those_that_stay_are_known() -> None:
    probing = silenced("a", "b")
    probing.retarget(["b", "d"])
    assert (probing.targets, suspects(probing)) == (("b", "d"), ["b"])
    probing.ended("a", 40.0, False, 41.0)
    assert suspects(probing) == ["b"]
    probing.retarget([])
    assert (suspects(probing), probing.next_at) == ([], math.inf)


# It may be this host.


def test_a_host_to_which_all_are_silent_suspects_nobody_unless_it_reads_the_api() -> None:
    probing = silenced(*ABC)
    assert suspects(probing) == ["a", "b", "c"]
    probing.reads(False, 30.0)
    assert suspects(probing) == []


def test_a_host_whose_reads_fail_suspects_the_one_that_is_silent_among_others() -> None:
    probing = silenced("b")
    probing.reads(False, 30.0)
    assert suspects(probing) == ["b"]


def test_of_two_hosts_each_suspects_the_other() -> None:
    probing = silenced("a", names=("a",))
    probing.reads(False, 30.0)
    assert suspects(probing) == ["a"]


@pytest.mark.parametrize("first", ["reads", "probe"])
def test_a_host_that_was_cut_off_suspects_nobody_for_what_it_missed_meanwhile(first: str) -> None:
    probing = Probing(ABC, 0.0)
    probing.reads(False, 0.0)
    run(probing, 30.0, set(ABC))
    if first == "reads":
        probing.reads(True, 30.0)
    else:
        probing.ended("a", 30.0, True, 30.0)
    assert suspects(probing) == []
    for name in ABC:  # sent before it was plugged in again
        probing.ended(name, 29.5, False, 30.5)
    assert suspects(probing) == []
    probing.reads(True, 30.5)
    probing.ended("b", 31.0, False, 32.0)
    assert suspects(probing) == ["b"]
