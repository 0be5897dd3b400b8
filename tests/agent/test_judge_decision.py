"""Rules 6 and 7 of the design, as far as the judge keeps them, and when it reads."""

from __future__ import annotations

from dataclasses import replace

from pp_hostd.model.answer import Health
from pp_hostd.model.evidence import LinkChanged, Read, WatchedCondemned
from pp_hostd.model.memory import Decision, LastRead, Memory
from pp_hostd.model.settings import Settings
from pp_hostd.model.verdict import State
from tests.agent.judging import (
    PROVEN,
    START,
    UID,
    answered,
    dry_run,
    each,
    inquiring,
    machine,
    says,
    shows,
    standing,
)
from tests.agent.judging import (
    judged_host as host,
)

SETTINGS = Settings()


# Rule 6, as far as the judge knows it


def test_an_unarmed_host_that_is_condemned_waits_until_a_read_finds_it_lifted() -> None:
    lived = host()
    lived.standing = standing(armed=False)
    lived.learn(Read(START, START + 1, machine(condemned=5)))
    assert (lived.verdict.state, lived.verdict.reset) == (State.CONDEMNED, None)
    assert "id 5" in lived.verdict.sentence
    lived.learn(Read(START + 1, START + 1, machine(last_id=5)))
    assert lived.verdict.state is State.WAITING


def test_an_unarmed_host_reads_no_faster_than_a_well_one_after_three_failures() -> None:
    lived = host(Memory())
    lived.standing = standing(armed=False)
    lived.run(60)
    reads = [verdict.at for verdict in lived.verdicts if verdict.read]
    assert [late - soon for soon, late in zip(reads, reads[1:])][:4] == [3, 3, 4, 4]


# Rule 7


def test_from_the_decision_on_nothing_talks_the_host_out_of_it() -> None:
    lived = host()
    decision = lived.learn(Read(START + 0.5, START + 1, machine(condemned=5))).reset
    assert decision is not None
    lived.api, lived.peer = shows(machine(last_id=5)), says(Health.HEALTHY)
    for _ in range(20):
        lived.now += 1
        lived.learn(Read(lived.now - 0.5, lived.now, machine(last_id=5)), WatchedCondemned(UID, 9, lived.now))
        assert (lived.verdict.reset, lived.verdict.feed) == (decision, False)


def test_once_it_has_decided_the_host_asks_nobody() -> None:
    lived = host(replace(PROVEN, failed_reads=3, decision=Decision(START, "its machine is condemned", 5)))
    assert lived.learn().ask == ()


def test_a_decision_outlives_a_restart() -> None:
    lived = host()
    decision = lived.learn(Read(START + 0.5, START + 1, machine(condemned=5))).reset
    assert decision is not None
    lived.restart()
    assert lived.verdict.reset == decision


def test_in_a_dry_run_a_later_proof_pardons_and_an_earlier_one_does_not() -> None:
    lived = host()
    lived.settings = dry_run(SETTINGS)
    lived.learn(Read(START + 1, START + 2, machine(condemned=5)))
    assert "would reset this host (dry run)" in lived.verdict.sentence
    assert lived.learn(Read(START + 2, START + 3, machine(last_id=4))).reset is not None
    assert lived.learn(Read(START + 2.5, START + 3, machine(last_id=5))).state is State.HEALTHY


# When to read


def test_a_change_of_the_link_is_checked_at_once_and_once() -> None:
    lived = host(now=START + 2)
    lived.api = shows(machine())
    assert lived.learn(LinkChanged(START + 2)).read
    reads = [verdict.at for verdict in lived.run(9).verdicts if verdict.read]
    assert reads == [START + 2, START + 6, START + 10]


def test_an_armed_host_that_knows_no_peers_goes_on_trying_fast() -> None:
    lived = host(n=1)
    reads = [verdict.at for verdict in lived.run(20).verdicts if verdict.read]
    assert reads == [START + 4 + 3 * number for number in range(6)]


def test_a_flapping_link_costs_one_read_in_each_pause() -> None:
    lived = host()
    lived.api = shows(machine())
    for _ in range(200):
        lived.run(0.05)
        lived.learn(LinkChanged(lived.now))
    reads = [verdict.at for verdict in lived.verdicts if verdict.read]
    assert len(reads) == 10
    assert all(late - soon >= SETTINGS.api.retry_seconds for soon, late in zip(reads, reads[1:]))


def test_after_a_peer_has_vouched_the_next_read_is_as_far_away_as_after_a_read() -> None:
    lived = host(inquiring(), now=START + 15)
    lived.learn(answered("peer-1", Health.HEALTHY))
    reads = [verdict.at for verdict in lived.run(10).verdicts if verdict.read]
    assert reads[0] == START + 18


def test_a_read_that_failed_beside_the_inquiry_does_not_put_that_off() -> None:
    lived = host(inquiring(), now=START + 15)
    lived.settings = replace(SETTINGS, api=replace(SETTINGS.api, retry_seconds=5))
    lived.learn(Read(START + 14.5, START + 15, failure="timed out"), answered("peer-1", Health.HEALTHY))
    reads = [verdict.at for verdict in lived.run(10).verdicts if verdict.read]
    assert reads[0] == START + 18


def test_a_read_that_never_ends_has_failed_after_twice_its_deadline() -> None:
    lived = host(replace(PROVEN, reading_since=START + 4), now=START + 7.9)
    assert lived.learn().state is State.HEALTHY
    lived.now = START + 8
    assert lived.learn().state is State.SUSPECT
    assert "did not end within 4 s" in lived.verdict.sentence
    assert lived.memory.reading_since is None


def test_a_read_that_another_overtook_leaves_that_one_under_way() -> None:
    lived = host(replace(PROVEN, reading_since=START + 6), now=START + 7)
    lived.learn(Read(START + 4, START + 7, failure="timed out"))
    assert lived.memory == replace(lived.memory, reading_since=START + 6)
    lived.learn(Read(START + 6.5, START + 7, machine()), Read(START + 5, START + 7, failure="timed out"))
    assert lived.memory == replace(lived.memory, reading_since=None, last_read=LastRead(START + 6.5, START + 7, ""))


def test_peers_are_asked_no_question_while_there_are_none() -> None:
    lived = host(replace(PROVEN, failed_reads=3), n=1)
    assert lived.learn().ask == ()
    assert lived.memory.inquiry is None


def test_a_mixed_sample_is_condemned_by_its_highest_id() -> None:
    lived = host(peer=each({"peer-1": says(Health.UNHEALTHY, 6)}, says(Health.UNHEALTHY, 8)))
    lived.memory = inquiring()
    lived.now = START + 15
    lived.learn(answered("peer-1", Health.UNHEALTHY, 6), answered("peer-2", Health.UNHEALTHY, 8))
    assert lived.verdict.reset is not None
    assert lived.verdict.reset.id == 8
