"""Many hosts that probe each other in virtual time: a pulled cable is noticed soon, and nobody is found by chance."""

from __future__ import annotations

import pytest

from pp_hostd.agent.probing import targets
from tests.agent.probers import Crowd

SOON_SECONDS = 10.0


@pytest.mark.parametrize(("hosts", "loss"), [(2, 0.0), (3, 0.0), (50, 0.0), (50, 0.05)])
def test_a_pulled_cable_is_suspected_soon_and_confirmed(hosts: int, loss: float) -> None:
    for seed in range(10):
        crowd = Crowd(hosts, loss, seed)
        crowd.run(20.0)
        crowd.unplugged.add("host-1")
        pulled_at = crowd.now
        crowd.run(SOON_SECONDS)
        at, by = crowd.first_suspicion("host-1", pulled_at)
        assert at < pulled_at + SOON_SECONDS
        assert by in crowd.names and "host-1" in targets(crowd.names, by)
        assert crowd.is_confirmed("host-1", by)
        assert not [each for each in crowd.suspicions if each[1] == "host-1" and each[0] > pulled_at]


def test_without_loss_nobody_else_is_suspected() -> None:
    crowd = Crowd(50, 0.0, 1)
    crowd.run(60.0)
    crowd.unplugged.add("host-1")
    crowd.run(60.0)
    crowd.unplugged.clear()
    crowd.run(60.0)
    assert {whom for _, _, whom in crowd.suspicions} == {"host-1"}


@pytest.mark.parametrize("loss", [0.0, 0.05, 0.3])
def test_no_host_has_more_than_one_message_a_second(loss: float) -> None:
    crowd = Crowd(50, loss, 1)
    crowd.run(300.0)
    assert crowd.messages / 50 / 300.0 <= 1.01


def test_suspicions_by_chance_are_not_confirmed() -> None:
    crowd = Crowd(50, 0.05, 1)
    crowd.run(3600.0)
    assert crowd.suspicions
    assert not [each for each in crowd.suspicions if crowd.is_confirmed(each[2], each[1])]


def test_a_rolling_restart_of_all_agents_makes_nobody_a_suspect() -> None:
    crowd = Crowd(50, 0.0, 1)
    for name in crowd.names:
        crowd.restart(name, pause_seconds=2.0)
        crowd.run(1.0)
    crowd.run(30.0)
    assert crowd.suspicions == []


def test_in_a_split_the_half_without_the_api_tells_nothing_and_the_other_suspects_it() -> None:
    crowd = Crowd(50, 0.0, 1)
    crowd.run(10.0)
    cut_off = set(crowd.names[:25])
    crowd.cut = lambda sender, receiver: (sender in cut_off) != (receiver in cut_off)
    crowd.without_api = cut_off.__contains__
    crowd.run(30.0)
    told = {whom for _, by, whom in crowd.suspicions if by not in cut_off}
    assert len(told) > 20 and told <= cut_off
