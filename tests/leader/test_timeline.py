"""The last remediation of a node as a timeline: from the leaders' history alone, as text, picture and JSON."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pp_hostd.leader.commands.timeline import timeline_svg, timeline_text
from pp_hostd.leader.timeline import FINISHED, Timeline, last_remediation
from pp_hostd.model.leader_status import Told, render_history
from pp_hostd.service.screen import Screen
from tests.leader.desk import Desk, desk

__all__ = ["desk"]

WHEN = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
STAGES = ((0, "held back"), (10, "condemning"), (11, "condemning"), (12, "waiting"), (56, "checking"))
FREES = ((57, "freeing"), (58, "restoring"), (59, "clearing"), (60, FINISHED))


def at(seconds: float) -> datetime:
    return WHEN + timedelta(seconds=seconds)


def history(*lines: tuple[int, str], node: str = "w-1") -> list[Told]:
    """From the second line on its host is to be dead 44 s after that."""
    return [
        Told(at(seconds), node, stage, f"{stage} & at {seconds} <s>", at(54) if number else None)
        for number, (seconds, stage) in enumerate(lines)
    ]


def told(*lines: tuple[int, str]) -> Timeline:
    found = last_remediation(history(*lines), "w-1")
    assert found is not None
    return found


def test_stages_follow_each_other_and_the_measured_end_stands_beside_the_promised_one() -> None:
    shown = told(*STAGES, *FREES)
    assert [span.stage for span in shown.spans] == [stage for _, stage in (*STAGES[:2], *STAGES[3:], *FREES[:3])]
    assert (shown.spans[1].began_wallclock, shown.spans[1].ended_wallclock) == (at(10), at(12))
    assert shown.spans[1].sentence == "condemning & at 11 <s>"
    assert (shown.promised_seconds, shown.freed_seconds, shown.finished_wallclock) == (44, 48, at(60))
    assert shown.summary() == (
        "Its workloads were free 48 s after its remediation could begin. The host was to be dead within 44 s."
    )


def test_only_the_last_remediation_of_that_node_counts() -> None:
    other = history(*STAGES, node="w-2")
    earlier = [replace(line, when_wallclock=line.when_wallclock - timedelta(hours=1)) for line in history(*FREES)]
    shown = last_remediation([*earlier, *other, *history(*STAGES)], "w-1")
    assert shown is not None
    assert (shown.began_wallclock, shown.spans[-1].stage, shown.finished_wallclock) == (at(0), "checking", None)
    assert shown.summary().startswith("It is not over: checking.")
    assert last_remediation(other, "w-1") is None
    assert last_remediation(history((0, FINISHED)), "w-1") is None


def test_a_request_that_was_withdrawn_freed_nothing() -> None:
    shown = told(*STAGES[:4], (20, "clearing"), (21, FINISHED))
    assert (shown.freed_wallclock, "somebody withdrew" in shown.summary()) == (None, True)


def test_workloads_that_are_freed_without_a_new_node_are_free_at_the_end() -> None:
    assert told(*STAGES, (57, "freeing"), (60, FINISHED)).freed_wallclock == at(60)


@pytest.mark.parametrize("width", [60, 80, 120])
def test_the_text_is_as_wide_as_the_screen_and_each_stage_is_seen(width: int) -> None:
    text = timeline_text(told(*STAGES, *FREES), Screen(width), at(100))
    lines = text.splitlines()
    assert max(map(len, lines)) <= width
    rows = [line for line in lines if line.endswith((".", "#")) and " s  " in line]
    assert all("#" in row for row in rows)
    assert [row.split("  ")[0] for row in rows] == [span.stage for span in told(*STAGES, *FREES).spans]
    [waits] = [row for row in rows if row.startswith("waiting")]
    assert waits.split()[1:5] == ["12", "s", "44", "s"]


def test_what_is_not_over_grows_until_now() -> None:
    text = timeline_text(told(*STAGES[:4]), Screen(80), at(32))
    assert "   20 s  " in text


def test_the_picture_is_whole_says_what_it_shows_and_takes_nothing_from_elsewhere() -> None:
    picture = timeline_svg(told(*STAGES, *FREES), at(100))
    root = ElementTree.fromstring(picture)
    texts = [each.text for each in root.iter() if each.text]
    assert "The remediation of w-1" in texts
    assert "waiting & at 12 <s>" in texts
    assert "dead by here, as promised" in texts
    assert "href" not in picture
    assert "url(" not in picture


def test_the_command_draws_writes_and_tells(desk: Desk, tmp_path: Path) -> None:
    desk.store("leader", {"history": render_history(history(*STAGES, *FREES))})
    drawn = desk.run("timeline", "w-1", "--svg", str(tmp_path / "w-1.svg"))
    assert (drawn.code, drawn.complaint) == (0, "")
    assert "waiting 12 s 44 s" in drawn.prose
    assert (tmp_path / "w-1.svg").read_text().startswith("<svg")
    answer = json.loads(desk.run("timeline", "w-1", "--json").output)
    assert (answer["promised_seconds"], answer["freed_seconds"], len(answer["stages"])) == (44, 48, 7)


def test_who_was_never_remedied_has_no_timeline_and_who_is_mistyped_is_told(desk: Desk) -> None:
    desk.store("leader", {"history": render_history(history(*STAGES))})
    desk.enrol("w-7")
    never = desk.run("timeline", "w-7")
    assert (never.code, "the leaders' history has nothing about w-7" in never.complaint) == (2, True)
    assert "there is no Node w-8" in desk.run("timeline", "w-8").complaint
