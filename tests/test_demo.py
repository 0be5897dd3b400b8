"""The demo's voices: what a program, a file and a person get to read."""

from __future__ import annotations

import json
import sys

import pytest

from pp_hostd.kube.resources import NODES
from tests.demo.api import Change
from tests.demo.board import HostRow, table
from tests.demo.expect import Untrue
from tests.demo.narrator import Form, Narrator, Role, now
from tests.demo.news import News
from tests.demo.promises import NOT_REACHED, Promise
from tests.demo.terminal import Terminal

LONG = "word " * 60
WELL = HostRow("worker-1", "ok", "runs", "db-0", "healthy: its machine is not condemned")
CUT = WELL._replace(network="cut off", says="no peer confirms that it is healthy")


def promised() -> list[Promise]:
    return [Promise("it resets itself", "within 15 s", "8.1 s", True), Promise("it is back", "once connected")]


def tell_all(form: Form) -> None:
    narrator = Narrator(form)
    narrator.scene("A host is cut off")
    narrator.say(Role.DEMO, "demo", LONG)
    narrator.hosts([CUT])
    narrator.say(Role.AGENT, "worker-1", LONG)
    narrator.hosts([WELL])
    narrator.promises(promised())
    narrator.end(True, "All of it\nhappened.")


def on_a_terminal(monkeypatch: pytest.MonkeyPatch, columns: int = 100, **environment: str) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in {"TERM": "xterm", "COLUMNS": str(columns), **environment}.items():
        monkeypatch.setenv(name, value)


def test_a_program_gets_one_json_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    tell_all(Form.JSON)
    scene, told, said, kept, unreached, end = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert scene["scene"] == "A host is cut off"
    assert (told["role"], told["line"]) == ("demo", LONG)
    assert (said["role"], said["who"], said["line"]) == ("agent", "worker-1", LONG)
    assert (kept["promised"], kept["bound"], kept["measured"], kept["kept"]) == (
        *("it resets itself", "within 15 s"),
        *("8.1 s", True),
    )
    assert unreached["kept"] is None
    assert (end["happened"], end["line"]) == (True, "All of it happened.")
    assert all(isinstance(line["seconds"], float) for line in (scene, told, said, kept, end))


@pytest.mark.parametrize("form", [Form.STORY, Form.VERBOSE])
def test_a_file_gets_no_escape_sequences(capsys: pytest.CaptureFixture[str], form: Form) -> None:
    tell_all(form)
    assert "\033" not in capsys.readouterr().out


def test_a_file_gets_the_story_and_each_table_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    tell_all(Form.STORY)
    assert [line for line in capsys.readouterr().out.splitlines() if line] == [
        "A host is cut off",
        f"  0.0  {LONG.strip()}",
        "HOST      NETWORK  KUBELET  RUNS  ITS AGENT SAYS",
        "worker-1  ok       runs     db-0  healthy: its machine is not condemned",
        "  PROMISED                          MEASURED",
        "✓ it resets itself  within 15 s     8.1 s",
        f"- it is back        once connected  {NOT_REACHED}",
        "All of it",
        "happened.",
    ]


def test_the_long_form_has_what_everybody_says_and_no_table_of_hosts(capsys: pytest.CaptureFixture[str]) -> None:
    tell_all(Form.VERBOSE)
    written = capsys.readouterr().out
    assert "  worker-1  " in written
    assert "NETWORK" not in written


def test_on_a_terminal_the_table_is_written_again_in_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch)
    tell_all(Form.STORY)
    written = capsys.readouterr().out
    terminal = Terminal()
    terminal.feed(written)
    shown = [line for line in terminal.lines() if line.startswith("worker-1")]
    assert shown == ["worker-1  ok       runs     db-0  healthy: its machine is not condemned"]
    assert "cut off" in written
    assert terminal.lines()[-2:] == ["happened.", ""]
    assert written.rfind("\033[?25h") > written.rfind("\033[?25l"), "the cursor is seen again"


@pytest.mark.parametrize("columns", [41, 60, 100])
def test_on_a_terminal_no_line_of_the_story_is_wider(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    on_a_terminal(monkeypatch, columns)
    narrator = Narrator(Form.STORY)
    narrator.say(Role.DEMO, "demo", LONG)
    narrator.hosts([WELL._replace(says=LONG)])
    terminal = Terminal()
    terminal.feed(capsys.readouterr().out)
    assert max(map(len, terminal.lines())) < columns


def test_no_color_takes_colours_away_and_leaves_the_table_in_place(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch, NO_COLOR="1")
    tell_all(Form.STORY)
    written = capsys.readouterr().out
    assert "\033[1m" not in written
    assert "\033[32m" not in written
    assert "F\033[J" in written


def test_a_dumb_terminal_is_written_to_as_a_file(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    on_a_terminal(monkeypatch, TERM="dumb")
    tell_all(Form.STORY)
    assert "\033" not in capsys.readouterr().out


def test_the_colour_of_a_host_says_how_it_fares() -> None:
    off = WELL._replace(kubelet="off")
    assert [line[:5] for line in table([WELL, CUT, off], 100, colour=True)] == [
        *("\033[1mH", "\033[32m"),
        *("\033[33m", "\033[31m"),
    ]


def test_a_promise_that_is_not_kept_ends_the_run_and_is_named() -> None:
    broken = Promise("it resets itself", "within 15 s")
    with pytest.raises(Untrue, match=r"it resets itself: promised within 15 s, measured 16\.0 s"):
        broken.settle("16.0 s", kept=False)
    assert broken.kept is False


def test_of_the_cluster_only_what_changes_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    node = {"metadata": {"name": "worker-5", "uid": "u", "resourceVersion": "1"}}
    other = {"metadata": {"name": "worker-1", "uid": "v", "resourceVersion": "1"}}
    changes = [("ADDED", node), ("ADDED", other), ("MODIFIED", node), ("DELETED", node), ("ADDED", node)]
    News(Narrator(Form.JSON), "worker-5").tell([], [Change(now(), how, NODES, found) for how, found in changes])
    lines = [json.loads(line)["line"] for line in capsys.readouterr().out.splitlines()]
    there = "Node worker-5 is schedulable, not condemned; its agent's record there: none"
    assert lines == [there, "Node worker-5 is deleted", there]
