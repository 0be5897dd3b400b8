"""However a host is isolated, and whatever happens to its agent meanwhile, it is dead when it promised to be."""

from __future__ import annotations

from tests.scenarios.bound import Beds

SEED = 1
ROUNDS = 2


def test_no_random_isolation_outlives_what_check_config_prints() -> None:
    with Beds(SEED) as beds:
        bound = beds.bound()
        lives = [life for _ in range(ROUNDS) for life in beds.run()]
    assert len(lives) >= 20
    too_long = [f"seed {SEED}: {life}" for life in lives if not life.within(bound)]
    assert not too_long, bound
