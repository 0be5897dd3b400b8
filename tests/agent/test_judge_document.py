"""The poison-pill document's algorithm on the host, sentence by sentence, in virtual time."""

from __future__ import annotations

import pytest

from pp_hostd.model.answer import Health
from pp_hostd.model.memory import Source
from pp_hostd.model.settings import Settings
from pp_hostd.model.verdict import State
from tests.agent.judging import (
    START,
    Api,
    Peer,
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

SETTINGS = Settings()
HEALTHY = says(Health.HEALTHY)
UNHEALTHY = says(Health.UNHEALTHY, id=5)
API_ERROR = says(Health.API_ERROR)
SILENT = silent(SETTINGS)


def host(n: int = 3, *, api: Api, peer: Peer = SILENT) -> VirtualHost:
    """A host whose first read proved it well, and whose API is like this from then on."""
    first = VirtualHost(SETTINGS, standing(n), shows(machine()), peer)
    first.run(1)
    first.api = api
    return first


def test_the_host_periodically_checks_its_machine_and_feeds_the_watchdog() -> None:
    lived = host(api=shows(machine())).run(60)
    reads = [verdict.at for verdict in lived.verdicts if verdict.read]
    assert reads == [START + 4 * number for number in range(16)]
    assert all(verdict.feed for verdict in lived.verdicts[1:])
    assert lived.verdict.state is State.HEALTHY


def test_if_the_annotation_is_found_the_host_resets_itself() -> None:
    lived = host(api=shows(machine(condemned=5))).run(60)
    assert lived.verdict.reset is not None
    assert lived.verdict.reset.id == 5
    assert lived.verdict.at == START + 4 + 0.125
    assert not lived.verdict.feed


def test_two_failed_reads_ask_nobody() -> None:
    failures = iter([fails(lambda: 2), fails(lambda: 2)])
    lived = host(api=lambda at: next(failures, shows(machine()))(at), peer=UNHEALTHY).run(60)
    assert lived.asked == []
    assert lived.verdict.state is State.HEALTHY


def test_if_the_machine_is_not_accessible_in_3_consecutive_attempts_the_host_asks_its_peers() -> None:
    lived = host(api=swallows(SETTINGS), peer=HEALTHY).run(14)
    (asking,) = (verdict for verdict in lived.verdicts if verdict.ask)
    assert asking.at == START + 4 + 3 * 2 + 2 * 1


def test_starved_of_time_to_judge_the_host_is_not_fed() -> None:
    stalled = host(api=swallows(SETTINGS), peer=HEALTHY)
    stalled.now = START + 22
    assert not stalled.learn().feed


@pytest.mark.parametrize(("n", "sample"), [(2, 1), (3, 1), (10, 1), (11, 2), (20, 2), (21, 3), (100, 10), (101, 11)])
def test_the_host_first_asks_a_tenth_of_the_nodes_at_random(n: int, sample: int) -> None:
    samples = set()
    for seed in range(20):
        lived = host(n, api=swallows(SETTINGS), peer=HEALTHY)
        lived._random.seed(seed)
        lived.run(14)
        (asking,) = (verdict for verdict in lived.verdicts if verdict.ask)
        assert len(asking.ask) == sample
        samples.add(frozenset(asking.ask))
    assert len(samples) > 1 or n == 2


def test_one_healthy_is_enough_whatever_the_others_say() -> None:
    lived = host(12, api=swallows(SETTINGS), peer=each({"peer-7": HEALTHY}, UNHEALTHY))
    lived._random.seed(next(seed for seed in range(999) if "peer-7" in _first_sample(seed)))
    lived.run(13)
    assert lived.verdict.reset is None
    assert lived.memory.proof is not None
    assert (lived.memory.proof.source, lived.memory.proof.detail) == (Source.PEER, "peer-7")


def _first_sample(seed: int) -> list[str]:
    asking = host(12, api=swallows(SETTINGS), peer=UNHEALTHY)
    asking._random.seed(seed)
    return asking.run(12).asked


def test_if_all_peers_say_unhealthy_the_host_considers_itself_unhealthy() -> None:
    """The document ends the inquiry with the sample; a liar, or a stale memory, could then reset whom others know to
    be well."""
    lived = host(30, api=swallows(SETTINGS), peer=UNHEALTHY).run(60)
    assert lived.verdict.reset is not None
    assert lived.verdict.reset.id == 5
    assert lived.verdict.at == START + 12 + SETTINGS.peers.rounds * 0.125
    assert set(lived.asked) == set(standing(30).peers)


@pytest.mark.parametrize("error", [API_ERROR, SILENT], ids=["api-error", "no response"])
def test_if_all_sampled_peers_return_an_error_another_random_set_is_asked(error: Peer) -> None:
    lived = host(30, api=swallows(SETTINGS), peer=error).run(16)
    rounds = [verdict.ask for verdict in lived.verdicts if verdict.ask]
    assert len(rounds) > 1
    for number, asked in enumerate(rounds[1:], 1):
        assert set(asked).difference(*rounds[:number])


def test_the_second_set_can_vouch_for_the_host() -> None:
    later = host(30, api=swallows(SETTINGS))
    later.peer = lambda peer, at: (SILENT if at <= START + 12 else HEALTHY)(peer, at)
    later.run(15)
    assert later.verdict.reset is None
    assert later.memory.proof is not None
    assert later.memory.proof.at == START + 14


def test_more_than_half_of_the_nodes_with_api_error_keep_the_host_up() -> None:
    lived = host(5, api=swallows(SETTINGS), peer=each({"peer-1": SILENT, "peer-2": SILENT}, cut_off(SETTINGS)))
    lived.run(600)
    assert lived.verdict.reset is None
    assert lived.verdict.state is State.OUTAGE


def test_half_of_the_nodes_with_api_error_and_half_silent_do_not() -> None:
    half = {f"peer-{number}": cut_off(SETTINGS) for number in (1, 2)}
    lived = host(6, api=swallows(SETTINGS), peer=each(half, SILENT)).run(600)
    assert lived.verdict.reset is not None
    assert "2 api-error, 3 silent of 5 asked" in lived.verdict.sentence


@pytest.mark.parametrize("n", [2, 3, 12, 100])
def test_the_host_considers_itself_unhealthy_if_nobody_responds(n: int) -> None:
    lived = host(n, api=swallows(SETTINGS)).run(60)
    assert lived.verdict.reset is not None
    assert set(lived.asked) == set(standing(n).peers)
    assert lived.verdict.at <= START + 20


@pytest.mark.parametrize("failure", ["401 Unauthorized", "403 Forbidden", "503", "not JSON", "connection refused"])
def test_a_lost_account_or_role_is_a_failed_read_and_peers_decide(failure: str) -> None:
    lived = host(api=fails(lambda: 0.125, failure), peer=HEALTHY).run(120)
    assert lived.verdict.reset is None
    assert any(failure in verdict.sentence for verdict in lived.verdicts)
    assert any("confirms it" in verdict.sentence for verdict in lived.verdicts)
    lived.peer = SILENT
    assert lived.run(120).verdict.reset is not None
