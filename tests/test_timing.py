"""Which settings contradict each other, and what the others promise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.lease import Candidacy, Lease, LeaseExchange
from pp_hostd.model.settings import Settings, every_setting
from pp_hostd.timing import FAILED_READS, INEQUALITIES, Quantity, broken, timeline

QUANTITIES = {
    side.name: side for inequality in INEQUALITIES for side in (inequality.smaller, inequality.larger)
}.values()


def settings_with(values: dict[str, Any]) -> Settings:
    settings = Settings()
    for key, value in values.items():
        table, name = key.split(".")
        settings = replace(settings, **{table: replace(getattr(settings, table), **{name: value})})
    return settings


def test_the_defaults_keep_the_budget_of_the_design() -> None:
    promise = timeline(Settings())
    assert promise.noticed_seconds == 6
    assert promise.asks_peers_seconds == 12
    assert promise.condemned_seconds == 20
    assert promise.unfed_seconds == 22
    assert promise.reset_seconds == 32
    assert promise.dead_seconds == 42
    assert promise.leader_acts_seconds == 44
    assert promise.oldest_proof_in_outage_seconds == 20


def test_the_defaults_contradict_nothing() -> None:
    assert broken(Settings()) == []


@pytest.mark.parametrize(
    ("values", "larger", "figures"),
    [
        ({"api.read_deadline_seconds": 4.5, "agent.self_timeout_seconds": 60.0, "watchdog.timeout_seconds": 12,
          "leader.lease_seconds": 30.0}, "api.read_interval_seconds", ("4.5 s", "4 s")),
        ({"agent.self_timeout_seconds": 20.0}, "agent.self_timeout_seconds", ("20 s", "20 s")),
        ({"peers.rounds": 10, "agent.self_timeout_seconds": 42.0}, "agent.self_timeout_seconds", ("42 s", "42 s")),
        ({"watchdog.timeout_seconds": 7}, "watchdog.timeout_seconds", ("8 s", "7 s")),
        ({"leader.safe_time_seconds": 43.0}, "leader.safe_time_seconds", ("44 s", "43 s")),
        ({"leader.lease_seconds": 9.5}, "leader.lease_seconds", ("10 s", "9.5 s")),
    ],
    ids=["a read outlasts the interval", "first inquiry", "long outage", "watchdog", "safe time", "the Lease"],
)  # fmt: skip
def test_each_inequality_is_noticed_alone(values: dict[str, Any], larger: str, figures: tuple[str, str]) -> None:
    (contradiction,) = broken(settings_with(values))
    assert contradiction.larger_keys == (larger,)
    for figure in figures:
        assert figure in contradiction.sentence
    assert f"raise {larger}" in contradiction.change
    for key in contradiction.smaller_keys:
        assert key in contradiction.change


@pytest.mark.parametrize(
    "values",
    [
        {"api.read_deadline_seconds": 4.0, "agent.self_timeout_seconds": 60.0, "leader.lease_seconds": 20.0},
        {"agent.self_timeout_seconds": 20.001},
        {"peers.rounds": 10, "agent.self_timeout_seconds": 42.001},
        {"watchdog.timeout_seconds": 8},
        {"leader.safe_time_seconds": 44.0},
        {"leader.safe_time_seconds": 0.0},
        {"leader.lease_seconds": 10.0},
    ],
    ids=["deadline equals interval", "first inquiry", "long outage", "watchdog", "safe time", "computed", "the Lease"],
)
def test_what_just_suffices_is_accepted(values: dict[str, Any]) -> None:
    assert broken(settings_with(values)) == []


def test_sums_that_floats_miss_by_a_hair_are_equal() -> None:
    values = {"leader.margin_seconds": 1.1, "agent.self_timeout_seconds": 22.2, "leader.safe_time_seconds": 43.3}
    assert 22.2 + 20 + 1.1 > 43.3
    assert broken(settings_with(values)) == []


def test_a_proof_from_a_slow_peer_puts_the_next_read_off() -> None:
    promise = timeline(settings_with({"peers.rounds": 1, "peers.round_seconds": 5.0}))
    assert promise.asks_peers_seconds == 5 + 3 * 2 + 2 * 1


def test_a_longer_safe_time_is_what_the_leader_waits() -> None:
    assert timeline(settings_with({"leader.safe_time_seconds": 90.0})).leader_acts_seconds == 90


def test_a_leader_that_just_suffices_outlives_a_renewal_that_hangs_and_an_api_as_slow_as_a_read_may_be() -> None:
    slowest, lease = Settings().api.read_deadline_seconds, Lease("1", "me", 10, 0)
    leader = Candidacy("me", 10.0, lease).held(LeaseExchange.TAKE, lease, sent_at=0.0, now=slowest)
    exchange, now = leader.next_exchange(slowest)
    assert exchange is LeaseExchange.RENEW
    now += leader.exchange_seconds(now)
    leader = leader.failed(LeaseExchange.RENEW, now, overtaken=False)
    exchange, now = leader.next_exchange(now)
    assert exchange is LeaseExchange.LOOK and leader.exchange_seconds(now) >= slowest
    leader = leader.saw(lease, now + slowest)
    exchange, now = leader.next_exchange(now + slowest)[0], now + slowest
    assert exchange is LeaseExchange.RENEW and leader.exchange_seconds(now) >= slowest
    assert leader.held(LeaseExchange.RENEW, lease, now, now + slowest).acting(now + slowest)


@pytest.mark.parametrize("quantity", QUANTITIES, ids=lambda quantity: quantity.name)
def test_a_quantity_names_exactly_the_settings_it_rests_on(quantity: Quantity) -> None:
    def depends_on(key: str) -> bool:
        return len({quantity.seconds(settings_with({key: value})) for value in (1, 7, 50)}) > 1

    numbers = [setting.key for setting in every_setting() if isinstance(setting.default, (int, float))]
    assert {key for key in numbers if depends_on(key)} == set(quantity.keys)


seconds = st.integers(1, 100).map(lambda tenths: tenths / 10)
any_settings = st.builds(
    settings_with,
    st.fixed_dictionaries({
        "api.read_interval_seconds": seconds,
        "api.read_deadline_seconds": seconds,
        "api.retry_seconds": seconds,
        "peers.rounds": st.integers(1, 20),
        "peers.round_seconds": seconds,
        "agent.self_timeout_seconds": st.integers(1, 300).map(float),
    }),
)  # fmt: skip


def oldest_proof_seconds(settings: Settings, inquiries: int) -> float:
    """Live through an outage that swallows every packet, inquiry after inquiry, and return the worst age of a proof."""
    proof = worst = 0.0
    now = settings.api.read_interval_seconds
    reads = FAILED_READS
    for _ in range(inquiries):
        for read in range(reads):
            now += settings.api.read_deadline_seconds + (settings.api.retry_seconds if read else 0)
        began, reads = now, 1
        now += settings.peers.rounds * settings.peers.round_seconds
        worst = max(worst, now - proof)
        proof, now = began, max(now, began + settings.api.read_interval_seconds)
    return worst


@given(any_settings)
def test_no_proof_in_an_outage_gets_older_than_the_timeline_says(settings: Settings) -> None:
    lived = oldest_proof_seconds(settings, inquiries=10)
    promised = timeline(settings).oldest_proof_in_outage_seconds
    slower = max(0.0, settings.peers.round_seconds - settings.api.read_interval_seconds)
    assert lived - 1e-6 <= promised <= lived + slower + 1e-6


@given(any_settings)
def test_a_self_timeout_that_is_not_objected_to_outlasts_any_outage(settings: Settings) -> None:
    accepted = all(each.larger_keys != ("agent.self_timeout_seconds",) for each in broken(settings))
    assert not accepted or oldest_proof_seconds(settings, inquiries=10) < settings.agent.self_timeout_seconds


@given(any_settings)
def test_a_self_timeout_that_is_not_objected_to_leaves_time_for_the_inquiry(settings: Settings) -> None:
    accepted = all(each.larger_keys != ("agent.self_timeout_seconds",) for each in broken(settings))
    moments = [moment for moment, _ in timeline(settings).rows()]
    assert not accepted or moments == sorted(moments)
