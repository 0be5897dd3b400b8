"""A short run of the peer port's fuzzer, and that it reaches what it is after."""

from __future__ import annotations

from tests.fuzz.peer_port import fuzz


async def test_hostile_input_crashes_nothing_and_reaches_every_outcome() -> None:
    outcomes = await fuzz(20_000, seed=1)
    for status in (200, 400, 403, 404, 405, 409, 413, 421, 431):
        assert outcomes[f"request: {status}"], status
    assert outcomes["knock: heard"] and outcomes["reach: heard"]
    assert outcomes["reply: Answer"] and outcomes["reply: Unreadable"]
    assert outcomes["finding: Reached"] and outcomes["finding: Unreadable"]


async def test_a_seed_gives_the_same_inputs_again() -> None:
    assert await fuzz(500, seed=7) == await fuzz(500, seed=7) != await fuzz(500, seed=8)
