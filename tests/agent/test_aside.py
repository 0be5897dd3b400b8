"""A child writes: it says what it has to say, and whether it hangs, fails or is cut off, nobody waits for long."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from pp_hostd.agent.act.aside import PATIENCE_SECONDS, aside


def hang() -> str:
    time.sleep(60)
    return "woke up"


def children() -> str:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text()


@pytest.mark.parametrize("sentence", ["", "the disk is full: Gerät voll"])
async def test_the_sentence_is_the_writer_s(sentence: str) -> None:
    assert await aside(lambda: sentence) == sentence


async def test_a_writer_that_fails_is_told() -> None:
    assert await aside(lambda: os._exit(3)) == "the writer ended with status 3"


async def test_a_writer_that_hangs_is_given_up_and_leaves_nobody_behind() -> None:
    began_at, before = time.monotonic(), children()
    assert "the disk did not take it within" in await aside(hang)
    assert time.monotonic() - began_at < 3 * PATIENCE_SECONDS
    while children() != before:  # pytest-timeout bounds it; a busy kernel may take its time to end a process
        assert await aside(lambda: "") == ""


async def test_the_writer_keeps_nothing_open() -> None:
    assert await aside(lambda: " ".join(os.listdir("/proc/self/fd"))) == "0 1 2 3 4"  # 4 is the listing itself
