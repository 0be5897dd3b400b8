"""When a certificate is renewed, and which requests for one a leader approves."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from pp_hostd.model.keys import AGENTS, LEADER_USER, LEADERS, NODES_GROUP
from pp_hostd.model.renewal import SIGNER, USAGES, Life, Renewal, refusal

SIGNED = datetime(2026, 3, 1, tzinfo=timezone.utc)
YEAR, MINUTE = timedelta(days=365), timedelta(minutes=1)
OF_WORKER = Renewal(
    name="pp-hostd.worker-1.0123",
    requester="system:node:worker-1",
    requester_groups=(NODES_GROUP, AGENTS, "system:authenticated"),
    signer=SIGNER,
    usages=USAGES,
    bounded=False,
    user="system:node:worker-1",
    groups=(AGENTS, NODES_GROUP),
)
OF_LEADER = replace(
    OF_WORKER,
    name="pp-leader.0123",
    requester=LEADER_USER,
    requester_groups=(LEADERS, "system:authenticated"),
    user=LEADER_USER,
    groups=(LEADERS,),
)


@pytest.mark.parametrize("luck", [0.0, 0.5, 1.0])
def test_a_certificate_is_renewed_when_between_seven_and_eight_tenths_of_its_life_are_over(luck: float) -> None:
    share = (Life(SIGNED, SIGNED + YEAR).renewal_at(luck) - SIGNED) / YEAR
    assert 0.6999 < share < 0.8001


def test_of_a_short_certificate_the_minutes_do_not_count_that_the_signer_dated_it_back() -> None:
    life = Life(SIGNED - 5 * MINUTE, SIGNED + 2 * MINUTE)
    assert [life.renewal_at(luck) - SIGNED for luck in (0, 1)] == [timedelta(seconds=84), timedelta(seconds=96)]


def test_an_end_is_near_a_month_before_it_or_late_in_a_short_life() -> None:
    long, short = Life(SIGNED, SIGNED + YEAR), Life(SIGNED - 5 * MINUTE, SIGNED + 2 * MINUTE)
    assert not long.ends_soon(SIGNED + YEAR - timedelta(days=30))
    assert long.ends_soon(SIGNED + YEAR - timedelta(days=30, seconds=-1))
    assert not short.ends_soon(SIGNED + timedelta(seconds=102))
    assert short.ends_soon(SIGNED + timedelta(seconds=103))


@pytest.mark.parametrize("renewal", [OF_WORKER, OF_LEADER], ids=lambda each: each.name)
def test_whoever_renews_its_own_certificate_is_approved(renewal: Renewal) -> None:
    assert refusal(renewal, {"worker-1"}) == ""


@pytest.mark.parametrize(
    ("renewal", "said"),
    [
        (replace(OF_WORKER, user="system:node:worker-2"), "gets none but its own"),
        (replace(OF_WORKER, requester="system:node:worker-2"), "gets none but its own"),
        (replace(OF_WORKER, user=LEADER_USER, groups=(LEADERS,)), "gets none but its own"),
        (replace(OF_WORKER, user=""), "of nobody"),
        (replace(OF_WORKER, user="somebody", requester="somebody"), "neither a leader nor an agent"),
        (replace(OF_WORKER, groups=(NODES_GROUP,)), "no more and no less"),
        (replace(OF_WORKER, groups=(NODES_GROUP, AGENTS, LEADERS)), "no more and no less"),
        (replace(OF_WORKER, groups=(NODES_GROUP, AGENTS, "system:masters")), "no more and no less"),
        (replace(OF_WORKER, requester_groups=(NODES_GROUP,)), "no more and no less"),
        (replace(OF_LEADER, requester_groups=()), "no more and no less"),
        (replace(OF_WORKER, usages=(*USAGES, "server auth")), "for digital signature and client auth"),
        (replace(OF_WORKER, usages=("client auth",)), "for digital signature and client auth"),
        (replace(OF_WORKER, signer="example.com/signer"), "is signed by kubernetes.io/kube-apiserver-client"),
        (replace(OF_WORKER, bounded=True), "for as long as the cluster signs"),
        (replace(OF_WORKER, name="pp-hostd.worker-2.0123"), "begins with pp-hostd.worker-1."),
        (replace(OF_LEADER, name="pp-hostd.leader.0123"), "begins with pp-leader."),
    ],
)
def test_everything_else_is_refused(renewal: Renewal, said: str) -> None:
    assert said in refusal(renewal, {"worker-1", "worker-2"})


def test_a_node_that_is_not_enrolled_any_more_is_refused() -> None:
    assert refusal(OF_WORKER, {"worker-2"}) == "worker-1 is not enrolled"
