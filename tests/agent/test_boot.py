"""After a reset the next boot says once why the last one ended, and believes no record that it can't read."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from time import CLOCK_BOOTTIME, clock_gettime

import pytest
from freezegun import freeze_time
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.agent.act.watchdog_device import CARD_RESET
from pp_hostd.agent.sense.boot import (
    HISTORY,
    MAX_HISTORY,
    RECORD,
    Ending,
    LastBoot,
    boot_id,
    booted_wallclock,
    ending,
    history,
    last_boot,
    parse_ending,
)
from pp_hostd.model.moment import parse_moment
from pp_hostd.model.record import Unreadable

ISOLATED = Ending("boot-1", "no proof for 22 s and no peer answered", None, "2026-03-01T12:00:00Z")
CONDEMNED = Ending("boot-1", "it was condemned", 7, "2026-03-01T12:00:00Z")


def leave(directory: Path, text: str) -> None:
    (directory / RECORD).write_text(text)


def test_the_reason_is_said_once_and_then_is_history(tmp_path: Path) -> None:
    leave(tmp_path, ISOLATED.render())
    said = last_boot(str(tmp_path), "boot-2", None)
    assert said == LastBoot(
        "the last boot ended because no proof for 22 s and no peer answered (boot boot-1, at 2026-03-01T12:00:00Z)"
    )
    assert last_boot(str(tmp_path), "boot-2", None) == LastBoot()
    assert [(one.boot, one.told_in) for one in history(str(tmp_path))] == [("boot-1", "boot-2")]


def test_the_watchdog_s_word_is_added_to_the_record(tmp_path: Path) -> None:
    leave(tmp_path, CONDEMNED.render())
    said = last_boot(str(tmp_path), "boot-2", CARD_RESET | 1).sentence
    assert said is not None
    assert said.startswith("the last boot ended because it was condemned, and the watchdog did it")
    assert history(str(tmp_path))[0].condemnation_id == 7
    assert last_boot(str(tmp_path), "boot-2", CARD_RESET) == LastBoot()


def test_a_watchdog_that_fired_without_a_word_is_said_once_in_each_boot(tmp_path: Path) -> None:
    sentence = "the last boot ended because its watchdog was not fed in time; that boot left no reason"
    for boot in ("boot-2", "boot-3"):
        assert last_boot(str(tmp_path), boot, CARD_RESET) == LastBoot(sentence)
        assert last_boot(str(tmp_path), boot, CARD_RESET) == LastBoot()


def test_nothing_left_behind_is_nothing_to_say(tmp_path: Path) -> None:
    assert last_boot(str(tmp_path), "boot-2", 0) == LastBoot()
    leave(tmp_path, "")  # opened for a reset that never came
    assert last_boot(str(tmp_path), "boot-2", None) == LastBoot()
    assert list(tmp_path.iterdir()) == [tmp_path / RECORD]


def test_the_record_of_a_reset_that_is_still_due_in_this_boot_is_left_alone(tmp_path: Path) -> None:
    leave(tmp_path, ISOLATED.render())
    assert last_boot(str(tmp_path), "boot-1", None) == LastBoot()
    assert (tmp_path / RECORD).read_text() == ISOLATED.render()


@pytest.mark.parametrize(
    "text", ["not JSON", '{"v":2,"boot":"b","cause":"c","ended":"e"}', '{"v":1}', "[]", "\x00" * 9]
)
def test_a_record_that_can_not_be_read_is_set_aside_and_counts_as_nothing(text: str, tmp_path: Path) -> None:
    leave(tmp_path, text)
    said = last_boot(str(tmp_path), "boot-2", None)
    assert said.sentence is None
    assert said.trouble is not None
    assert f"{RECORD}.set-aside" in said.trouble
    assert (tmp_path / f"{RECORD}.set-aside").read_text() == text
    assert last_boot(str(tmp_path), "boot-2", None) == LastBoot()


def test_what_stands_in_the_record_s_place_is_reported_and_not_opened(tmp_path: Path) -> None:
    (tmp_path / RECORD).mkdir()
    assert "is a directory" in str(last_boot(str(tmp_path), "boot-2", None).trouble)


def test_history_keeps_the_newest_and_leaves_out_what_it_can_not_read(tmp_path: Path) -> None:
    for number in range(MAX_HISTORY + 5):
        leave(tmp_path, Ending(f"boot-{number}", "of a test").render())
        assert last_boot(str(tmp_path), f"boot-{number + 1}", None).sentence is not None
    with open(tmp_path / HISTORY, "a") as file:
        file.write("garbage\n")
    boots = [one.boot for one in history(str(tmp_path))]
    assert boots == [f"boot-{number}" for number in range(5, MAX_HISTORY + 5)]


@given(st.one_of(st.binary(), st.text(), st.none(), st.integers()))
def test_no_record_raises(text: object) -> None:
    assert isinstance(parse_ending(text), (Ending, Unreadable))


def test_a_record_reads_back_as_it_was_written() -> None:
    for one in (ISOLATED, CONDEMNED, ending(boot_id(), "of\na test" * 1000, 3)):
        assert parse_ending(one.render()) == one


@freeze_time("2026-03-01T12:00:00.7Z")
def test_a_record_has_the_second_in_which_the_reset_was_decided() -> None:
    assert ending("boot-1", "it was condemned", 7) == CONDEMNED


def test_this_boot_has_an_id() -> None:
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", boot_id())


@freeze_time("2026-03-01T12:00:00Z")
def test_this_boot_began_as_long_ago_as_the_host_has_been_up() -> None:
    noon = datetime.now(timezone.utc)
    least_seconds = clock_gettime(CLOCK_BOOTTIME)
    began = parse_moment(booted_wallclock())
    most_seconds = clock_gettime(CLOCK_BOOTTIME)
    assert began is not None
    assert least_seconds <= (noon - began).total_seconds() < most_seconds + 1
