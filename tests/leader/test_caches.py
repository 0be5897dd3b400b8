"""The leader's caches of the API's objects: garbage is reported and harms nobody, and nothing grows without a bound."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.leader.caches import MAX_FAULTY, Cache, Machines, Nodes
from pp_hostd.leader.watches import OwnConfigMaps
from pp_hostd.model.backup import Backup
from pp_hostd.model.control import Pause
from pp_hostd.model.keys import AGENT, BACKUP_KEY, CONFIRMED_DEAD, CONTROL, ENROLLED, FREED, PAUSED, ROSTER, backup_name
from pp_hostd.model.promise import Armed, Committed, GateKind, WatchdogKind
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member, Roster
from tests.agent.objects import SINCE

GARBAGE: list[Any] = [
    *(None, [], "node", {}, {"metadata": 7}, {"metadata": {"name": 7}}, {"metadata": {"name": "x" * 1_000_000}}),
    {"metadata": {"name": "../../etc", "uid": "uid", "resourceVersion": "1"}},
]


def api_object(name: str, version: int = 1, **metadata: object) -> Json:
    return {"metadata": {"name": name, "uid": f"uid-of-{name}", "resourceVersion": str(version), **metadata}}


def promise(roster_version: int) -> Armed:
    return Armed("boot", 22.0, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, "uid", roster_version)


@pytest.mark.parametrize("garbage", GARBAGE, ids=range(len(GARBAGE)))
@pytest.mark.parametrize("cache", [lambda: Nodes("node"), Machines, OwnConfigMaps])
def test_what_has_no_name_is_told_of_and_changes_nothing_else(cache: Callable[[], Cache[Any]], garbage: object) -> None:
    shown = cache()
    shown.show(shown.keep(api_object("good")))
    shown.show(shown.keep(garbage))
    assert shown.versions["good"] == "1"
    (trouble,) = shown.troubles()
    assert "without a name" in trouble and len(trouble) < 300
    shown.begin_anew()
    assert shown.troubles() == []


def test_the_nodes_that_are_not_ready_are_listed_as_they_change() -> None:
    nodes = Nodes("node")

    def reports(name: str, *statuses: str) -> None:
        conditions = [{"type": "Ready", "status": status} for status in statuses]
        nodes.show(nodes.keep({**api_object(name), "status": {"conditions": conditions}}))

    reports("never")
    reports("well", "True")
    for status in ("False", "Unknown", "odd"):
        reports("a", status)
        assert list(nodes.not_ready) == ["a"]
    reports("a", "True")
    assert not nodes.not_ready
    reports("b", "Unknown")
    nodes.show_gone("b")
    assert not nodes.not_ready
    reports("c", "Unknown")
    nodes.begin_anew()
    assert not nodes.not_ready


def test_a_node_that_becomes_garbage_is_not_there_until_it_can_be_read_again() -> None:
    nodes = Nodes("node")
    nodes.show(nodes.keep(api_object("worker-1", 1)))
    nodes.show(nodes.keep({**api_object("worker-1", 2), "spec": {"taints": "many"}}))
    assert "worker-1" not in nodes.seen
    assert nodes.versions["worker-1"] == "2"
    (trouble,) = nodes.troubles()
    assert trouble.startswith("Node worker-1: the Node is unreadable: taints is 'many', not a list. Correct it")
    nodes.show(nodes.keep(api_object("worker-1", 3)))
    assert nodes.seen["worker-1"].node.resource_version == "3"
    assert nodes.troubles() == []


def test_a_machine_that_was_garbage_in_between_is_another_stretch() -> None:
    machines = Machines()
    machines.show(machines.keep(api_object("worker-1", 1)))
    before = machines.seen["worker-1"].unbroken_since
    machines.show(machines.keep({**api_object("worker-1", 2), "status": {"nodeRef": {"name": 7}}}))
    machines.show(machines.keep(api_object("worker-1", 3)))
    assert machines.seen["worker-1"].unbroken_since != before


def test_a_machine_with_another_uid_is_another_stretch() -> None:
    machines = Machines()
    machines.show(machines.keep(api_object("worker-1", uid="first")))
    before, revision = machines.seen["worker-1"].unbroken_since, machines.revision
    machines.show(machines.keep(api_object("worker-1", uid="second")))
    assert machines.seen["worker-1"].unbroken_since != before
    assert machines.revision > revision


def test_the_node_of_a_machine_is_of_interest_to_the_roster_and_nothing_else_of_its_status() -> None:
    machines, revisions = Machines(), []
    for status in ({}, {"nodeRef": {"name": "x"}}, {"nodeRef": {"name": "x"}, "phase": "Running"}):
        machines.show(machines.keep({**api_object("x", namespace="metal"), "status": status}))
        revisions.append(machines.revision)
    assert revisions == [1, 2, 2]


def test_what_is_wrong_inside_of_a_node_is_told_of_with_its_uid_and_what_to_do() -> None:
    nodes = Nodes("node")
    garbled = {AGENT: "{", FREED: "soon", CONFIRMED_DEAD: "yes"}
    nodes.show(nodes.keep(api_object("worker-1", annotations=garbled)))
    assert nodes.seen["worker-1"].node.uid == nodes.faults["worker-1"].uid == "uid-of-worker-1"
    sentence = nodes.faults["worker-1"].sentence
    for words in ("the agent's record is unreadable", f"remove the annotation {FREED}", "confirm-dead worker-1"):
        assert words in sentence
    nodes.show(nodes.keep(api_object("worker-1", 2)))
    assert nodes.faults == {}


def test_of_thousands_that_can_not_be_read_some_are_told_of() -> None:
    machines = Machines()
    names = [f"worker-{number}" for number in range(5000)]
    for name in names:
        machines.show(machines.keep({**api_object(name, namespace="metal"), "status": []}))
    assert len(machines.faults) == MAX_FAULTY
    for name in names:
        machines.show_gone(f"metal/{name}")
    assert machines.troubles() == []


def test_a_list_begins_a_stretch_for_every_machine_and_forgets_what_is_not_listed() -> None:
    machines = Machines()
    for name in ("stays", "goes"):
        machines.show(machines.keep(api_object(name)))
    machines.show(machines.keep({"metadata": {"name": "bad"}}))
    before = machines.seen["stays"].unbroken_since
    machines.begin_anew()
    assert (machines.seen, machines.versions, machines.faults) == ({}, {}, {})
    machines.show(machines.keep(api_object("stays")))
    assert machines.seen["stays"].unbroken_since != before


def test_the_version_that_an_agent_promised_is_of_interest_to_the_roster_and_nothing_else_of_its_record() -> None:
    nodes, revisions = Nodes("node"), []
    for record in (promise(3), replace(promise(3), boot="another"), Committed(promise(3), 7), promise(4)):
        nodes.show(nodes.keep(api_object("worker-1", annotations={AGENT: record.render()})))
        revisions.append(nodes.revision)
    assert revisions == [1, 1, 1, 2]


def test_names_are_in_the_order_in_which_they_were_asked_for() -> None:
    machines = Machines()
    for name in ("c", "a", "b", "c"):
        machines.show(machines.keep(api_object(name, annotations={"host.metal3.io/external-remediation": ""})))
    assert list(machines.requests) == ["c", "a", "b"]


def config_map(name: str, data: object, version: int = 1) -> Json:
    return {**api_object(name, version, namespace="pp-hostd"), "data": data}


def all_of(ours: OwnConfigMaps) -> object:
    return ours.roster, ours.control, ours.enrolled, ours.backups, ours.versions


def test_our_config_maps_are_read_and_gone_when_they_are_deleted() -> None:
    roster = Roster.of(3, 3, [Member("worker-1", None, "192.0.2.1", "uid", 3, None)])
    backup = Backup("worker-1", "uid", 7, {"rack": "4"}, {}, {})
    pause = Pause("ann", SINCE, "the network moves")
    ours = OwnConfigMaps()
    for name, data in {
        ROSTER: {ROSTER: roster.render()},
        CONTROL: {PAUSED: pause.render()},
        ENROLLED: {"worker-1": "{}", "worker-2": "{}"},
        backup_name("worker-1"): {BACKUP_KEY: backup.render()},
        "kube-root-ca.crt": {"ca.crt": "..."},
    }.items():
        ours.show(ours.keep(config_map(name, data)))
    assert ours.roster is not None and (ours.roster.roster, ours.roster.resource_version) == (roster, "1")
    assert ours.control.paused == pause
    assert ours.enrolled == {"worker-1", "worker-2"}
    assert {node: seen.backup for node, seen in ours.backups.items()} == {"worker-1": backup}
    assert ours.troubles() == []
    for name in list(ours.versions):
        ours.show_gone(name)
    assert all_of(ours) == all_of(OwnConfigMaps())


@pytest.mark.parametrize("name", [ROSTER, CONTROL, ENROLLED])
def test_the_roster_is_planned_again_when_it_or_the_enrolment_changes(name: str) -> None:
    ours = OwnConfigMaps()
    ours.show(ours.keep(config_map(name, {})))
    assert (ours.revision > 0) is (name != CONTROL)


@pytest.mark.parametrize("data", ["garbage", {PAUSED: "garbage"}, {PAUSED: '{"v": 2}'}])
def test_an_order_to_pause_that_can_not_be_read_still_counts(data: object) -> None:
    ours = OwnConfigMaps()
    ours.show(ours.keep(config_map(CONTROL, data)))
    assert isinstance(ours.control.paused, Unreadable)
    assert ours.troubles()[0].startswith("ConfigMap control: the pause is unreadable: ")


def test_a_roster_that_can_not_be_read_is_told_of_and_seen_as_such() -> None:
    ours = OwnConfigMaps()
    ours.show(ours.keep(config_map(ROSTER, {ROSTER: "garbage"})))
    assert ours.roster is not None and isinstance(ours.roster.roster, Unreadable)
    assert ours.troubles()[0].startswith("ConfigMap roster: the roster is unreadable: ")


@pytest.mark.parametrize("text", ["garbage", Backup("worker-2", "uid", 7, {}, {}, {}).render()])
def test_a_backup_that_is_garbage_or_of_another_node_is_not_relied_on(text: str) -> None:
    ours = OwnConfigMaps()
    ours.show(ours.keep(config_map(backup_name("worker-1"), {BACKUP_KEY: text})))
    assert isinstance(ours.backups["worker-1"].backup, Unreadable)
    assert ours.troubles()[0].startswith("ConfigMap backup-worker-1: the backup is unreadable: ")


def test_keys_that_are_no_names_of_nodes_enrol_nobody_and_are_told_of() -> None:
    ours = OwnConfigMaps()
    ours.show(ours.keep(config_map(ENROLLED, {"worker-1": "{}", "Worker_2": "{}"})))
    assert ours.enrolled == {"worker-1"}
    assert ours.troubles() == ["ConfigMap enrolled: 1 of its keys are no names of nodes"]
