"""Following the fleet: in place on a terminal, as lines where there is none; an API that is away ends nothing."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
from collections.abc import Iterator

import pytest

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.leader.commands.follow import OTHER_SCREEN, OWN_SCREEN, changes, follow, frame
from pp_hostd.leader.fleet import Fleet
from pp_hostd.leader.node_memory import Stage
from pp_hostd.service.screen import Screen
from tests.harness.eventually import HANGS_SECONDS
from tests.leader.desk import ENVIRONMENT, PP_LEADER, Desk, desk
from tests.leader.test_fleet import course, fleet, leader, node

__all__ = ["desk"]

AWAY = UserError("the API can't be reached: refused", "Is it running?")
CALM, AT_WORK = fleet(node("w-1"), enrolled="w-1"), fleet(node("w-1"), enrolled="w-1", ours=leader(course()))


class Ended(Exception):
    """The script is over."""


def followed(screen: Screen, *looks: Fleet | UserError) -> None:
    script: Iterator[Fleet | UserError] = iter(looks)

    def look() -> Fleet:
        seen = next(script, None)
        if seen is None:
            raise Ended
        if isinstance(seen, UserError):
            raise seen
        return seen

    with pytest.raises(Ended):
        follow(look, lambda: screen, wide=False, rest=lambda: None)


def test_without_a_terminal_each_change_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    followed(Screen(), CALM, CALM, AT_WORK, AT_WORK, CALM)
    _, _, lines = capsys.readouterr().out.partition("w-1   yes")
    assert [line.partition("Z ")[2] for line in lines.splitlines()[1:]] == [
        "w-1: waiting: half of 4 nodes know",
        "w-1: its remediation is running",
        "nothing is left to do: w-1",
        "w-1: protected and ready",
    ]


def test_an_api_that_is_away_is_told_once_and_its_return_too(capsys: pytest.CaptureFixture[str]) -> None:
    followed(Screen(), CALM, AWAY, AWAY, CALM)
    lines = capsys.readouterr().out.splitlines()[-2:]
    assert lines[0].endswith("Z the API does not answer: the API can't be reached: refused")
    assert lines[1].endswith("Z the API answers again")


def test_a_terminal_shows_since_when_its_picture_is_old(capsys: pytest.CaptureFixture[str]) -> None:
    followed(Screen(follows=True), CALM, AWAY)
    shown = capsys.readouterr().out
    assert (shown.count(OTHER_SCREEN), shown.count(OWN_SCREEN)) == (1, 1)
    assert "The API does not answer since 2" in shown
    assert "the API can't be reached: refused" in shown.partition(OWN_SCREEN)[2]
    assert "w-1" in shown.partition("does not answer")[2]


def test_a_first_look_that_fails_is_an_error() -> None:
    with pytest.raises(UserError):
        follow(lambda: (_ for _ in ()).throw(AWAY), Screen, wide=False)


def test_a_new_leader_and_a_new_limit_are_changes() -> None:
    held = fleet(node("w-1"), enrolled="w-1", ours=leader(held="too many nodes are sick"))
    assert list(changes(CALM, held)) == ["limit held: too many nodes are sick"]
    assert list(changes(held, CALM)) == ["no longer: limit held"]
    alone = fleet(node("w-1"), enrolled="w-1", held=False)
    assert [line[:12] for line in changes(CALM, alone)] == ["nobody leads"]


def test_a_stage_that_goes_on_in_the_same_words_is_no_change() -> None:
    later = fleet(node("w-1"), enrolled="w-1", ours=leader(course(ago_seconds=20)))
    assert list(changes(AT_WORK, later)) == []
    checking = fleet(node("w-1"), enrolled="w-1", ours=leader(course(Stage.CHECKING)))
    assert list(changes(AT_WORK, checking)) == ["w-1: checking: half of 4 nodes know"]


def test_a_picture_has_no_more_lines_than_the_terminal() -> None:
    text = "\n".join(map(str, range(30)))
    assert frame(text, Screen(height=10)).count("\n") == 9
    assert "21 more lines" in frame(text, Screen(height=10))
    assert "more lines" not in frame(text, Screen(height=30))


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_whoever_ends_it_gets_the_terminal_back(desk: Desk, number: signal.Signals, code: int) -> None:
    desk.remove(CONFIG_MAPS, "leader")
    outer, inner = pty.openpty()
    command = [str(PP_LEADER), "status", "--watch", "--kubeconfig", desk.kubeconfig]
    shown = b""
    with subprocess.Popen(command, stdin=inner, stdout=inner, stderr=inner, env=ENVIRONMENT) as process:
        os.close(inner)
        while b"No host is enrolled" not in shown:
            shown += os.read(outer, 4096)
        process.send_signal(number)
        while OWN_SCREEN.encode() not in shown:
            shown += os.read(outer, 4096)
        assert process.wait(HANGS_SECONDS) == code
    os.close(outer)
    assert b"Traceback" not in shown


def test_it_prints_no_json_for_ever(desk: Desk) -> None:
    said = desk.run("status", "--watch", "--json")
    assert (said.code, said.output) == (2, "")
    assert "pp-leader status -o json" in said.complaint
