"""Bad input: whatever stands in the cluster, nothing is freed on the strength of it, and a person is told why."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Callable

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import AskPeers, Condemn
from pp_hostd.leader.steps.nodes import Complete, Cordon, DeleteNode, DropBackup, Recreate
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.condemnation import Confirmation
from pp_hostd.model.control import Maintenance
from pp_hostd.model.keys import (
    AGENT,
    CONDEMNATION_ID,
    CONFIRMED_DEAD,
    EXTERNAL_REMEDIATION,
    FREEING,
    ROSTER,
    backup_name,
)
from pp_hostd.model.promise import Armed, GateKind, WatchdogKind, Withdrawn
from pp_hostd.model.roster import Roster
from pp_hostd.model.settings import Leader, Settings
from tests.leader.virtual_host import HOST, World

WHEN = datetime(2026, 3, 1, tzinfo=timezone.utc)
ORDER = Maintenance("ann", WHEN, "new memory", WHEN)


def stated(record: str) -> Callable[[World], None]:
    return lambda world: world.annotate_node(HOST, **{AGENT: record})


def promised(**changes: object) -> Callable[[World], None]:
    return lambda world: world.state(replace(world.promise, **changes))  # type: ignore[arg-type]


ABSURD = Armed("boot-1", 1e9, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, "machine-x", 1).render()

PROMISES = {
    "the agent's record is unreadable": stated("{"),
    "the agent's record is unreadable: T is 1000000000": stated(ABSURD),
    "its agent has promised nothing": lambda world: world.state(None),
    "its agent has withdrawn its promise": World.withdraws,
    "it is in maintenance by ann until 2026-03-01T00:00:00Z: new memory": lambda world: world.state(
        Withdrawn("boot-1", ORDER)
    ),
    "it has no watchdog, and leader.accept_software_only is false": promised(watchdog=WatchdogKind.SOFTWARE_ONLY),
    "its promise is about another machine (uid another, not machine-x)": promised(machine_uid="another"),
    "the roster holds versions 1 to 1": promised(roster_version=9),
}


@pytest.mark.parametrize("sentence", PROMISES)
def test_a_host_without_a_promise_that_holds_is_not_even_condemned(sentence: str) -> None:
    world = World()
    PROMISES[sentence](world)
    world.request()
    told = world.held(100.0)
    assert sentence in told
    assert "pp-leader confirm-dead x" in told
    assert not world.steps()
    assert world.driver.next_actions[0].refused


@pytest.mark.parametrize("sentence", PROMISES)
def test_a_host_whose_promise_goes_wrong_in_the_middle_is_not_freed(sentence: str) -> None:
    world = World()
    world.request()
    world.run(lambda: bool(world.steps(AskPeers)))
    PROMISES[sentence](world)
    assert sentence in world.held(200.0)


def test_a_software_only_promise_is_waited_for_where_a_setting_accepts_it() -> None:
    world = World(settings=Settings(leader=Leader(accept_software_only=True)))
    world.promises(watchdog=WatchdogKind.SOFTWARE_ONLY)
    world.request()
    world.run(world.given_back)


def test_a_softdog_s_promise_is_waited_for_unless_a_setting_refuses_it() -> None:
    world = World()
    world.promises(watchdog=WatchdogKind.SOFTDOG)
    world.request()
    world.run(world.given_back)
    world = World(settings=Settings(leader=Leader(accept_softdog=False)))
    world.promises(watchdog=WatchdogKind.SOFTDOG)
    world.request()
    told = world.held(100.0)
    assert "its watchdog is softdog, which a hung kernel stops, and leader.accept_softdog is false" in told
    assert "pp-leader confirm-dead x" in told
    assert not world.steps()


@pytest.mark.parametrize(("roster", "sentence"), [(None, "there is none yet"), ("[]", "the roster is unreadable")])
def test_without_a_roster_nobody_can_count(roster: str | None, sentence: str) -> None:
    world = World()
    world.nodes_revision = lambda: world.driver.roster_revision  # type: ignore[method-assign]  # no new one is written
    world.config_map(ROSTER, None if roster is None else {ROSTER: roster})
    world.request()
    assert sentence in world.held(60.0)


# The condemnation


@pytest.mark.parametrize(
    "annotations",
    [
        {EXTERNAL_REMEDIATION: "yesterday"},
        {EXTERNAL_REMEDIATION: "2026-03-01T00:00:00Z"},
        {EXTERNAL_REMEDIATION: "2026-03-01T00:00:00Z", CONDEMNATION_ID: "-1"},
        {EXTERNAL_REMEDIATION: "", CONDEMNATION_ID: "one"},
    ],
)
@pytest.mark.parametrize("machines", ["openshift", "node"])
def test_a_condemnation_that_cant_be_read_condemns_nobody(machines: str, annotations: dict[str, str]) -> None:
    world = World(machines)
    world.annotate_machine(world.machine_key, **annotations)
    told = world.held(100.0)
    assert "the condemnation is unreadable" in told
    assert "To make it readable: pp-leader absolve x" in told
    assert not world.steps()


def test_a_condemnation_that_cant_be_read_of_a_machine_that_no_node_names_is_told_of() -> None:
    world = World()
    world.annotate_node(HOST, **{"machine.openshift.io/machine": "machines/another"})
    world.annotate_machine(world.machine_key, **{EXTERNAL_REMEDIATION: "", CONDEMNATION_ID: "one"})
    told = world.held(60.0)
    assert "Remove host.metal3.io/external-remediation and the label" in told
    assert "set pp-hostd.io/condemnation-id to a number that is larger than any before" in told


def test_an_id_that_cant_grow_is_told_of() -> None:
    world = World()
    world.annotate_machine(world.machine_key, **{EXTERNAL_REMEDIATION: "", CONDEMNATION_ID: "9" * 15})
    assert "can't grow any further" in world.held(60.0)
    assert not world.steps()


@pytest.mark.parametrize("steps", range(1, 11))
def test_a_condemnation_that_is_garbled_in_the_middle_is_void_and_nothing_licenses_to_free(steps: int) -> None:
    world = World()
    world.request()
    world.run(lambda: len(world.done) == steps)
    world.garble()
    assert "the condemnation is unreadable" in world.held(200.0)
    assert not world.licensed()


def test_a_condemnation_that_a_person_wrote_is_taken_over_under_a_new_id() -> None:
    world = World()
    world.annotate_machine(world.machine_key, **{EXTERNAL_REMEDIATION: "2026-03-01T00:00:00Z", CONDEMNATION_ID: "4"})
    world.run(world.given_back)
    assert [step.id for step in world.steps(Condemn) if isinstance(step, Condemn)] == [5]
    assert world.at(DeleteNode) == world.at(Condemn) + 44.0


# Machines and Nodes


def test_a_machine_without_a_node_is_told_of() -> None:
    world = World()
    world.api.patch("machines", world.machine_key, {"status": {"nodeRef": None}})
    world.request()
    world.held(60.0)
    assert "Machine machines/x has no nodeRef" in world.next_action("")


def test_a_machine_whose_node_is_missing_is_told_of() -> None:
    world = World()
    world.delete_node(HOST)
    world.request()
    assert "there is no Node x and no backup of one" in world.held(60.0)


@pytest.mark.parametrize("machine_key", ["machines/second", "elsewhere/x"])
@pytest.mark.parametrize("both", [True, False])
def test_of_two_machines_only_the_one_counts_that_the_node_names(machine_key: str, both: bool) -> None:
    world = World()
    namespace, name = machine_key.split("/")
    metadata = {"namespace": namespace, "name": name, "uid": "second", "annotations": {EXTERNAL_REMEDIATION: ""}}
    world.api.put("machines", machine_key, {"metadata": metadata, "status": {"nodeRef": {"name": HOST}}})
    if both:
        world.request()
        world.run(lambda: bool(world.steps(DeleteNode)))
    else:
        assert f"{machine_key} refers to Node x, and that Node names {world.machine_key}. Correct" in world.held(60.0)
        assert not world.steps()
    assert not [step for step in world.steps(Condemn) if getattr(step, "machine_key", "") == machine_key]


def test_another_machine_that_claims_a_node_while_that_is_missing_changes_nothing() -> None:
    world = World()
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))
    metadata = {"namespace": "machines", "name": "z", "annotations": {EXTERNAL_REMEDIATION: ""}}
    world.api.put("machines", "machines/z", {"metadata": metadata, "status": {"nodeRef": {"name": HOST}}})
    world.run(world.given_back)
    assert world.steps(FreeWorkloads)
    assert world.restored()


def test_of_two_nodes_only_the_one_counts_that_the_machine_names() -> None:
    world = World()
    world.request()
    world.run(lambda: bool(world.steps(AskPeers)))
    world.api.patch("machines", world.machine_key, {"status": {"nodeRef": {"name": "another"}}})
    assert "Node x names Machine machines/x, and that refers to Node another. Correct" in world.held(200.0)


def test_a_node_that_names_no_machine_is_left_alone() -> None:
    world = World()
    world.annotate_node(HOST, **{"machine.openshift.io/machine": None})
    world.request()
    assert "the Node's machine is unreadable" in world.held(60.0)
    assert not world.steps()


def test_a_node_that_is_not_enrolled_is_left_alone() -> None:
    world = World()
    world.enrol(["a", "b", "c", "d"])
    world.request()
    assert "To enrol it: pp-leader enroll x" in world.held(60.0)
    assert not world.steps()


def test_a_node_whose_machine_was_deleted_keeps_its_marks_and_people_are_told() -> None:
    world = World()
    world.request()
    world.run(lambda: bool(world.steps(AskPeers)))
    world.api.put("machines", world.machine_key, None)
    assert "its machine machines/x does not exist" in world.held(200.0)
    assert world.node(HOST).node.tainted


def test_without_its_machine_a_stored_backup_is_dropped() -> None:
    world = World()
    world.request()
    world.run(lambda: len(world.done) == 10)
    world.api.put("machines", world.machine_key, None)
    world.held(200.0)
    assert world.steps(DropBackup)


def test_a_node_without_an_address_is_not_in_the_roster_and_yet_has_its_old_row() -> None:
    world = World()
    world.api.patch("nodes", "b", {"status": {"addresses": None}})
    world.add_node("e", "not an address")
    world.enrol(["x", "a", "b", "c", "d", "e"])
    world.driver.turn()
    world.request()
    world.run(world.given_back)


# Backups and markers


def a_backup_of(world: World) -> dict[str, str]:
    world.request()
    world.run(lambda: len(world.done) == 10)
    data = world.api.objects["config maps"][backup_name(HOST)]["data"]
    assert isinstance(data, dict)
    return data


@pytest.mark.parametrize("node", ["missing", "back"])
@pytest.mark.parametrize("machines", ["openshift", "node"])
def test_a_backup_that_cant_be_read_is_neither_used_nor_thrown_away(machines: str, node: str) -> None:
    world = World(machines)
    a_backup_of(world)
    world.delete_node(HOST)
    if node == "back":
        world.kubelet_registers()
    world.config_map(backup_name(HOST), {"node": "{"})
    told = world.held(100.0)
    assert "ConfigMap pp-hostd/backup-x: the backup is unreadable" in told
    assert "Correct or delete it" in told
    assert not world.steps(FreeWorkloads, Recreate, Complete, DropBackup)


def test_a_backup_of_another_incarnation_only_completes_the_node() -> None:
    world = World()
    data = a_backup_of(world)
    world.config_map(backup_name(HOST), None)
    world.lift()
    world.run(world.given_back)
    world.config_map(backup_name(HOST), {"node": data["node"].replace("node-x", "node-y")})
    world.api.patch("nodes", HOST, {"metadata": {"labels": {"zone": None}}})
    world.run(world.given_back)
    assert world.restored()
    assert not world.steps(FreeWorkloads, DeleteNode)
    assert len(world.steps(Complete)) == 1


def test_a_node_that_no_backup_can_be_made_of_is_not_deleted() -> None:
    world = World()
    world.api.patch("nodes", HOST, {"spec": {"taints": [{"effect": "NoSchedule"}]}})
    world.request()
    assert "no backup can be made of it" in world.held(200.0)
    assert not world.steps(Cordon)


def test_a_marker_that_cant_be_read_frees_nothing() -> None:
    world = World()
    world.annotate_node(HOST, **{FREEING: "now"})
    told = world.held(60.0)
    assert "the freeing marker is unreadable" in told
    assert "Remove that annotation" in told
    assert not world.steps(FreeWorkloads)


def test_an_untainted_node_is_tainted_again_and_stays_condemned_under_the_same_id() -> None:
    world = World()
    world.request()
    world.run(lambda: bool(world.steps(AskPeers)))
    world.api.patch("nodes", HOST, {"spec": {"taints": None, "unschedulable": None}})
    world.run(lambda: bool(world.steps(DeleteNode)))
    assert [type(step) for step in world.steps(Cordon, Condemn)] == [Cordon, Condemn, Cordon]


def test_a_node_with_finalizers_would_not_go_and_is_not_touched() -> None:
    world = World()
    world.api.patch("nodes", HOST, {"metadata": {"finalizers": ["example.com/guard"]}})
    world.request()
    assert "its Node has finalizers, which block a deletion (example.com/guard)" in world.held()
    assert not world.steps(Cordon)


def test_where_the_node_is_kept_its_finalizers_are_nobodys_business() -> None:
    world = World(settings=Settings(leader=Leader(strategy="resources")))
    world.api.patch("nodes", HOST, {"metadata": {"finalizers": ["example.com/guard"]}})
    world.request()
    world.run(world.given_back)


def test_a_node_that_gets_finalizers_during_the_wait_is_not_deleted() -> None:
    world = World()
    world.request()
    world.run(lambda: bool(world.steps(AskPeers)))
    world.api.patch("nodes", HOST, {"metadata": {"finalizers": ["example.com/guard"]}})
    assert "its Node has finalizers, which block a deletion (example.com/guard)" in world.held()


def test_a_promise_of_a_roster_that_does_not_list_the_host_gives_no_wait() -> None:
    world = World()
    world.api.patch("config maps", ROSTER, {"data": {ROSTER: Roster.of(1, 1, []).render()}})
    world.request()
    assert "version 1 of the roster, which does not list it" in world.held()


def test_a_persons_word_does_not_count_beside_a_record_that_cannot_be_read() -> None:
    world = World()
    word = Confirmation("ann", WHEN, None).render()
    world.annotate_node(HOST, **{AGENT: "{", CONFIRMED_DEAD: word})
    world.request()
    assert "the agent's record is unreadable" in world.held()
