"""Rules 1 and 2 of the design, sentence by sentence: what is proof, and how long it feeds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pp_hostd.model.answer import Health
from pp_hostd.model.condemnation import Requested
from pp_hostd.model.evidence import Read, WatchedCondemned
from pp_hostd.model.inquiry import Inquiry
from pp_hostd.model.memory import LastRead, Lifted, Memory, Outage, Proof, Source
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings
from pp_hostd.model.verdict import State
from pp_hostd.timing import FAILED_READS
from tests.agent.judging import (
    PROVEN,
    START,
    UID,
    VirtualHost,
    answered,
    fails,
    inquiring,
    machine,
    roster,
    shows,
    standing,
)
from tests.agent.judging import (
    judged_host as host,
)

# Rule 1


def test_a_read_that_finds_the_machine_not_condemned_is_proof_from_when_it_was_sent() -> None:
    lived = host()
    lived.learn(Read(START + 2, START + 3.5, machine()))
    assert lived.verdict.proof == Proof(START + 2, Source.OWN_READ)
    assert lived.verdict.feed_until_at == START + 2 + 22


def test_a_machine_that_is_requested_and_not_yet_condemned_is_proof() -> None:
    lived = host()
    lived.learn(Read(START + 2, START + 3, replace(machine(), condemnation=Requested(3))))
    assert lived.verdict.proof == Proof(START + 2, Source.OWN_READ)
    assert lived.memory.lifted == (Lifted(UID, 3),)


@pytest.mark.parametrize(
    ("read", "why"),
    [
        (Read(START + 1, START + 2, missing=True), "does not exist"),
        (Read(START + 1, START + 2, machine(), missing=True), "does not exist"),
        (Read(START + 1, START + 2, machine(uid="another")), "another uid"),
        (Read(START + 1, START + 2, machine(uid="another", condemned=7)), "another uid"),
        (
            Read(START + 1, START + 2, replace(machine(), condemnation=Unreadable("the time", "it is no time"))),
            "it is no time",
        ),
        (Read(START + 1, START + 2, failure="timed out"), "timed out"),
        (Read(START + 1, START + 2), "no machine"),
    ],
)
def test_what_proves_nothing_is_a_failed_read(read: Read, why: str) -> None:
    lived = host(now=START + 2)
    lived.learn(read)
    assert lived.verdict.proof == PROVEN.proof
    assert lived.memory.failed_reads == 1
    assert lived.verdict.state is State.SUSPECT
    assert lived.verdict.reset is None
    assert why in lived.verdict.sentence


def test_any_uid_proves_while_none_is_promised() -> None:
    lived = host()
    lived.standing = replace(standing(armed=False), machine_uid=None)
    lived.learn(Read(START + 0.5, START + 1, machine(uid="another")))
    assert lived.verdict.proof == Proof(START + 0.5, Source.OWN_READ)


def test_a_late_answer_is_dated_by_when_it_was_sent() -> None:
    lived = host(now=START + 30)
    lived.learn(Read(START + 9, START + 29, machine()))
    assert lived.verdict.proof == Proof(START + 9, Source.OWN_READ)
    assert lived.verdict.reset is None


def test_a_read_that_a_younger_proof_overtook_changes_nothing_but_what_is_known_lifted() -> None:
    outage = Outage(START + 12, START + 20, "")
    younger = replace(inquiring(), proof=Proof(START + 12, Source.OUTAGE), outage=outage)
    lived = host(younger, now=START + 14)
    lived.learn(Read(START + 11, START + 14, machine(last_id=4)))
    assert lived.memory.proof == younger.proof
    assert lived.memory.inquiry == younger.inquiry
    assert lived.memory.outage == outage
    assert lived.memory.lifted == (Lifted(UID, 4),)


def test_a_peers_healthy_is_proof_from_when_it_was_asked() -> None:
    lived = host(inquiring(), now=START + 15)
    lived.learn(answered("peer-1", Health.HEALTHY))
    assert lived.verdict.proof == Proof(START + 14, Source.PEER, "peer-1")
    assert lived.memory.inquiry is None


@pytest.mark.parametrize(("health", "id"), [(Health.UNHEALTHY, 6), (Health.NOT_FOUND, None)])
def test_where_machines_are_nodes_a_peers_not_found_weighs_like_unhealthy(health: Health, id: int | None) -> None:
    lived = host(inquiring(), now=START + 15)
    assert lived.learn(answered("peer-1", health, id), answered("peer-2", None)).reset is None
    lived.now = START + 16
    decision = lived.learn().reset
    assert decision is not None
    assert decision.id == id
    assert health.value in lived.verdict.sentence


WATCHED = WatchedCondemned(UID, 5, START + 1)


def test_what_a_watch_reports_is_read_at_once_and_the_host_is_fed_meanwhile() -> None:
    verdict = host().learn(WATCHED)
    assert (verdict.reset, verdict.read, verdict.feed) == (None, True, True)


def test_a_read_under_way_does_not_delay_the_one_that_a_watch_calls_for() -> None:
    lived = host(replace(PROVEN, reading_since=START + 0.75))
    assert lived.learn(WATCHED).read
    assert not lived.learn(Read(START + 0.75, START + 1, machine(last_id=4))).read
    assert lived.memory.watched == WATCHED


def test_a_watch_condemns_once_a_later_read_finds_the_same() -> None:
    lived = host()
    lived.learn(WATCHED)
    lived.learn(Read(START + 1, START + 1.5, machine(condemned=5)))
    assert lived.verdict.reset is not None
    assert (lived.verdict.reset.id, lived.verdict.state) == (5, State.RESETTING)


@pytest.mark.parametrize("last_id", [5, 0], ids=["its id is left", "its id was removed too"])
def test_a_watch_does_not_condemn_a_host_whose_next_read_acquits_it(last_id: int) -> None:
    lived = host()
    lived.learn(WATCHED)
    lived.learn(Read(START + 1, START + 1.5, machine(last_id=last_id)))
    assert (lived.verdict.reset, lived.verdict.state) == (None, State.HEALTHY)
    assert lived.memory.watched is None


@pytest.mark.parametrize("failure", ["timed out", "503 Service Unavailable"])
def test_a_watch_condemns_where_three_reads_in_a_row_can_not_tell_otherwise(failure: str) -> None:
    lived, api = host(), Settings().api
    lived.api = fails(lambda: 1.0, failure)
    lived.learn(WATCHED)
    third_at = START + 1 + 2 * (1 + api.retry_seconds)
    lived.run(third_at + 0.9 - lived.now)
    assert (lived.memory.watched_failures, lived.verdict.reset, lived.verdict.feed) == (2, None, True)
    lived.run(1)
    assert lived.verdict.reset is not None
    assert (lived.verdict.reset.id, lived.verdict.reset.at) == (5, third_at + 1)


def test_a_watch_does_not_condemn_a_host_whose_second_read_acquits_it() -> None:
    lived = host()
    lived.learn(WATCHED)
    lived.run(Settings().api.read_deadline_seconds)
    lived.api = shows(machine(last_id=5))
    lived.run(1 + Settings().api.retry_seconds)
    assert (lived.memory.watched, lived.memory.watched_failures, lived.verdict.state) == (None, 0, State.HEALTHY)


def test_reads_that_failed_before_a_watch_reported_say_nothing_of_its_news() -> None:
    lived = host(replace(inquiring(), failed_reads=3), now=START + 15)
    lived.learn(replace(WATCHED, at=START + 15))
    assert lived.learn(Read(START + 14, START + 15, failure="timed out")).reset is None
    assert lived.learn(Read(START + 15, START + 15.5, failure="timed out")).reset is None


def test_an_answer_that_neither_condemns_nor_acquits_leaves_the_watch_its_word() -> None:
    lived = host()
    lived.learn(WATCHED)
    unreadable = replace(machine(), condemnation=Unreadable("the condemnation", "no time"))
    assert lived.learn(Read(START + 1, START + 1, unreadable)).reset is not None


def test_a_peer_that_reads_later_acquits_of_what_a_watch_reported() -> None:
    lived = host(inquiring(), now=START + 15)
    lived.learn(replace(WATCHED, at=START + 13))
    lived.learn(answered("peer-1", Health.HEALTHY))
    assert (lived.memory.watched, lived.verdict.state) == (None, State.HEALTHY)


def test_a_peer_that_was_asked_before_does_not_acquit_of_it() -> None:
    lived = host(inquiring(), now=START + 15)
    lived.learn(replace(WATCHED, at=START + 14.5))
    lived.learn(answered("peer-1", Health.HEALTHY))
    assert lived.memory.watched is not None


def test_reads_that_never_end_keep_no_host_from_what_a_watch_reports() -> None:
    lived = host()
    lived.api = fails(lambda: 1000.0)
    lived.learn(WATCHED)
    lived.run(Settings().agent.self_timeout_seconds)
    assert lived.verdict.reset is not None
    assert (lived.verdict.reset.id, lived.memory.watched_failures) == (5, FAILED_READS)


def test_a_restart_reads_again_what_a_watch_reported() -> None:
    lived = host()
    lived.learn(WATCHED)
    lived.run(Settings().api.read_deadline_seconds)
    lived.restart(Settings().api.retry_seconds)
    assert (lived.memory.watched, lived.memory.watched_failures, lived.verdict.read) == (WATCHED, 1, True)


def test_one_accuser_does_not_reset_a_host_that_a_majority_keeps_up() -> None:
    lived = host(inquiring(), n=5, now=START + 15)
    accuser, others = answered("peer-1", Health.UNHEALTHY, 6), ("peer-2", "peer-3")
    lived.memory = replace(lived.memory, inquiry=Inquiry(START + 12, 0, 4, START + 14, roster(5)[1:], 4))
    lived.learn(accuser, *(answered(name, Health.API_ERROR) for name in others), answered("peer-4", None))
    lived.now = START + 16
    assert lived.learn().state is State.OUTAGE


def test_a_watch_on_another_uid_condemns_nobody() -> None:
    assert host().learn(WatchedCondemned("another", 5, START + 1)).reset is None


# Rule 1: a missing machine beside an untouched Node

MISSING = Read(START + 1, START + 2, missing=True, machine_key="metal/worker-1")
REPLACED = Read(START + 1, START + 2, machine(uid="another"), machine_key="metal/worker-1")


def left_alone(read: Read, untouched_at: float, *, armed: bool = True) -> VirtualHost:
    """A host that reads so, and whose Node was then found untouched by a read that began at that moment."""
    lived = host(now=START + 4)
    lived.standing = replace(standing(armed=armed), machine="metal/worker-1", untouched_at=untouched_at)
    lived.learn(read)
    return lived


@pytest.mark.parametrize("read", [MISSING, REPLACED], ids=["not found", "another uid"])
@pytest.mark.parametrize("armed", [True, False])
def test_a_missing_machine_and_then_an_untouched_node_are_proof_dated_by_the_first(read: Read, armed: bool) -> None:
    lived = left_alone(read, START + 2, armed=armed)
    assert lived.verdict.proof == Proof(START + 1, Source.OWN_READ)
    assert (lived.memory.machine_gone, lived.memory.failed_reads) == (True, 0)


def test_a_node_that_was_read_before_the_machine_was_missing_proves_nothing() -> None:
    lived = left_alone(MISSING, START + 1.5)
    assert lived.memory.proof == PROVEN.proof
    assert (lived.memory.machine_gone, lived.memory.failed_reads) == (False, 1)


def test_a_path_that_is_not_served_is_a_failed_read_whatever_the_node_says() -> None:
    lived = left_alone(
        Read(START + 1, START + 2, failure="404 page not found", machine_key="metal/worker-1"), START + 3
    )
    assert (lived.memory.machine_gone, lived.memory.proof) == (False, PROVEN.proof)


def test_another_machine_than_the_roster_names_may_be_missing_without_proof() -> None:
    lived = left_alone(replace(MISSING, machine_key="metal/worker-2"), START + 3)
    assert (lived.memory.machine_gone, lived.memory.proof) == (False, PROVEN.proof)


def test_a_machine_that_is_back_is_no_longer_gone() -> None:
    lived = left_alone(MISSING, START + 2)
    lived.learn(Read(START + 4, START + 4.5, machine(), machine_key="metal/worker-1"))
    assert not lived.memory.machine_gone


def test_a_condemned_machine_is_not_missing_to_a_host_that_has_promised_on_none_yet() -> None:
    lived = host(now=START + 4)
    unpromised = replace(standing(armed=False), machine_uid=None)
    lived.standing = replace(unpromised, machine="metal/worker-1", untouched_at=START + 3)
    lived.learn(Read(START + 1, START + 2, machine(condemned=5), machine_key="metal/worker-1"))
    assert (lived.memory.machine_gone, lived.memory.condemned_id) == (False, 5)


def test_a_condemnation_that_a_watch_reported_outweighs_a_machine_that_is_missing_since() -> None:
    lived = host(now=START + 1)
    lived.standing = replace(standing(), machine="metal/worker-1", untouched_at=START + 3)
    lived.learn(WATCHED)
    assert lived.learn(MISSING).reset is not None


def told_of_no_machine(*, untouched_at: float) -> VirtualHost:
    """A host to whom one peer says "not-found" and the other one nothing; its own last read failed."""
    failed = replace(inquiring(), last_read=LastRead(START + 11, START + 12, "timed out"))
    lived = host(failed, now=START + 15)
    lived.standing = replace(standing(), machine="metal/worker-1", untouched_at=untouched_at)
    lived.learn(answered("peer-1", Health.NOT_FOUND), answered("peer-2", None))
    lived.now = START + 16
    lived.learn()
    return lived


def test_a_host_whose_machine_a_peer_does_not_find_reads_before_it_is_condemned_and_may_find_proof() -> None:
    lived = told_of_no_machine(untouched_at=START + 18)
    assert (lived.verdict.reset, lived.verdict.read, lived.verdict.feed) == (None, True, True)
    lived.now = START + 18
    lived.learn(Read(START + 16, START + 17, missing=True, machine_key="metal/worker-1"))
    assert lived.verdict.proof == Proof(START + 16, Source.OWN_READ)
    assert lived.memory.machine_gone


def test_a_host_whose_machine_a_peer_does_not_find_and_that_reads_nothing_dies_by_its_self_timeout() -> None:
    lived = told_of_no_machine(untouched_at=START).run(60)
    assert lived.verdict.reset is not None
    assert lived.verdict.reset.at <= START + 22


# Rule 2


def test_the_host_is_fed_until_just_before_its_proof_is_as_old_as_the_self_timeout() -> None:
    assert host(now=START + 21.999).learn().feed
    assert not host(now=START + 22).learn().feed


def test_at_the_self_timeout_the_host_decides_to_reset() -> None:
    lived = host(now=START + 22)
    lived.learn()
    assert lived.verdict.reset is not None
    assert "no proof for 22 s" in lived.verdict.sentence


def test_the_next_judgement_is_due_at_the_self_timeout_at_the_latest() -> None:
    assert host(now=START + 21.5).learn().wake_at == START + 22


def test_the_next_judgement_is_due_when_the_round_is_over_at_the_latest() -> None:
    assert host(inquiring(), now=START + 15).learn().wake_at == START + 16


def test_the_shortest_promised_self_timeout_counts() -> None:
    lived = host(now=START + 8)
    lived.standing = replace(lived.standing, self_timeout_seconds=8.0)
    lived.learn()
    assert not lived.verdict.feed
    assert lived.verdict.reset is not None


def test_an_unarmed_host_is_not_fed_and_never_resets_for_want_of_proof() -> None:
    lived = host()
    lived.standing = replace(standing(armed=False), waiting_for="its roster")
    lived.run(600)
    assert not any(verdict.feed or verdict.reset or verdict.ask for verdict in lived.verdicts)
    assert lived.verdict.state is State.WAITING
    assert lived.verdict.sentence == "not armed: its roster"


def test_an_armed_host_is_not_fed_before_its_first_proof() -> None:
    lived = host(Memory())
    lived.learn()
    assert not lived.verdict.feed
    assert lived.verdict.read
    assert lived.verdict.state is State.SUSPECT


def test_a_proof_of_the_future_feeds_nobody() -> None:
    assert not host(replace(PROVEN, proof=Proof(START + 2, Source.OWN_READ))).learn().feed
