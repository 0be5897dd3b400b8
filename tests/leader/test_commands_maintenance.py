"""`pp-leader maintenance`: all hosts disarm for planned work, and the order has an end."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.model.control import Control, Maintenance, parse_control
from pp_hostd.model.keys import AGENT, CONTROL, NAMESPACE
from pp_hostd.model.promise import Withdrawn
from tests.leader.desk import Desk, desk

__all__ = ["desk"]


@pytest.fixture(autouse=True)
def _fresh(desk: Desk) -> None:
    desk.remove(CONFIG_MAPS, CONTROL)
    desk.remove(NODES, "worker-1", None)
    desk.enrol("worker-1")


def control(desk: Desk) -> Control:
    return parse_control(desk.world.read(CONFIG_MAPS, CONTROL, NAMESPACE).get("data"))


def test_an_order_says_who_why_and_until_when_and_who_is_still_armed(desk: Desk) -> None:
    begun = desk.run("maintenance", "--for", "30m", "--why", "new switch", "--wait", "0")
    assert (begun.code, begun.complaint) == (1, "")
    assert "Still armed: worker-1" in begun.prose
    order = control(desk).maintenance
    assert isinstance(order, Maintenance)
    assert (order.who, order.why) == ("eve", "new switch")
    assert order.until_wallclock - order.when_wallclock == timedelta(minutes=30)


def test_once_all_hosts_have_withdrawn_the_work_may_begin(desk: Desk) -> None:
    desk.annotate("worker-1", **{AGENT: Withdrawn("boot-1").render()})
    begun = desk.run("maintenance", "--for", "24h", "--wait", "0")
    assert (begun.code, "the work may begin" in begun.prose) == (0, True)


def test_it_is_shown_and_ended_and_a_pause_stays(desk: Desk) -> None:
    desk.run("pause", "--why", "we move house")
    desk.run("maintenance", "--for", "30m", "--why", "new switch", "--wait", "0")
    assert "by eve, until 2" in desk.run("maintenance").prose
    assert "by eve, until 2" in desk.run("status").prose
    assert json.loads(desk.run("status", "--json").output)["maintenance"].endswith(": new switch")
    ended = desk.run("maintenance", "--off")
    assert (ended.code, "is ended" in ended.prose) == (0, True)
    assert control(desk).maintenance is None
    assert control(desk).paused is not None
    assert desk.run("maintenance", "--off").output == "Nothing to do: there is no maintenance of all hosts.\n"
    assert desk.run("maintenance").output == "There is no maintenance of all hosts.\n"


def test_an_order_that_is_over_is_shown_as_such(desk: Desk) -> None:
    order = '{"v":1,"who":"eve","when":"2024-01-01T00:00:00Z","why":"x","until":"2024-01-01T01:00:00Z"}'
    desk.store(CONTROL, {"maintenance": order})
    assert "by eve, over since 2024-01-01T01:00:00Z: x" in desk.run("maintenance").prose


@pytest.mark.parametrize("duration", ["25h", "2d", "59s", "0m", "forever", "-5m", ""])
def test_a_duration_that_hosts_would_refuse_is_refused(desk: Desk, duration: str) -> None:
    refused = desk.run("maintenance", f"--for={duration}")
    assert (refused.code, refused.output) == (2, "")
    assert f"--for {duration}: is no duration from 1m to 24h" in refused.complaint
