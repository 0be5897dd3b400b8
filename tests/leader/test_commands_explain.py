"""`pp-leader explain`: how a node stands, in sentences that follow from the cluster and from the leader's own plan."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from pp_hostd.kube.resources import NODES, OPENSHIFT_MACHINES
from pp_hostd.leader.commands.explain import explained
from pp_hostd.leader.commands.host import Host
from pp_hostd.leader.leadership import Leadership
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import BareMetalHost, HostsSeen, PowerRequest
from pp_hostd.model.backup import Backup
from pp_hostd.model.condemnation import Condemnation, Condemned, Confirmation, NotRequested, Requested
from pp_hostd.model.control import Control, Maintenance, Pause
from pp_hostd.model.keys import BACKUP_KEY, backup_name
from pp_hostd.model.leader_status import CourseTold, LeaderStatus
from pp_hostd.model.machine import Machine
from pp_hostd.model.machine_details import HostReference, MachineDetails
from pp_hostd.model.node import Node
from pp_hostd.model.observed import BackupSeen, NodeSeen, Observed, RosterSeen
from pp_hostd.model.promise import AgentRecord, Armed, Committed, GateClosed, GateKind, WatchdogKind, Withdrawn
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member, Roster
from pp_hostd.model.settings import Api, Power, Settings
from tests.leader.desk import WHEN, Desk, desk

__all__ = ["desk"]

PROMISE = Armed("boot-1", 22, 10, WatchdogKind.HARDWARE, GateKind.HOLD, "uid-1", 3)
NODE = Node("w", "uid-1", "5", "192.0.2.1", PROMISE, None, tainted=False, unschedulable=False)
SEEN = NodeSeen(NODE, "w")
MACHINE = Machine(None, "w", "uid-1", "5", NotRequested(0), "w")
ROSTER = RosterSeen(Roster.of(3, 3, [Member("w", None, "192.0.2.1", "uid-1", 3, None)]), "9")
OBSERVED = Observed(nodes={"w": SEEN}, roster=ROSTER, enrolled=frozenset({"w"}))
HOST = Host("w", Settings(), SEEN, "w", MACHINE, NODES, OBSERVED)
NOBODY = Leadership("", None, 15, None, None)
COURSE = CourseTold("w", "w", "waiting", "half of 4 nodes know", False, WHEN, WHEN + timedelta(seconds=30))
STATUS = LeaderStatus("control-1", WHEN, "enforce", 4, 7, "", (COURSE,))
LEADING = Leadership("control-1", 1.0, 15, STATUS, None)


def host(node: NodeSeen | None = SEEN, machine: Any = MACHINE, **observed: Any) -> Host:
    nodes = {} if node is None else {"w": node}
    return replace(HOST, node=node, machine=machine, observed=replace(OBSERVED, nodes=nodes, **observed))


def stating(record: AgentRecord | Unreadable | None) -> Host:
    return host(replace(SEEN, node=replace(NODE, agent=record)))


def condemned(condemnation: Condemnation | Unreadable) -> Host:
    return host(machine=replace(MACHINE, condemnation=condemnation))


METAL = BareMetalHost("metal", "m", "host-uid", "3", True, True, False, "", None, None, (), "", "", "")
OWN = Machine("default", "w", "uid-1", "5", NotRequested(0), "w")
STANDS_ON = MachineDetails(HostReference("metal/m", "host-uid"))


def on_metal(found: BareMetalHost | None = METAL, stands_on: MachineDetails = STANDS_ON) -> Host:
    """A Machine's host, where power cycles are on, and no agent."""
    seen = {} if found is None else {"metal/m": found}
    hosts = HostsSeen(seen, {"host-uid": "metal/m"}, ("metal/m",) if found and found.request else ())
    node = replace(SEEN, node=replace(NODE, agent=None), machine_key="default/w")
    observed = replace(OBSERVED, nodes={"w": node}, enrolled=frozenset(), parts={HostsSeen: hosts})
    settings = Settings(power=Power(cycle=True), api=Api(machines="openshift"))
    return Host("w", settings, node, "default/w", OWN, OPENSHIFT_MACHINES, observed, stands_on)


BACKUP = {"w": BackupSeen(Backup("w", "uid-0", 7, {}, {}, {}), "4")}
BROKEN = {"w": BackupSeen(Unreadable("the backup", "it is not JSON"), "4")}
CASES = {
    "a node that is well": (HOST, "no remediation is requested", "44 s after that"),
    "a longer safe time": (
        replace(HOST, settings=Settings(leader=replace(Settings().leader, safe_time_seconds=90))),
        "90 s after that",
    ),
    "a host that can be switched off": (
        on_metal(),
        "stands on BareMetalHost metal/m, which reads on",
        "has BareMetalHost metal/m switched off, deletes Node w",
    ),
    "a host that is kept off": (
        on_metal(replace(METAL, powered_on=False, request=PowerRequest("default/w", "uid-1", "w", 1))),
        "which reads off, kept off for default/w by the leader",
    ),
    "a host that nobody looks after": (
        on_metal(replace(METAL, obstacle="it is paused", error="power management error: no answer")),
        "It is paused. Power management error: no answer",
        "does nothing about it yet: BareMetalHost metal/m: it is paused",
    ),
    "a host that is not there": (on_metal(None), "should stand on BareMetalHost metal/m, and there is none"),
    "a host that nobody can make out": (
        on_metal(stands_on=MachineDetails(Unreadable("the machine's host", "spec.providerID is not text"))),
        "Its host is not known",
    ),
    "a node that is not enrolled": (host(enrolled=frozenset()), "pp-leader enroll w", "does nothing about it yet"),
    "no promise": (stating(None), "has promised nothing", "pp-leader confirm-dead w"),
    "a promise": (HOST, "T 22 s", "hardware, W 10 s", "version 3 of the roster"),
    "a withdrawn promise": (stating(Withdrawn("boot-1")), "has withdrawn its promise: the host is not armed"),
    "maintenance": (
        stating(Withdrawn("boot-1", Maintenance("adam", WHEN, "new memory", WHEN))),
        "in maintenance by adam until 2026-03-01T12:00:00Z",
    ),
    "a closed gate": (stating(GateClosed("boot-2", GateKind.HOLD)), "nothing was started", "without a wait"),
    "a decision to reset": (stating(Committed(PROMISE, 7)), "decided to reset itself, for condemnation 7"),
    "garbage": (stating(Unreadable("the agent's record", "it is not JSON")), "can't be relied on"),
    "a request": (condemned(Requested(6)), "its remediation is requested", "pp-leader absolve w"),
    "a condemnation": (condemned(Condemned(7, WHEN)), "condemned since 2026-03-01T12:00:00Z, under id 7"),
    "one that was lifted": (condemned(NotRequested(7)), "its last condemnation was 7"),
    "one in doubt": (condemned(Unreadable("the condemnation", "it is odd")), "in doubt: the condemnation"),
    "no machine": (host(machine=None), "not known: there is no Node w", "does nothing"),
    "a cordon": (host(replace(SEEN, node=replace(NODE, tainted=True))), "The leader has cordoned it"),
    "a person's word": (host(replace(SEEN, confirmed=Confirmation("eve", WHEN, "boot-1"))), "eve has confirmed"),
    "a pause of all": (host(control=Control(Pause("eve", WHEN, "lunch"), None)), "paused by eve", "pp-leader resume"),
    "a pause of one": (host(replace(SEEN, paused=True)), "pp-leader resume --node w"),
    "a missing Node": (host(None, None, backups=BACKUP), "Node w is missing", "pp-leader restore w"),
    "a broken backup": (host(None, None, backups=BROKEN), "can't be used: the backup is unreadable"),
}


@pytest.mark.parametrize("memory", CASES.values(), ids=CASES)
def test_each_thing_that_matters_is_said(memory: tuple[Any, ...]) -> None:
    machine_key, *told = memory
    sentences = explained(machine_key, NOBODY, WHEN)
    text = " ".join(sentences)
    for words in told:
        assert words in text
    assert all(sentence.endswith(".") and not sentence.endswith("..") for sentence in sentences)


def test_of_a_node_that_is_well_nothing_is_said_that_is_not_so() -> None:
    text = " ".join(explained(HOST, LEADING, WHEN))
    for words in ("condemned since", "paused", "missing", "backup", "has cordoned", "not enrolled", "confirm"):
        assert words not in text


def test_what_the_leader_does_is_told_with_when_it_goes_on() -> None:
    text = " ".join(explained(condemned(Condemned(7, WHEN)), LEADING, WHEN))
    assert "Since 2026-03-01T12:00:00Z (waiting): half of 4 nodes know (due in 30 s)." in text


def test_what_a_leader_that_is_gone_said_is_told_as_such() -> None:
    text = " ".join(explained(condemned(Condemned(7, WHEN)), replace(LEADING, idle_seconds=60.0), WHEN))
    assert "nobody leads, it seems" in text
    assert "The last leader said about it: half of 4 nodes know." in text


def test_the_command_reads_it_all_from_the_cluster(desk: Desk) -> None:
    name = f"host-{uuid.uuid4().hex[:8]}"
    desk.enrol(name, "openshift")
    said = desk.run("explain", name, "--machines", "openshift")
    assert (said.code, said.complaint) == (0, "")
    assert f"Node {name} is there. It is enrolled. Its agent has promised: T 22 s" in said.prose
    assert "44 s after that" in said.prose
    assert max(map(len, said.output.splitlines())) <= 80


def test_programs_get_the_sentences_as_json(desk: Desk) -> None:
    name = "told-as-json"
    desk.enrol(name)
    said = json.loads(desk.run("explain", name, "--machines", "node", "--json").output)
    assert said["node"] == name
    assert said["sentences"][0] == f"Node {name} is there. It is enrolled."


def test_a_missing_node_is_explained_from_its_backup(desk: Desk) -> None:
    desk.store(backup_name("lost"), {BACKUP_KEY: Backup("lost", "uid-1", 7, {}, {}, {}).render()})
    said = desk.run("explain", "lost", "--machines", "node")
    assert (said.code, "Node lost is missing" in said.prose) == (0, True)
    assert "pp-leader restore lost" in said.prose
    refused = desk.run("absolve", "lost", "--machines", "node")
    assert (refused.code, "is missing, and is its own machine" in refused.complaint) == (2, True)


def test_a_node_that_does_not_exist_is_answered_with_names_like_it(desk: Desk) -> None:
    desk.store(backup_name("lost"), {BACKUP_KEY: Backup("lost", "uid-1", 7, {}, {}, {}).render()})
    for name in ("losst", "Lost", "../lost"):
        refused = desk.run("explain", name, "--machines", "node")
        assert (refused.code, "Did you mean lost?" in refused.complaint) == (2, True)
    assert "kubectl get nodes" in desk.run("explain", "", "--machines", "node").complaint


def test_a_machine_that_the_node_does_not_name_is_told(desk: Desk) -> None:
    name = f"host-{uuid.uuid4().hex[:8]}"
    desk.enrol(name, "node")
    assert "machine.openshift.io/machine is missing" in desk.run("explain", name, "--machines", "openshift").prose
    refused = desk.run("condemn", name, "--machines", "openshift", "--yes")
    assert (refused.code, "Does the cluster have machines of that kind?" in refused.complaint) == (2, True)


def test_what_is_blocked_and_concerns_no_single_node_is_told_with_every_node() -> None:
    blocked = CourseTold("", "", "held back", "MachineHealthCheck a/b is left alone", True, WHEN, None)
    waiting = replace(blocked, sentence="it waits", refused=False)
    status = replace(STATUS, next_actions=(COURSE, blocked, waiting))
    text = " ".join(explained(HOST, replace(LEADING, status=status), WHEN))
    assert "Blocked: MachineHealthCheck a/b is left alone." in text
    assert "it waits" not in text
