"""The demo's voices: what a program, a file and a person get to read."""

from __future__ import annotations

import json

import pytest

from pp_hostd.kube.resources import NODES
from tests.demo.api import Change
from tests.demo.narrator import Form, Narrator, Role, now
from tests.demo.news import News

LONG = "word " * 60


def tell_all(form: Form) -> None:
    narrator = Narrator(form)
    narrator.scene("A host is cut off")
    narrator.say(Role.AGENT, "worker-1", LONG)
    narrator.end(True, "All of it\nhappened.")


def test_a_program_gets_one_json_object_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    tell_all(Form.JSON)
    scene, said, end = (json.loads(line) for line in capsys.readouterr().out.splitlines())
    assert scene["scene"] == "A host is cut off"
    assert (said["role"], said["who"], said["line"]) == ("agent", "worker-1", LONG)
    assert (end["happened"], end["line"]) == (True, "All of it happened.")
    assert all(isinstance(line["seconds"], float) for line in (scene, said, end))


def test_a_file_gets_no_escape_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    tell_all(Form.PLAIN)
    assert "\033" not in capsys.readouterr().out


def test_a_person_gets_colours_and_lines_that_fit(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    tell_all(Form.COLOUR)
    plain = capsys.readouterr().out.replace("\033[36m", "<").replace("\033[0m", ">")
    assert "<worker-1          >" in plain
    assert max(len(line) for line in plain.splitlines() if "word" in line) <= 80 + len("<>")


def test_of_the_cluster_only_what_changes_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    node = {"metadata": {"name": "worker-5", "uid": "u", "resourceVersion": "1"}}
    other = {"metadata": {"name": "worker-1", "uid": "v", "resourceVersion": "1"}}
    changes = [("ADDED", node), ("ADDED", other), ("MODIFIED", node), ("DELETED", node), ("ADDED", node)]
    News(Narrator(Form.JSON), "worker-5").tell([], [Change(now(), how, NODES, found) for how, found in changes])
    lines = [json.loads(line)["line"] for line in capsys.readouterr().out.splitlines()]
    there = "Node worker-5 is schedulable, not condemned; its agent's record there: none"
    assert lines == [there, "Node worker-5 is deleted", there]
