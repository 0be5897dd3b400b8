"""A deadline ends whatever is awaited, and nothing else: other deadlines and cancellations stay what they are."""

from __future__ import annotations

import asyncio
import sys

import pytest

from pp_hostd.kube.deadline import Deadline, TimedOut

SHORT_SECONDS, LONG_SECONDS, HANG_SECONDS = 0.05, 60.0, 5.0


async def hang() -> None:
    await asyncio.get_running_loop().create_future()


async def test_what_ends_in_time_is_left_alone() -> None:
    with Deadline(LONG_SECONDS) as deadline:
        await asyncio.sleep(0)
        assert 0 < deadline.remaining_seconds() <= LONG_SECONDS


async def test_what_hangs_is_ended_when_the_time_is_up_and_not_before() -> None:
    begun_at = asyncio.get_running_loop().time()
    with pytest.raises(TimedOut), Deadline(SHORT_SECONDS) as deadline:
        await hang()
    assert SHORT_SECONDS * 0.99 <= asyncio.get_running_loop().time() - begun_at < HANG_SECONDS
    assert deadline.remaining_seconds() == 0


async def test_the_task_can_go_on_as_if_nothing_had_happened() -> None:
    with pytest.raises(TimedOut), Deadline(0):
        await hang()
    await asyncio.sleep(SHORT_SECONDS)
    if sys.version_info >= (3, 11):
        task = asyncio.current_task()
        assert task is not None and task.cancelling() == 0


@pytest.mark.parametrize("seconds", [0, -1, -1e9])
async def test_no_time_at_all_is_enough_for_what_needs_no_waiting_and_for_nothing_else(seconds: float) -> None:
    with Deadline(seconds) as deadline:
        assert deadline.remaining_seconds() == 0
    with pytest.raises(TimedOut), Deadline(seconds):
        await asyncio.sleep(0)
        await asyncio.sleep(0)


async def test_an_inner_deadline_ends_only_the_inner_work() -> None:
    with Deadline(LONG_SECONDS):
        with pytest.raises(TimedOut), Deadline(SHORT_SECONDS):
            await hang()
        await asyncio.sleep(0)


async def test_an_outer_deadline_ends_inner_work_that_has_more_time() -> None:
    reached = []
    with pytest.raises(TimedOut), Deadline(SHORT_SECONDS):
        try:
            with Deadline(LONG_SECONDS):
                await hang()
        except TimedOut:
            reached.append("the inner deadline claims to have passed")
    assert reached == []


async def test_inner_and_outer_deadlines_that_pass_together_end_the_outer_work() -> None:
    with pytest.raises(TimedOut), Deadline(0):
        try:
            with Deadline(0):
                await hang()
        except TimedOut:  # only before Python 3.11, which can't tell the two apart
            await asyncio.sleep(0)


async def test_one_deadline_after_another_shares_out_a_whole() -> None:
    loop = asyncio.get_running_loop()
    begun_at = loop.time()
    with Deadline(LONG_SECONDS):
        for _ in range(3):
            with pytest.raises(TimedOut), Deadline(SHORT_SECONDS):
                await hang()
    assert 3 * SHORT_SECONDS * 0.99 <= loop.time() - begun_at < HANG_SECONDS


async def test_an_error_of_the_work_passes_through() -> None:
    with pytest.raises(ZeroDivisionError), Deadline(LONG_SECONDS):
        raise ZeroDivisionError


async def test_a_cancellation_from_outside_is_no_timeout() -> None:
    async def work() -> None:
        with Deadline(LONG_SECONDS):
            await hang()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.parametrize("deadline_first", [True, False])
async def test_a_cancellation_in_the_same_turn_of_the_loop_as_the_deadline_is_not_lost(deadline_first: bool) -> None:
    async def work() -> None:
        if not deadline_first:
            loop.call_later(0, task.cancel)
        with Deadline(0):
            if deadline_first:
                loop.call_later(0, task.cancel)
            await hang()

    loop = asyncio.get_running_loop()
    task = asyncio.create_task(work())
    with pytest.raises(asyncio.CancelledError if sys.version_info >= (3, 11) else (asyncio.CancelledError, TimedOut)):
        await task


async def test_a_deadline_leaves_no_timer_behind() -> None:
    loop = asyncio.get_running_loop()
    with Deadline(SHORT_SECONDS):
        await asyncio.sleep(0)
    await asyncio.sleep(SHORT_SECONDS * 3)  # a timer left behind would cancel this
    assert loop.is_running()
