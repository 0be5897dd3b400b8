"""Properties of the judge for any input: memories, standings and evidence at random, much of it nonsense."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.agent.judge import judge
from pp_hostd.model.answer import Health
from pp_hostd.model.evidence import Evidence, LinkChanged, PeerAnswered, Read, WatchedCondemned
from pp_hostd.model.inquiry import Inquiry, Reply, Said
from pp_hostd.model.memory import Decision, LastRead, Lifted, Memory, Outage, Proof, Source, Standing
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings
from pp_hostd.model.verdict import Judgement
from pp_hostd.timing import tick_seconds
from tests.agent.judging import HOST, UID, answer, dry_run, machine
from tests.model.strategies import examples

SETTINGS = Settings()
NOW = 100.0

moments = st.integers(0, 4 * 130).map(lambda quarters: quarters / 4) | st.floats(-1e9, 1e9)
past = st.integers(0, 4 * 100).map(lambda quarters: quarters / 4)
ids = st.integers(1, 5)
peers = st.sampled_from(["a", "b", "c", "d", "e", HOST, "stranger"])
electorates = st.lists(st.sampled_from("abcde"), unique=True).map(lambda names: (HOST, *names))
standings = st.builds(
    Standing,
    node=st.just(HOST),
    machine_uid=st.just(UID) | st.none(),
    armed=st.booleans(),
    self_timeout_seconds=st.sampled_from([8.0, 22.0, 60.0]),
    electorates=st.lists(electorates, max_size=2).map(tuple),
)
machines = st.one_of(
    st.builds(machine, condemned=st.none() | ids, last_id=ids, uid=st.sampled_from([UID, UID, "another"])),
    st.just(replace(machine(), condemnation=Unreadable("it", "so"))),
)
reads = st.builds(Read, moments, moments, st.none() | machines, st.booleans(), st.sampled_from(["", "timed out"]))
healths = st.builds(answer, st.sampled_from(Health), st.none() | ids)
answers = st.builds(PeerAnswered, peers, moments, moments, st.none() | healths)
watched = st.builds(WatchedCondemned, st.sampled_from([UID, "another"]), ids, moments)
evidence = st.lists(reads | answers | answers | watched | st.builds(LinkChanged, moments), max_size=6)


@st.composite
def inquiries(draw: st.DrawFn) -> Inquiry:
    asked = tuple(draw(st.lists(peers, unique=True)))
    replies = draw(st.lists(st.builds(Reply, st.sampled_from(asked), st.sampled_from(Said), ids))) if asked else []
    started_at = draw(past)
    return Inquiry(started_at, 7, 1, draw(past), asked, draw(st.integers(0, len(asked))), tuple(replies))


@st.composite
def memories(draw: st.DrawFn) -> Memory:
    decision = draw(st.none() | st.none() | st.builds(Decision, past, st.just("a cause"), st.none() | ids))
    return Memory(
        proof=draw(st.none() | st.builds(Proof, past, st.sampled_from(Source))),
        failed_reads=draw(st.integers(0, 4)),
        reading_since=draw(st.none() | past),
        last_read=draw(st.none() | st.builds(LastRead, moments, moments, st.sampled_from(["", "timed out"]))),
        check_at=draw(st.none() | moments),
        inquiry=draw(st.none() | inquiries()) if decision is None else None,
        outage=draw(st.none() | st.builds(Outage, past, past, st.just("all cut off"))),
        lifted=tuple(draw(st.lists(st.builds(Lifted, st.just(UID), ids), max_size=4))),
        watched=draw(st.none() | st.builds(WatchedCondemned, st.just(UID), ids, past)),
        watched_failures=draw(st.integers(0, 2)),
        condemned_id=draw(st.none() | ids),
        decision=decision,
    )


def judged(standing: Standing, memory: Memory, news: list[Evidence], settings: Settings = SETTINGS) -> Judgement:
    return judge(settings, standing, memory, news, NOW, 7)


@examples
@given(standings, memories(), evidence)
def test_no_verdict_feeds_past_its_proof_nor_unarmed_nor_decided(
    standing: Standing, memory: Memory, news: list[Evidence]
) -> None:
    verdict = judged(standing, memory, news).verdict
    if verdict.feed:
        assert standing.armed
        assert verdict.reset is None
        assert verdict.proof is not None
        assert verdict.proof.at <= NOW < verdict.proof.at + standing.self_timeout_seconds


@examples
@given(standings, memories(), evidence)
def test_a_proof_is_never_dated_later_than_the_exchange_it_rests_on_began(
    standing: Standing, memory: Memory, news: list[Evidence]
) -> None:
    proof = judged(standing, memory, news).verdict.proof
    began = {(memory.proof.at, memory.proof.source)} if memory.proof is not None else set()
    began |= {(each.began_at, Source.OWN_READ) for each in news if isinstance(each, Read) and each.machine is not None}
    began |= {
        (each.began_at, Source.PEER)
        for each in news
        if isinstance(each, PeerAnswered) and each.answer is not None and each.answer.health is Health.HEALTHY
    }
    if memory.inquiry is not None:
        began.add((memory.inquiry.started_at, Source.OUTAGE))
    assert proof is None or (proof.at, proof.source) in began


@examples
@given(standings, memories(), evidence, past)
def test_one_more_good_read_never_shortens_life(
    standing: Standing, memory: Memory, news: list[Evidence], began_at: float
) -> None:
    without = judged(standing, memory, news)
    with_it = judged(standing, memory, [*news, Read(began_at, NOW, machine(last_id=1))])
    assert with_it.verdict.feed or not without.verdict.feed
    if without.verdict.feed_until_at is not None:
        assert with_it.verdict.feed_until_at is not None
        assert with_it.verdict.feed_until_at >= without.verdict.feed_until_at


@examples
@given(standings.filter(lambda standing: standing.peers != ()), st.data())
def test_one_healthy_beats_any_number_of_unhealthy_in_the_same_round(standing: Standing, data: st.DataObject) -> None:
    standing = replace(standing, armed=True)
    asked = standing.peers
    inquiry = Inquiry(NOW - 1, 7, 1, NOW - 1, asked, len(asked))
    memory = Memory(proof=Proof(NOW - 5, Source.OWN_READ), inquiry=inquiry)
    good = data.draw(st.sampled_from(asked))
    heard: list[Evidence] = [
        PeerAnswered(peer, NOW - 1, NOW, answer(Health.HEALTHY if peer == good else Health.UNHEALTHY, 5))
        for peer in data.draw(st.permutations(asked))
    ]
    verdict = judged(standing, memory, heard).verdict
    assert verdict.reset is None
    assert verdict.proof == Proof(NOW - 1, Source.PEER, good)


@examples
@given(standings, memories(), evidence)
def test_an_outage_takes_more_than_half_of_every_electorate_the_host_counted(
    standing: Standing, memory: Memory, news: list[Evidence]
) -> None:
    outage = judged(standing, memory, news).memory.outage
    if outage is None or outage == memory.outage or memory.inquiry is None:
        assert outage is None or outage == memory.outage
        return
    said_so = {reply.peer for reply in memory.inquiry.replies if reply.said is Said.API_ERROR}
    said_so |= {
        each.peer
        for each in news
        if isinstance(each, PeerAnswered)
        and each.answer is not None
        and each.answer.health in (Health.API_ERROR, Health.UNHEALTHY)
    } & set(memory.inquiry.asked)
    assert standing.electorates
    for nodes in standing.electorates:
        errors = len((said_so - {HOST}) & set(nodes))
        assert 2 * (errors + 1) > len(nodes)
    assert outage.started_at == memory.inquiry.started_at


@examples
@given(standings, memories(), evidence, st.sampled_from([SETTINGS, dry_run(SETTINGS)]))
def test_no_input_raises_the_same_gives_the_same_and_the_loop_neither_spins_nor_sleeps_past_its_tick(
    standing: Standing, memory: Memory, news: list[Evidence], settings: Settings
) -> None:
    judgement = judged(standing, memory, news, settings)
    assert judgement == judged(standing, memory, news, settings)
    assert judgement.verdict.sentence
    assert "\n" not in judgement.verdict.sentence
    assert NOW < judgement.verdict.wake_at <= NOW + tick_seconds(settings)


@examples
@given(standings, memories(), evidence)
def test_a_decision_goes_away_only_in_a_dry_run_and_only_by_a_later_proof(
    standing: Standing, memory: Memory, news: list[Evidence]
) -> None:
    enforced, dry = judged(standing, memory, news), judged(standing, memory, news, dry_run(SETTINGS))
    assert enforced.verdict.reset == enforced.memory.decision
    if memory.decision is not None:
        assert enforced.memory.decision == memory.decision
        if dry.memory.decision != memory.decision:
            assert dry.verdict.proof is not None
            assert dry.verdict.proof.at > memory.decision.at


@examples
@given(standings, memories(), evidence)
def test_only_an_armed_host_asks_or_decides_and_once_decided_asks_nobody_nor_whoever_has_answered(
    standing: Standing, memory: Memory, news: list[Evidence]
) -> None:
    judgement = judged(standing, memory, news)
    ask = judgement.verdict.ask
    assert len(set(ask)) == len(ask)
    assert set(ask).issubset(standing.peers)
    before, after = memory.inquiry, judgement.memory.inquiry
    if ask:
        assert after is not None
        assert ask == after.asked_in_round
        assert after.heard.isdisjoint(ask)
        if before is not None and before.started_at == after.started_at < NOW:
            assert after.heard.issuperset(before.heard)
            assert after.round > before.round
    if not standing.armed or judgement.memory.decision is not None:
        assert ask == ()
    if not standing.armed:
        assert judgement.memory.decision == memory.decision
