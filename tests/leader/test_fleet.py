"""The fleet that status and the page show: made of what the cluster holds, without a word that the cluster does not."""

from __future__ import annotations

import json
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.leader.fleet import (
    ALMOST,
    WELL,
    Fleet,
    LimitKind,
    Remediation,
    State,
    as_people_count,
    fleet_of,
    host_of,
)
from pp_hostd.leader.node_memory import Stage
from pp_hostd.model.agent_info import AgentInfo
from pp_hostd.model.budget import Beginning, Budget
from pp_hostd.model.control import Maintenance, Pause
from pp_hostd.model.keys import AGENT, AGENT_INFO, CONDEMNED, EXTERNAL_REMEDIATION, FREED, PAUSED_NODE, PROTECTED
from pp_hostd.model.leader_status import CourseTold, LeaderStatus
from pp_hostd.model.lease import renewed_spec
from pp_hostd.model.promise import Armed, Committed, GateClosed, GateKind, WatchdogKind, Withdrawn

AT = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
PROMISE = Armed("boot-1", 22, 10, WatchdogKind.HARDWARE, GateKind.HOLD, "uid", 3)
ORDER = Maintenance("eve", AT, "new disks", AT + timedelta(hours=1))


def node(name: str, agent: str | None = PROMISE.render(), protected: str = "True", **metadata: Any) -> Json:
    annotations = {**({} if agent is None else {AGENT: agent}), **metadata.pop("annotations", {})}
    condition = {"type": PROTECTED, "status": protected, "reason": "Armed", "message": "resets itself within 42 s"}
    conditions = [{"type": "Ready", "status": "True"}, *([condition] if protected else [])]
    taints = metadata.pop("taints", [])
    return {
        "metadata": {"name": name, "annotations": annotations, **metadata},
        "spec": {"taints": taints},
        "status": {"conditions": conditions},
    }


def course(stage: Stage = Stage.WAITING, *, refused: bool = False, ago_seconds: float = 11) -> CourseTold:
    began = AT - timedelta(seconds=ago_seconds)
    dead_by = began + timedelta(seconds=44)
    return CourseTold("w-1", "w-1", stage.value, "half of 4 nodes know", refused, began, dead_by, began, dead_by)


def leader(*courses: CourseTold, **said: Any) -> dict[str, Json | None]:
    status = LeaderStatus("control-1", AT, "enforce", 4, 7, "", courses, None, 3, 3)
    fields = {**json.loads(status.render()), **said}
    return {"leader": {"data": {"status": json.dumps(fields)}}}


def fleet(*nodes: Json, held: bool = True, enrolled: str = "w-1 w-2 w-10", ours: Any = None) -> Fleet:
    """As a leader that renewed its Lease 5 s ago sees it, if one is `held`."""
    lease = {"metadata": {"resourceVersion": "1"}, "spec": renewed_spec("control-1", 15, AT - timedelta(seconds=5))}
    config_maps = {"enrolled": {"data": dict.fromkeys(enrolled.split(), "{}")}, **leader(), **(ours or {})}
    return fleet_of((host_of(each) for each in nodes), config_maps, lease if held else None, AT)


def test_hosts_stand_in_the_order_in_which_people_count() -> None:
    shown = fleet(node("w-10"), node("w-2"), node("w-1"), node("x"))
    assert [host.name for host in shown.hosts] == ["w-1", "w-2", "w-10"]
    assert shown.not_enrolled == ("x",)
    assert as_people_count("a10b2") < as_people_count("a10b10")
    assert as_people_count("9" * 4000) == as_people_count("9" * 4000)


@pytest.mark.parametrize(
    ("text", "info"),
    [
        (AgentInfo("1.2.3", AT).render(), AgentInfo("1.2.3", AT)),
        (AgentInfo("1.2.3").render(), AgentInfo("1.2.3")),
        ("garbage", None),
    ],
)
def test_a_host_shows_the_version_of_its_agent_if_that_can_be_read(text: str, info: AgentInfo | None) -> None:
    host = host_of(node("w-1", annotations={AGENT_INFO: text}))
    assert host.info == info
    assert host.as_json()["version"] == (info and info.version)
    assert host_of(node("w-1")).info is None


def test_a_well_host_shows_what_protects_it() -> None:
    labels = {"node-role.kubernetes.io/control-plane": "", "other": ""}
    host = host_of(node("w-1", labels=labels))
    assert (host.protected, host.reason, host.ready, host.state) == (True, "Armed", True, State.ARMED)
    assert (host.watchdog, host.gate, host.boot, host.roles) == ("hardware", "hold", "boot-1", ("control-plane",))
    assert (host.self_timeout_seconds, host.watchdog_timeout_seconds, host.rank) == (22, 10, WELL)


@pytest.mark.parametrize(
    ("agent", "state", "gate"),
    [
        (Committed(PROMISE, 7).render(), State.RESETTING, "hold"),
        (GateClosed("boot-2", GateKind.TAINT).render(), State.BOOTING, "taint"),
        (Withdrawn("boot-1").render(), State.WITHDRAWN, ""),
        ("garbage", State.UNREADABLE, ""),
        (None, State.SILENT, ""),
    ],
)
def test_what_its_agent_states_is_shown(agent: str | None, state: State, gate: str) -> None:
    host = host_of(node("w-1", agent))
    assert (host.state, host.gate) == (state, gate)


def test_a_node_without_the_condition_is_not_said_to_be_protected_or_not() -> None:
    host = host_of(node("w-1", protected=""))
    assert (host.protected, host.rank < WELL) == (None, True)
    assert host_of({"metadata": {"name": "bare"}}).protected is None


def test_a_host_that_was_freed_is_away_until_its_agent_or_its_kubelet_is_back() -> None:
    freed = node("w-1", None, "", annotations={FREED: "7"})
    assert not host_of(freed).away  # its kubelet is back
    freed["status"]["conditions"][0]["status"] = "Unknown"
    assert host_of(freed).away
    assert not host_of(node("w-1", annotations={FREED: "7"})).away  # its agent is


def test_who_needs_a_person_comes_first() -> None:
    blocked = course(Stage.HELD, refused=True)
    marked = node("w-2", taints=[{"key": CONDEMNED, "effect": "NoExecute"}])
    requested = node("w-3", annotations={EXTERNAL_REMEDIATION: ""})
    paused, resting = node("w-6", annotations={PAUSED_NODE: ""}), node("w-7", Withdrawn("b", ORDER).render(), "False")
    nodes = (node("w-1"), marked, requested, node("w-5", protected="False"), paused, resting, node("w-8"))
    enrolled = "w-1 w-2 w-3 w-4 w-5 w-6 w-7 w-8"
    shown = fleet(*nodes, enrolled=enrolled, ours=leader(blocked))
    assert [host.name for host in shown.unwell] == ["w-1", "w-2", "w-3", "w-4", "w-5", "w-6", "w-7"]
    asked = [Remediation.BLOCKED, Remediation.RUNNING, Remediation.REQUESTED, Remediation.NONE]
    assert [host.remediation for host in shown.unwell[:4]] == asked
    assert [host.present for host in shown.unwell[:4]] == [True, True, True, False]


@pytest.mark.parametrize(
    ("told", "part"),
    [
        (course(ago_seconds=11), 0.25),
        (course(ago_seconds=-3), 0.0),
        (course(ago_seconds=60), ALMOST),
        (course(Stage.RESTORING, ago_seconds=1), 1.0),
        (course(Stage.HELD), None),
    ],
)
def test_the_bar_is_the_part_of_the_promised_time_that_is_over(told: CourseTold, part: float | None) -> None:
    [ongoing] = fleet(node("w-1"), ours=leader(told)).ongoing
    assert ongoing.part == part


def test_every_limit_that_holds_is_named_with_its_end() -> None:
    control = {"data": {"paused": Pause("eve", AT, "we move").render(), "maintenance": ORDER.render()}}
    begun = Budget(tuple(Beginning(f"w-{n}", int(AT.timestamp()) - 60 * n) for n in (3, 2, 1)))
    budget = {"data": {"budget": begun.render()}}
    said = leader(mode="dry-run", held="too many", trouble="the API is slow")
    shown = fleet(node("w-1"), ours={**said, "control": control, "budget": budget})
    assert " ".join(limit.kind.value for limit in shown.limits) == "pause maintenance dry-run budget held trouble"
    ends = {limit.kind: limit.until_wallclock for limit in shown.limits}
    assert ends[LimitKind.MAINTENANCE] == ORDER.until_wallclock
    assert ends[LimitKind.BUDGET] == AT + timedelta(minutes=57)
    assert shown.resets_left == 0


def test_limits_that_are_over_do_not_hold() -> None:
    over = Maintenance("eve", AT - timedelta(hours=2), "done", AT - timedelta(hours=1))
    old = Budget((Beginning("w-1", int(AT.timestamp()) - 3700),))
    orders = {"control": {"data": {"maintenance": over.render()}}, "budget": {"data": {"budget": old.render()}}}
    shown = fleet(node("w-1"), ours=orders)
    assert (shown.limits, shown.resets_left) == ((), 3)


def test_without_a_leader_that_is_the_first_limit() -> None:
    shown = fleet(node("w-1"), held=False, ours=leader(held="too many"))
    assert [limit.kind for limit in shown.limits] == [LimitKind.NO_LEADER]
    assert fleet_of((), {}, None, AT).hosts == ()


def test_the_json_holds_nothing_but_json() -> None:
    shown = fleet(node("w-1"), node("w-2", Withdrawn("b", ORDER).render(), "False"), ours=leader(course()))
    read = json.loads(json.dumps(shown.as_json()))
    assert read["counts"] == {"enrolled": 3, "protected": 1, "unwell": 3}
    assert [host["name"] for host in read["hosts"]] == ["w-1", "w-2", "w-10"]
    assert (read["ongoing"][0]["part"], read["ongoing"][0]["blocked"]) == (0.25, False)
    assert read["hosts"][1]["maintenance"]["who"] == "eve"
