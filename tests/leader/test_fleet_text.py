"""The fleet as a person reads it: who needs them comes first, and sixty well hosts are one line."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from pp_hostd.leader.commands.fleet_text import MOST_UNWELL, MOST_WELL, fleet_text
from pp_hostd.leader.fleet import Fleet
from pp_hostd.leader.node_memory import Stage
from pp_hostd.model.agent_info import AgentInfo
from pp_hostd.model.keys import AGENT_INFO, FREED
from pp_hostd.model.leader_status import CourseTold
from pp_hostd.service.screen import Cell, Colour, Screen
from tests.leader.test_fleet import AT, course, fleet, leader, node

PLAIN = Screen(80)
BRIGHT = Screen(80, colours=True, blocks=True, follows=True)


def of(well: int, unwell: int, *courses: CourseTold) -> Fleet:
    names = [f"w-{number}" for number in range(1, well + unwell + 1)]
    nodes = (node(name, protected="True" if place < well else "False") for place, name in enumerate(names))
    return fleet(*nodes, enrolled=" ".join(names), ours=leader(*courses))


def rows(text: str) -> list[str]:
    return re.findall(r"^w-\d+", text, re.MULTILINE)


def test_a_few_hosts_are_all_listed_the_unwell_first() -> None:
    assert rows(fleet_text(of(2, 1), PLAIN, wide=False)) == ["w-3", "w-1", "w-2"]


def test_many_well_hosts_are_one_line_and_wide_lists_them() -> None:
    shown = of(MOST_WELL + 1, 2)
    text = fleet_text(shown, PLAIN, wide=False)
    assert rows(text) == ["w-22", "w-23"]
    assert text.endswith("21 more hosts are protected and ready. To list them: pp-leader status -o wide")
    assert len(rows(fleet_text(shown, PLAIN, wide=True))) == MOST_WELL + 3
    assert "\n21 hosts are protected" in fleet_text(of(MOST_WELL + 1, 0), PLAIN, wide=False)


def test_where_all_are_unwell_the_list_ends_somewhere_and_says_so() -> None:
    text = fleet_text(of(0, MOST_UNWELL + 5), PLAIN, wide=False)
    assert len(rows(text)) == MOST_UNWELL
    assert text.endswith("5 more need attention: pp-leader status -o wide")


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        (course(ago_seconds=11), "w-1  waiting  ####------------ 11/44 s  "),
        (course(Stage.RESTORING), "w-1  restoring  ################ freed  "),
        (course(Stage.HELD, refused=True), "w-1  held back  needs an operator  "),
        (replace(course(Stage.OVER_BUDGET), due_wallclock=AT + timedelta(seconds=90)), "half of 4 nodes know (due in"),
    ],
)
def test_the_present_work_has_a_bar_or_says_what_it_waits_for(told: CourseTold, shown: str) -> None:
    assert shown in fleet_text(of(3, 0, told), PLAIN, wide=False)


def test_mixed_versions_are_counted_and_wide_shows_each_with_the_end_of_its_certificate() -> None:
    infos = AgentInfo("1.1.0", AT), AgentInfo("1.0.0"), AgentInfo("1.1.0")
    nodes = [node(f"w-{at}", annotations={AGENT_INFO: info.render()}) for at, info in enumerate(infos, 1)]
    shown = fleet(*nodes, node("w-4"), enrolled="w-1 w-2 w-3 w-4")
    assert re.search(r"^agents +2 of version 1.1.0, 1 of version 1.0.0$", fleet_text(shown, PLAIN, wide=False), re.M)
    wide = fleet_text(shown, Screen(200), wide=True)
    assert re.search(r"^w-1 .* hold  1.1.0    2026-03-01T12:00:00Z$", wide, re.M), wide
    assert re.search(r"^w-4 .* hold  -        -$", wide, re.M), wide


def test_who_blocks_comes_before_who_waits() -> None:
    waits, blocked = course(Stage.HELD), replace(course(Stage.HELD, refused=True), node="w-2")
    text = fleet_text(of(3, 0, waits, blocked), PLAIN, wide=False)
    assert rows(text)[:2] == ["w-2", "w-1"]


def test_colours_and_blocks_are_for_terminals_that_want_them() -> None:
    shown = of(3, 1, course())
    plain, bright = fleet_text(shown, PLAIN, wide=False), fleet_text(shown, BRIGHT, wide=False)
    assert plain.isascii()
    uncoloured = re.sub(r"\x1b\[\d+m", "", bright).replace("\u2588", "#").replace("\u2591", "-")
    assert [line.rstrip() for line in uncoloured.splitlines()] == plain.splitlines()
    assert "\x1b[31mno" in bright


def test_a_freed_host_that_is_not_back_is_said_to_be_so() -> None:
    freed = node("w-1", None, "", annotations={FREED: "7"})
    freed["status"]["conditions"][0]["status"] = "Unknown"
    text = fleet_text(fleet(freed, enrolled="w-1"), PLAIN, wide=False)
    assert "1 enrolled: 1 not back" in text
    assert "its workloads are freed, and its" in text


@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_the_screen(width: int) -> None:
    shown = of(3, 30, course())
    assert max(map(len, fleet_text(shown, Screen(width), wide=False).splitlines())) <= max(width, 60)


class Stream:
    """A terminal, or a file."""

    def __init__(self, terminal: bool, encoding: str = "utf-8") -> None:
        self.terminal, self.encoding = terminal, encoding

    def isatty(self) -> bool:
        return self.terminal


@pytest.mark.parametrize(
    ("terminal", "environment", "no_color", "colours", "follows"),
    [
        (True, {}, False, True, True),
        (True, {"NO_COLOR": "1"}, False, False, True),
        (True, {"NO_COLOR": ""}, False, True, True),
        (True, {}, True, False, True),
        (True, {"TERM": "dumb"}, False, False, False),
        (False, {}, False, False, False),
    ],
)
def test_a_screen_knows_what_it_may_show(
    terminal: bool, environment: dict[str, str], no_color: bool, colours: bool, follows: bool
) -> None:
    screen = Screen.of(Stream(terminal), environment, no_color=no_color)  # type: ignore[arg-type]
    assert (screen.colours, screen.follows, screen.blocks) == (colours, follows, follows)
    assert not Screen.of(Stream(terminal, "ascii"), environment, no_color=no_color).blocks  # type: ignore[arg-type]


def test_a_bar_is_full_only_at_the_end() -> None:
    assert [PLAIN.bar(part, 4) for part in (0.0, 0.5, 0.99, 1.0)] == ["----", "##--", "###-", "####"]


def test_a_long_text_stays_beside_its_label() -> None:
    text = Screen(40).labelled([("leader", "a " * 30), ("x", Cell("y", Colour.RED))])
    assert [line[:8] for line in text.splitlines()] == ["leader  ", "        ", "x       "]
