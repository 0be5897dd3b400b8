"""Rule 4: what an agent remembers of condemned machines, and what it answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timezone

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pp_hostd.agent.witness import ReadOutcome, Statement, Unread, Witness
from pp_hostd.model.answer import Health
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.machine import Machine
from pp_hostd.model.record import Unreadable
from tests.model.strategies import examples

SUBJECT, UID = "metal/worker-1", "uid-1"
SINCE = datetime(2026, 3, 1, tzinfo=timezone.utc)


def machine(condemnation: Condemned | NotRequested | Requested | Unreadable, uid: str = UID) -> Machine:
    return Machine("metal", "worker-1", uid, "1", condemnation, None)


FREE, ASKED_FOR = machine(NotRequested(0)), machine(Requested(0))
UNCLEAR = machine(Unreadable("the condemnation", "it contradicts itself"))


def condemned(condemnation_id: int) -> Machine:
    return machine(Condemned(condemnation_id, SINCE))


def listed_witness() -> Witness:
    witness = Witness("t")
    witness.listed()
    return witness


def said(witness: Witness, outcome: ReadOutcome, began_at: float, now: float, uid: str = UID) -> Statement:
    return witness.answer(SUBJECT, uid, outcome, began_at=began_at, now=now)


def test_before_the_condemned_are_listed_every_answer_is_api_error() -> None:
    witness = Witness("t")
    witness.learned(SUBJECT, UID, 1, 0)
    for outcome in (FREE, condemned(1), Unread.NOT_FOUND, Unread.FAILED):
        assert said(witness, outcome, 1, 2).health is Health.API_ERROR


@pytest.mark.parametrize("outcome", [FREE, ASKED_FOR])
def test_a_machine_that_is_not_condemned_is_healthy(outcome: Machine) -> None:
    assert said(listed_witness(), outcome, 1, 2) == Statement(Health.HEALTHY, None, "t.0")


def test_a_healthy_names_the_last_condemnation_that_was_lifted() -> None:
    assert said(listed_witness(), machine(NotRequested(7)), 1, 2).lifted_id == 7


def test_a_condemned_machine_is_unhealthy_with_its_id() -> None:
    assert said(listed_witness(), condemned(7), 1, 2) == Statement(Health.UNHEALTHY, 7, "t.1")


@pytest.mark.parametrize("outcome", [Unread.FAILED, UNCLEAR])
def test_a_read_of_no_use_is_api_error_about_a_machine_that_is_not_remembered(outcome: ReadOutcome) -> None:
    assert said(listed_witness(), outcome, 1, 2) == Statement(Health.API_ERROR, None, "t.0")


@pytest.mark.parametrize("outcome", [Unread.FAILED, UNCLEAR])
def test_a_read_of_no_use_is_unhealthy_about_one_that_is(outcome: ReadOutcome) -> None:
    witness = listed_witness()
    witness.learned(SUBJECT, UID, 7, 1)
    assert said(witness, outcome, 2, 3) == Statement(Health.UNHEALTHY, 7, "t.1")


@pytest.mark.parametrize("outcome", [Unread.NOT_FOUND, machine(NotRequested(0), uid="uid-2")])
def test_a_machine_that_is_gone_or_another_is_not_found_and_not_forgotten(outcome: ReadOutcome) -> None:
    witness = listed_witness()
    witness.learned(SUBJECT, UID, 7, 1)
    assert said(witness, outcome, 2, 3).health is Health.NOT_FOUND
    assert said(witness, Unread.FAILED, 4, 5) == Statement(Health.UNHEALTHY, 7, "t.1")


def test_only_a_read_begun_after_it_was_learned_acquits() -> None:
    witness = listed_witness()
    witness.learned(SUBJECT, UID, 7, 5)
    assert said(witness, FREE, 4, 6).health is Health.UNHEALTHY
    assert said(witness, FREE, 6, 7).health is Health.UNHEALTHY  # begun no later than the answer above
    assert said(witness, FREE, 7.5, 8).health is Health.HEALTHY
    assert said(witness, Unread.FAILED, 9, 10).health is Health.API_ERROR


def test_a_watch_that_tells_late_of_a_condemnation_convicts_nobody_whom_a_read_has_found_acquitted_of_it() -> None:
    witness = listed_witness()
    witness.learned(SUBJECT, UID, 7, 5)  # the network held the event back, and has let it through now
    assert said(witness, machine(NotRequested(6)), 4, 6).health is Health.UNHEALTHY
    assert said(witness, machine(NotRequested(7)), 5, 7).health is Health.HEALTHY
    assert said(witness, Unread.FAILED, 8, 9).health is Health.API_ERROR


def test_an_acknowledgement_counts_like_learning() -> None:
    witness = listed_witness()
    witness.learned(SUBJECT, UID, 7, 1)
    assert said(witness, Unread.FAILED, 2, 5).health is Health.UNHEALTHY
    assert said(witness, FREE, 3, 6).health is Health.UNHEALTHY


def test_a_watch_that_reports_a_lower_id_is_late() -> None:
    witness = listed_witness()
    witness.learned(SUBJECT, UID, 7, 1)
    witness.learned(SUBJECT, UID, 6, 2)
    assert said(witness, Unread.FAILED, 3, 4).id == 7


def test_a_read_replaces_an_id_by_a_lower_one_if_it_began_after_that_was_learned() -> None:
    witness = listed_witness()
    witness.learned(SUBJECT, UID, 7, 2)
    assert said(witness, condemned(5), 1, 3).id == 7
    assert said(witness, condemned(5), 4, 5).id == 5
    assert said(witness, condemned(8), 6, 7).id == 8


def test_a_read_that_found_another_id_lifted_clears_only_what_was_learned_before_it() -> None:
    witness = listed_witness()
    witness.learned(SUBJECT, UID, 7, 2)
    assert said(witness, machine(NotRequested(9)), 1, 3).health is Health.UNHEALTHY
    assert said(witness, machine(NotRequested(9)), 4, 5).health is Health.HEALTHY


def test_whose_own_machine_is_missing_confirms_nobody_and_accuses_only_whom_it_knows_condemned() -> None:
    witness = listed_witness()
    witness.own_missing = True
    assert said(witness, Unread.NOT_FOUND, 1, 2).health is Health.API_ERROR
    assert said(witness, machine(NotRequested(7)), 3, 4).health is Health.API_ERROR
    assert said(witness, condemned(8), 5, 6).id == 8
    assert said(witness, Unread.NOT_FOUND, 7, 8).id == 8


def test_a_token_lasts_as_long_as_the_memory_of_that_machine() -> None:
    witness = listed_witness()
    first = said(witness, condemned(7), 1, 2).token
    witness.learned("metal/worker-2", "uid-2", 3, 3)
    assert said(witness, Unread.FAILED, 4, 5).token == first
    assert said(witness, FREE, 6, 7).health is Health.HEALTHY
    assert said(witness, condemned(7), 8, 9).token != first
    other = witness.answer("metal/worker-2", "uid-2", Unread.FAILED, began_at=9, now=10).token
    assert other not in (first, said(witness, Unread.FAILED, 10, 11).token)


def test_a_restarted_agent_has_other_tokens() -> None:
    tokens = set()
    for process in ("a", "b"):
        witness = Witness(process)
        witness.listed()
        tokens.add(said(witness, condemned(7), 1, 2).token)
    assert len(tokens) == 2


def test_the_same_name_with_another_uid_is_another_machine() -> None:
    witness = listed_witness()
    witness.learned(SUBJECT, "uid-old", 7, 1)
    assert said(witness, FREE, 0, 2).health is Health.HEALTHY
    assert said(witness, Unread.FAILED, 3, 4, uid="uid-old").id == 7


def test_memory_is_bounded_and_what_was_evicted_has_another_token() -> None:
    witness = Witness("t", max_remembered=2)
    witness.listed()
    first = said(witness, condemned(7), 1, 2).token
    witness.learned("b", "b", 1, 3)
    assert said(witness, Unread.FAILED, 4, 5).token == first  # so "b" is now the longest not heard of
    witness.learned("c", "c", 1, 6)
    assert said(witness, Unread.FAILED, 7, 8).token == first
    assert witness.answer("b", "b", Unread.FAILED, began_at=9, now=10).health is Health.API_ERROR
    witness.learned("d", "d", 1, 11)
    witness.learned("e", "e", 1, 12)
    assert said(witness, condemned(7), 13, 14).token != first


@dataclass
class Life:
    """A witness with reads that overlap in time, and all that it ever said of one machine."""

    witness: Witness = field(default_factory=listed_witness)
    now: float = 0.0
    reads: list[float] = field(default_factory=list)
    said: list[tuple[float, float, Statement]] = field(default_factory=list)

    def step(self, word: str, number: int) -> None:
        self.now += 1
        if word == "begin":
            self.reads.append(self.now)
        elif word == "learn":
            self.witness.learned(SUBJECT, UID, number, self.now)
        elif self.reads:
            began_at = self.reads.pop(number % len(self.reads))
            outcomes: dict[str, ReadOutcome] = {"free": FREE, "failed": Unread.FAILED, "unclear": UNCLEAR}
            outcome = outcomes.get(word, condemned(number))
            self.said.append((began_at, self.now, said(self.witness, outcome, began_at, self.now)))


ends = ["free", "condemned", "failed", "unclear"]
steps = st.lists(st.tuples(st.sampled_from(["begin", "begin", "learn", *ends]), st.integers(1, 5)), max_size=60)


# A read that acquits is followed by one that began before the acknowledgement and ends late: it is as true as ever.
OVERTAKEN = [("begin", 1), ("begin", 1), ("condemned", 1), ("begin", 1), ("free", 1), ("free", 1)]


def lived(script: list[tuple[str, int]]) -> Life:
    life = Life()
    for word, number in script:
        life.step(word, number)
    return life


@examples
@given(steps)
@example(OVERTAKEN[:3] + OVERTAKEN[-1:])
@example(OVERTAKEN)
def test_after_an_acknowledgement_a_read_begun_after_it_is_the_first_to_acquit(script: list[tuple[str, int]]) -> None:
    life = lived(script)
    for _, acknowledged_at, statement in life.said:
        later = [(began_at, at, said.health) for began_at, at, said in life.said if at > acknowledged_at]
        first = next((began_at for began_at, _, health in later if health is Health.HEALTHY), math.inf)
        assert statement.health is not Health.UNHEALTHY or first > acknowledged_at


@examples
@given(steps)
def test_between_two_acknowledgements_with_one_token_nobody_was_told_healthy(script: list[tuple[str, int]]) -> None:
    life = lived(script)
    acknowledged = [(at, said.token) for _, at, said in life.said if said.health is Health.UNHEALTHY]
    healthy = [at for _, at, said in life.said if said.health is Health.HEALTHY]
    for first, token in acknowledged:
        for second, other in acknowledged:
            if token == other:
                assert not any(first < at < second for at in healthy)


@examples
@given(steps)
def test_an_answer_has_an_id_exactly_when_it_is_unhealthy(script: list[tuple[str, int]]) -> None:
    assert all((said.id is not None) == (said.health is Health.UNHEALTHY) for _, _, said in lived(script).said)


@examples
@given(steps)
def test_ids_acknowledged_under_one_token_only_grow(script: list[tuple[str, int]]) -> None:
    last: dict[str, int] = {}
    for _, _, statement in lived(script).said:
        if statement.id is not None:
            assert statement.id >= last.get(statement.token, 0)
            last[statement.token] = statement.id
