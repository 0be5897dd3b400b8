"""The table of docs/safety.md about the costs of the majority: the judge decides as each row says."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from pp_hostd.model.settings import Settings
from tests.agent.judging import PROVEN, VirtualHost, cut_off, each, machine, shows, silent, standing, swallows

PAGE = Path(__file__).parents[2] / "docs" / "safety.md"
HEADING = "| n | what fails | hosts that hear each other | the API, for them | reset |"
LONG_SECONDS = 120.0


class Row(NamedTuple):
    n: str
    fails: str
    hear: str
    api: str
    reset: str


def rows() -> list[Row]:
    _, _, table = PAGE.read_text(encoding="utf-8").partition(f"{HEADING}\n")
    lines = table.partition("\n\n")[0].splitlines()[1:]
    return [Row(*(cell.strip() for cell in line.strip("|").split("|"))) for line in lines]


def test_the_table_is_there() -> None:
    assert {row.reset == "nobody" for row in rows()} == {True, False}
    assert {"everybody", "nobody"} < {row.reset for row in rows()}


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.n}: {row.fails}")
def test_whoever_the_page_says_is_reset_and_nobody_else(row: Row) -> None:
    settings, n, hear = Settings(), int(row.n), int(row.hear)
    peers = standing(n).peers
    heard = {peer: cut_off(settings) for peer in peers[: hear - 1]}
    api = {"away": swallows(settings), "there": shows(machine())}[row.api]
    host = VirtualHost(settings, standing(n), api, each(heard, silent(settings)), memory=PROVEN)
    host.run(LONG_SECONDS)
    assert (host.verdict.reset is None) == (row.reset == "nobody"), host.verdict.sentence
