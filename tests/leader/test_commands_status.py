"""`pp-leader status` and `history`: who leads, what is said of each node, and what is known when nobody leads."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
import yaml

from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NODES
from pp_hostd.model.control import Pause
from pp_hostd.model.keys import ENROLLED, PROTECTED
from pp_hostd.model.leader_status import CourseTold, LeaderStatus, Told, render_history
from pp_hostd.model.lease import LEASE, renewed_spec
from tests.leader.access.attempts import Attempt
from tests.leader.desk import WHEN, Desk, desk

__all__ = ["desk"]

WAITING = CourseTold("worker-1", "metal/m-1", "waiting", "half of 4 nodes know", False, WHEN, None)
REFUSED = CourseTold("worker-2", "metal/m-2", "held back", "its agent has promised nothing", True, WHEN, None)
HOLDER = "control-1_0123456789abcdef"
STATUS = LeaderStatus(HOLDER, WHEN, "enforce", 4, 7, "the API is slow", (WAITING, REFUSED), None, 3, 2)


def now() -> datetime:
    return datetime.now(timezone.utc)


@pytest.fixture(autouse=True)
def _fresh(desk: Desk) -> None:
    """Nobody leads, or ever did."""
    desk.remove(LEASES, LEASE)
    for name in ("leader", "control"):
        desk.remove(CONFIG_MAPS, name)


def hold_lease(desk: Desk, holder: str = HOLDER, ago_seconds: float = 0) -> None:
    renewed = now() - timedelta(seconds=ago_seconds)
    desk.put(LEASES, {"metadata": {"name": LEASE}, "spec": renewed_spec(holder, 15, renewed)})


def say(desk: Desk, status: LeaderStatus) -> None:
    history = render_history([Told(WHEN, "worker-1", "condemning", "cordoning its Node")])
    desk.store("leader", {"status": status.render(), "history": history})


def test_where_nobody_ever_led_that_is_all_there_is_to_say(desk: Desk) -> None:
    said = desk.run("status")
    assert (said.code, said.complaint) == (3, "")
    assert said.output.startswith("leader  nobody leads.")
    assert desk.run("history").output == "No leader has done anything yet.\n"
    assert json.loads(desk.run("history", "--json").output) == []


def test_the_leader_and_every_course_are_shown(desk: Desk) -> None:
    hold_lease(desk)
    due = now() + timedelta(seconds=600)
    say(desk, replace(STATUS, next_actions=(replace(WAITING, due_wallclock=due), REFUSED)))
    said = desk.run("status")
    assert (said.code, said.complaint) == (0, "")
    for shown in (
        "leader control-1 leads since 2026-03-01T12:00:00Z",
        "budget 2 of 3 remediations may still begin in this hour trouble the API is slow",
        "worker-2 held back needs an operator its agent has promised nothing",
    ):
        assert shown in said.prose
    left = re.search(r"due in (\d+) s", said.prose)
    assert left is not None
    assert 500 < int(left[1]) <= 601
    assert max(map(len, said.output.splitlines())) <= 80


def test_with_nothing_to_do_it_says_so(desk: Desk) -> None:
    hold_lease(desk)
    say(desk, replace(STATUS, trouble="", next_actions=()))
    said = desk.run("status")
    assert "No remediation is requested or running." in said.output
    assert "trouble" not in said.output


@pytest.mark.parametrize(("holder", "ago_seconds"), [("", 0), (HOLDER, 16)])
def test_without_a_leader_it_shows_what_was_said_last(desk: Desk, holder: str, ago_seconds: float) -> None:
    hold_lease(desk, holder, ago_seconds)
    say(desk, STATUS)
    said = desk.run("status")
    assert said.code == 3
    assert "nobody leads" in said.output
    assert "last said by control-1, who began to lead at 2026-03-01T12:00:00Z" in said.prose
    assert "worker-1" in said.output


def test_what_an_earlier_leader_said_is_not_the_new_ones(desk: Desk) -> None:
    hold_lease(desk, "control-2")
    say(desk, STATUS)
    said = desk.run("status")
    assert said.code == 0
    assert "control-2 leads last said by control-1" in said.prose


def test_who_has_paused_it_is_shown(desk: Desk) -> None:
    desk.store("control", {"paused": Pause("eve", WHEN, "we move house").render()})
    assert "pause the leader is paused by eve since 2026-03-01T12:00:00Z: we move house" in desk.run("status").prose
    desk.store("control", {"paused": "garbage"})
    assert "the leader condemns and frees no node" in desk.run("status").prose


def test_json_tells_the_same(desk: Desk) -> None:
    hold_lease(desk)
    say(desk, STATUS)
    said = desk.run("status", "--json")
    answer = json.loads(said.output)
    assert (said.code, answer["leads"], answer["holder"], answer["paused"]) == (0, True, HOLDER, None)
    assert answer["renewed_seconds_ago"] < 15
    assert [next_action["node"] for next_action in answer["status"]["courses"]] == ["worker-1", "worker-2"]


def test_what_can_not_be_read_is_told(desk: Desk) -> None:
    hold_lease(desk)
    desk.store("leader", {"status": "garbage", "history": "garbage"})
    said = desk.run("status")
    assert (said.code, "the leader's status is unreadable" in said.prose) == (0, True)
    assert "unreadable" in json.loads(desk.run("status", "--json").output)["unreadable"]
    refused = desk.run("history")
    assert (refused.code, refused.output) == (2, "")
    assert "the leader's history is unreadable" in refused.complaint


def test_the_history_is_a_line_for_each_thing_done(desk: Desk) -> None:
    say(desk, STATUS)
    assert desk.run("history").output.splitlines()[1].split("  ") == [
        "2026-03-01T12:00:00Z",
        "worker-1",
        "condemning",
        "cordoning its Node",
    ]
    [line] = json.loads(desk.run("history", "--json").output)
    assert (line["when"], line["node"]) == ("2026-03-01T12:00:00Z", "worker-1")


def enrol(desk: Desk, name: str, condition: dict[str, str]) -> None:
    desk.enrol(name)
    status = {"status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": PROTECTED, **condition}]}}
    assert desk.world.make(Attempt("patch", NODES, name, status, subresource="status")).ok


def test_every_enrolled_host_is_shown_with_what_protects_it_or_why_nothing_does(desk: Desk) -> None:
    hold_lease(desk)
    say(desk, STATUS)
    enrol(desk, "w-2", {"status": "False", "reason": "NoPromise", "message": "its agent has promised nothing"})
    enrol(desk, "w-1", {"status": "True", "reason": "Armed", "message": "resets itself within 42 s"})
    desk.store(ENROLLED, {"w-1": "{}", "w-2": "{}", "w-3": "{}"})
    said = desk.run("status")
    assert "hosts 3 enrolled: 1 protected, 1 not protected, 1 missing" in said.prose
    assert re.findall("^w-[0-9]", said.output, re.MULTILINE) == ["w-3", "w-2", "w-1"]
    assert "w-1 yes yes hardware hold" in said.prose
    assert "w-2 no yes hardware hold NoPromise: its agent has promised nothing" in said.prose
    assert "w-3 - no - - its Node is missing. See: pp-leader explain w-3" in said.prose
    assert "22 s 10 s hold" in desk.run("status", "-o", "wide").prose
    assert "\x1b" not in said.output


def test_yaml_is_the_same_as_json(desk: Desk) -> None:
    hold_lease(desk)
    say(desk, STATUS)
    answers = (
        json.loads(desk.run("status", "-o", "json").output),
        yaml.safe_load(desk.run("status", "-o", "yaml").output),
    )
    for answer in answers:
        assert answer["fleet"].pop("at")
        answer.pop("renewed_seconds_ago")
        for ongoing in answer["fleet"]["ongoing"]:
            ongoing.pop("part")
    assert answers[0] == answers[1]
