"""Whole lives of a host in virtual time, held against what timing.py promises, for settings that only just suffice."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.answer import Health
from pp_hostd.model.evidence import WatchedCondemned
from pp_hostd.model.memory import Source
from pp_hostd.model.settings import Settings
from pp_hostd.model.verdict import State
from pp_hostd.timing import (
    broken,
    first_inquiry_ends_seconds,
    judgement_gap_seconds,
    later_inquiry_ends_seconds,
    timeline,
)
from tests.agent.judging import (
    START,
    TESTS_SCALE,
    UID,
    Peer,
    Seconds,
    VirtualHost,
    cut_off,
    each,
    fails,
    machine,
    says,
    shows,
    silent,
    standing,
    swallows,
)
from tests.harness.examples import tries

MINUTES = 60.0
HAIR = 1 / 1024  # by so much the self timeout exceeds what it must exceed; exact in binary, like all figures here

eighths = st.integers(1, 40).map(lambda number: number / 8)
moments = st.integers(0, 64 * 8).map(lambda number: number / 64)
stories = tries(25)


@st.composite
def tight_settings(draw: st.DrawFn) -> Settings:
    """Settings that break no inequality, and would with a self timeout a hair shorter."""
    interval, round_seconds = draw(eighths), draw(eighths)
    deadline = min(interval, draw(eighths))
    api = replace(
        Settings().api,
        read_interval_seconds=interval,
        read_deadline_seconds=deadline,
        retry_seconds=draw(eighths),
    )
    peers = replace(Settings().peers, rounds=draw(st.integers(1, 8)), round_seconds=round_seconds)
    leader = replace(Settings().leader, lease_seconds=120.0)  # whatever the reads' deadline
    loose = replace(Settings(), api=api, peers=peers, leader=leader)
    self_timeout = max(first_inquiry_ends_seconds(loose), later_inquiry_ends_seconds(loose)) + HAIR
    watchdog = replace(loose.watchdog, timeout_seconds=max(2, math.ceil(2 * judgement_gap_seconds(loose))))
    tight = replace(loose, agent=replace(loose.agent, self_timeout_seconds=self_timeout), watchdog=watchdog)
    assert broken(tight) == []
    return tight


any_settings = st.just(Settings()) | st.just(TESTS_SCALE) | tight_settings()
scales = pytest.mark.parametrize("settings", [Settings(), TESTS_SCALE], ids=["defaults", "the tests' scale"])


def anything_up_to(seconds: float, seed: int) -> Seconds:
    """How long exchanges take: at random, and often to their deadline."""
    dice = random.Random(seed)
    return lambda: seconds * dice.choice([1 / 64, 1 / 4, dice.randint(1, 64) / 64, 1])


def well(settings: Settings, n: int = 3) -> VirtualHost:
    return VirtualHost(settings, standing(n, settings), shows(machine(), lambda: 1 / 64), silent(settings))


def isolate(host: VirtualHost, seed: int) -> None:
    """From now on the host reaches nobody; some of its exchanges fail at once, some run to their deadline."""
    lasts = anything_up_to(host.settings.api.read_deadline_seconds, seed)
    round_lasts = anything_up_to(host.settings.peers.round_seconds, seed)
    host.api = fails(lasts)
    host.peer = lambda peer, at: replace(silent(host.settings)(peer, at), ended_at=at + round_lasts())


def assert_died_in_time(host: VirtualHost) -> None:
    promised, proof = timeline(host.settings), host.memory.proof
    assert proof is not None
    assert host.fed_at is not None
    assert host.verdict.reset is not None
    assert host.verdict.at <= proof.at + promised.condemned_seconds
    assert host.fed_at < proof.at + promised.unfed_seconds
    assert not host.verdict.feed


@stories
@given(any_settings, st.integers(2, 40), moments, st.integers(0, 99))
def test_an_isolated_host_resets_itself_as_soon_as_the_timeline_says(
    settings: Settings, n: int, after: float, seed: int
) -> None:
    host = well(settings, n).run(after)
    isolate(host, seed)
    assert_died_in_time(host.run(10 * MINUTES))


@stories
@given(any_settings, st.integers(2, 12), moments, st.integers(0, 99))
def test_a_host_that_a_peer_vouched_for_dies_as_soon_after_that_proof(
    settings: Settings, n: int, after: float, seed: int
) -> None:
    host = well(settings, n).run(after)
    host.api = swallows(settings)
    host.peer = says(Health.HEALTHY, seconds=anything_up_to(settings.peers.round_seconds, seed))
    while host.memory.proof is None or host.memory.proof.source is not Source.PEER:
        host.run(1 / 8)
    isolate(host, seed)
    assert_died_in_time(host.run(10 * MINUTES))


def outage(settings: Settings, n: int, silent_peers: int) -> VirtualHost:
    """A host in an outage that swallows packets: its reads, and its peers' reads, run to their deadlines."""
    host = well(settings, n).run(1)
    host.api = swallows(settings)
    dead = {peer: silent(settings) for peer in host.standing.peers[:silent_peers]}
    host.peer = each(dead, cut_off(settings))
    return host


def most_silent(n: int) -> int:
    """The largest number of silent peers with which 2(E + 1) > n."""
    return max(silent for silent in range(n) if 2 * (n - 1 - silent + 1) > n)


@scales
@pytest.mark.parametrize("n", range(2, 13))
def test_a_long_outage_resets_nobody_while_more_than_half_still_answer(n: int, settings: Settings) -> None:
    for silent_peers in (0, most_silent(n)):
        host = outage(settings, n, silent_peers).run(10 * MINUTES)
        assert (host.verdict.state, host.verdict.reset) == (State.OUTAGE, None)
        assert host.oldest_proof_seconds <= timeline(settings).oldest_proof_in_outage_seconds


@scales
@pytest.mark.parametrize("n", range(2, 13))
def test_an_outage_with_one_silent_peer_more_resets_the_host(n: int, settings: Settings) -> None:
    assert outage(settings, n, most_silent(n) + 1).run(10 * MINUTES).verdict.reset is not None


@stories
@given(tight_settings(), st.integers(2, 12), st.data())
def test_in_an_outage_no_proof_gets_older_than_the_timeline_says(
    settings: Settings, n: int, data: st.DataObject
) -> None:
    host = outage(settings, n, data.draw(st.integers(0, most_silent(n))))
    host.run(2 * MINUTES)
    assert host.verdict.reset is None
    assert host.oldest_proof_seconds <= timeline(settings).oldest_proof_in_outage_seconds


@stories
@given(any_settings, st.integers(2, 12), st.integers(0, 9999))
def test_an_api_that_comes_and_goes_resets_nobody(settings: Settings, n: int, seed: int) -> None:
    dice, lasts = random.Random(seed), anything_up_to(settings.api.read_deadline_seconds, seed)
    peer_lasts = anything_up_to(0.75 * settings.peers.round_seconds, seed)
    host = well(settings, n).run(1)
    host.api = lambda at: (shows(machine(), lasts) if dice.random() < 0.3 else fails(lasts))(at)
    host.peer = lambda peer, at: says(dice.choice([Health.API_ERROR] * 3 + [Health.HEALTHY]), None, peer_lasts)(
        peer, at
    )
    host.run(2 * MINUTES)
    assert host.verdict.reset is None
    assert host.oldest_proof_seconds <= timeline(settings).oldest_proof_in_outage_seconds


@scales
def test_peers_that_vouch_keep_a_host_alive_for_ever(settings: Settings) -> None:
    host = well(settings).run(1)
    host.api, host.peer = swallows(settings), says(Health.HEALTHY, seconds=lambda: 0.75 * settings.peers.round_seconds)
    host.run(60 * MINUTES)
    assert host.verdict.reset is None
    assert host.memory.proof is not None
    assert host.memory.proof.source is Source.PEER


@scales
def test_a_host_is_well_again_once_the_outage_is_over(settings: Settings) -> None:
    host = outage(settings, 5, 1).run(10 * MINUTES)
    host.api = shows(machine())
    host.run(settings.agent.self_timeout_seconds)
    assert host.verdict.state is State.HEALTHY


@scales
def test_a_condemnation_seen_by_the_watch_is_decided_by_a_read_begun_at_once(settings: Settings) -> None:
    host = well(settings).run(1)
    host.api, seen_at = shows(machine(condemned=5)), host.now
    host.learn(WatchedCondemned(UID, 5, seen_at))
    host.run(10 * MINUTES)
    assert host.verdict.reset is not None
    assert host.verdict.at == seen_at + 0.125


@scales
def test_a_condemnation_seen_by_ones_own_read_is_decided_when_that_ends(settings: Settings) -> None:
    host = well(settings).run(0.75)
    host.api = shows(machine(condemned=5))
    host.run(10 * MINUTES)
    assert host.verdict.at == START + settings.api.read_interval_seconds + 0.125


@scales
def test_a_condemnation_that_peers_know_is_decided_with_their_answer(settings: Settings) -> None:
    host = well(settings, 2).run(0.75)
    host.api, host.peer = swallows(settings), says(Health.UNHEALTHY, 5, lambda: 1 / 8)
    host.run(10 * MINUTES)
    assert host.verdict.at == START + timeline(settings).asks_peers_seconds + 1 / 8


restarts = st.lists(st.integers(1, 5 * 64).map(lambda number: number / 64), min_size=1, max_size=60)


@stories
@given(any_settings, moments, restarts, st.integers(0, 99))
def test_however_often_an_isolated_host_restarts_it_gains_no_time(
    settings: Settings, after: float, lives: list[float], seed: int
) -> None:
    host = well(settings).run(after)
    isolate(host, seed)
    for seconds in lives * 60:
        host.run(seconds)
        if host.verdict.reset is not None:
            break
        host.restart(down_seconds=1 / 64)
    else:
        host.run(10 * MINUTES)
    proof = host.memory.proof
    assert proof is not None
    assert host.verdict.reset is not None
    assert host.verdict.at <= proof.at + settings.agent.self_timeout_seconds + 1 / 64
    assert host.fed_at is not None
    assert host.fed_at < proof.at + settings.agent.self_timeout_seconds


@stories
@given(any_settings, restarts)
def test_however_often_a_well_host_restarts_it_lives(settings: Settings, lives: list[float]) -> None:
    host = well(settings)
    for seconds in lives * 10:
        host.run(seconds)
        host.restart()
        assert host.verdict.reset is None
    assert host.run(1).verdict.state is State.HEALTHY


@scales
@pytest.mark.parametrize(
    "confirming",
    [
        lambda settings: cut_off(settings),
        lambda settings: says(Health.HEALTHY, seconds=lambda: 0.75 * settings.peers.round_seconds),
    ],
    ids=["an outage", "peers that confirm"],
)
def test_a_restart_at_any_moment_while_the_api_is_gone_costs_nobody_his_host(
    settings: Settings, confirming: object
) -> None:
    assert callable(confirming)
    peer: Peer = confirming(settings)
    for moment in range(60):
        host = well(settings, 5).run(1)
        host.api, host.peer = swallows(settings), peer
        host.run(moment * settings.agent.self_timeout_seconds / 20)
        host.restart()
        host.run(2 * settings.agent.self_timeout_seconds)
        assert host.verdict.reset is None
