"""`pp-leader unenroll`: the promise is withdrawn first, then the roster forgets the node, then its marks go."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NODES, OPENSHIFT_MACHINES
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.keys import AGENT, CONDEMNATION_ID, CORDONED, ENROLLED, FREEING, NAMESPACE, ROSTER, backup_name
from pp_hostd.model.lease import LEASE, renewed_spec
from pp_hostd.model.promise import Armed, Committed, GateClosed, GateKind, WatchdogKind, Withdrawn
from pp_hostd.model.roster import Member, Roster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.leader.access.attempts import Attempt
from tests.leader.desk import ENVIRONMENT, PP_LEADER, WHEN, Desk, Said, annotations_of, desk

__all__ = ["desk"]

PROMISE = Armed("boot-1", 22, 10, WatchdogKind.HARDWARE, GateKind.HOLD, "uid-1", 3)
WITHDRAWN = Withdrawn("boot-1").render()


@pytest.fixture
def name(desk: Desk) -> str:
    """An armed host of a roster of its own, and nobody who leads."""
    name = f"host-{uuid.uuid4().hex[:8]}"
    desk.enrol(name)
    desk.remove(LEASES, LEASE)
    return name


@pytest.fixture
def withdrawn(desk: Desk, name: str) -> str:
    desk.annotate(name, **{AGENT: WITHDRAWN})
    return name


def unenroll(desk: Desk, *arguments: str) -> Said:
    return desk.run("unenroll", *arguments, "--machines", "node")


@contextmanager
def waiting(desk: Desk, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """While it waits for the host."""
    command = [str(PP_LEADER), "unenroll", *arguments, "--machines", "node", "--kubeconfig", desk.kubeconfig]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT
    ) as process:
        try:
            assert process.stdout is not None
            assert "systemctl disable --now pp-hostd" in "".join(process.stdout.readline() for _ in range(3))
            yield process
        finally:
            process.kill()


def lead(desk: Desk) -> None:
    """As somebody who has just renewed the Lease."""
    desk.put(LEASES, {"metadata": {"name": LEASE}, "spec": renewed_spec("control-1", 120, datetime.now(timezone.utc))})


def write_roster(desk: Desk, *members: Member) -> None:
    desk.store(ROSTER, {ROSTER: Roster.of(4, 3, members).render()})


def is_enrolled(desk: Desk, name: str) -> bool:
    return name in desk.world.read(CONFIG_MAPS, ENROLLED, NAMESPACE).get("data", {})


def mark(desk: Desk, name: str, metadata: Json) -> None:
    assert desk.world.make(Attempt("patch", NODES, name, {"metadata": metadata})).ok


def refused(said: Said, because: str) -> None:
    assert said.code == 2
    assert because in said.complaint


def test_it_waits_for_the_host_and_then_for_the_leader(desk: Desk, name: str) -> None:
    lead(desk)
    uid = desk.world.read(NODES, name)["metadata"]["uid"]
    with waiting(desk, name, "--wait", "30") as process:
        assert is_enrolled(desk, name)
        desk.annotate(name, **{AGENT: WITHDRAWN})
        eventually(lambda: not is_enrolled(desk, name), "it is no longer enrolled")
        assert AGENT in annotations_of(desk.world, NODES, name)
        write_roster(desk, Member(name, None, "192.0.2.1", uid, 3, 4))  # as it was until now
        output, _ = process.communicate(timeout=HANGS_SECONDS)
        assert (process.returncode, f"{name} is not enrolled any more" in output) == (0, True)
    assert AGENT not in annotations_of(desk.world, NODES, name)


def test_a_host_that_is_asked_for_meanwhile_is_kept(desk: Desk, name: str) -> None:
    with waiting(desk, name, "--wait", "30") as process:
        asked = Requested(0).render()
        mark(desk, name, {**asked, "annotations": {**asked["annotations"], AGENT: WITHDRAWN}})
        _, complaint = process.communicate(timeout=HANGS_SECONDS)
        assert (process.returncode, "is requested already" in complaint) == (2, True)
    assert is_enrolled(desk, name)


@pytest.mark.parametrize(
    "record", [PROMISE.render(), Committed(PROMISE, 7).render(), "garbage"], ids=["armed", "committed", "garbage"]
)
def test_a_host_that_is_still_bound_is_not_let_go(desk: Desk, name: str, record: str) -> None:
    desk.annotate(name, **{AGENT: record})
    refused(unenroll(desk, name, "--wait", "0"), f"nothing was changed: the host of Node {name} is still armed")
    assert is_enrolled(desk, name)
    assert annotations_of(desk.world, NODES, name)[AGENT] == record


@pytest.mark.parametrize("record", [None, WITHDRAWN, GateClosed("boot-2", GateKind.HOLD).render()])
def test_a_host_that_promises_nothing_goes_at_once(desk: Desk, name: str, record: str | None) -> None:
    desk.annotate(name, **{AGENT: record})
    desk.remove(CONFIG_MAPS, ROSTER)
    said = unenroll(desk, name, "--wait", "0")
    assert (said.code, "awaited" in said.output) == (0, False)
    assert not is_enrolled(desk, name)


def test_its_marks_go_and_the_id_of_its_last_condemnation_stays(desk: Desk, withdrawn: str) -> None:
    desk.remove(CONFIG_MAPS, ROSTER)
    foreign = {"example.com/a": "b"}
    mark(desk, withdrawn, {"annotations": {CONDEMNATION_ID: "7", CORDONED: "7", **foreign}})
    assert unenroll(desk, withdrawn).code == 0
    assert annotations_of(desk.world, NODES, withdrawn) == {CONDEMNATION_ID: "7", **foreign}


@pytest.mark.parametrize("leads", [False, True])
def test_while_the_roster_lists_it_it_is_not_out(desk: Desk, withdrawn: str, leads: bool) -> None:
    if leads:
        lead(desk)
    refused(unenroll(desk, withdrawn, "--wait", "1"), "control-1 leads" if leads else "nobody leads")
    assert AGENT in annotations_of(desk.world, NODES, withdrawn)
    write_roster(desk)
    assert unenroll(desk, withdrawn).code == 0
    assert AGENT not in annotations_of(desk.world, NODES, withdrawn)


def test_what_the_leader_has_begun_is_not_left_halfway(desk: Desk, withdrawn: str) -> None:
    for metadata, reason in (
        (Requested(0).render(), "is requested already"),
        (Condemned(7, WHEN).render(), "is condemned since"),
        ({**NotRequested(7).render(), "annotations": {FREEING: "7"}}, "are being freed"),
    ):
        mark(desk, withdrawn, metadata)
        for force in ([], ["--force", "--yes"]):
            refused(unenroll(desk, withdrawn, *force), reason)
    assert is_enrolled(desk, withdrawn)


def test_a_node_that_is_about_to_be_given_back_is_kept(desk: Desk, withdrawn: str) -> None:
    desk.store(backup_name(withdrawn), {"node": "garbage"})
    desk.remove(NODES, withdrawn, None)
    refused(unenroll(desk, withdrawn, "--force", "--yes"), "are being freed")
    assert is_enrolled(desk, withdrawn)


def test_a_host_that_is_gone_for_good_goes_on_a_persons_word(desk: Desk, name: str) -> None:
    desk.remove(CONFIG_MAPS, ROSTER)
    with desk.asked("unenroll", name, "--machines", "node", "--force") as dialogue:
        assert b"gone for good" in dialogue.heard
        refused(dialogue.answer("host\n"), f"that is not {name}")
    assert is_enrolled(desk, name)
    with desk.asked("unenroll", name, "--machines", "node", "--force") as dialogue:
        assert dialogue.answer(f"{name}\n").code == 0
    assert not is_enrolled(desk, name)
    assert AGENT not in annotations_of(desk.world, NODES, name)


def test_a_host_whose_node_was_deleted_goes_on_a_persons_word_alone(desk: Desk, name: str) -> None:
    desk.remove(CONFIG_MAPS, ROSTER)
    desk.remove(NODES, name, None)
    refused(unenroll(desk, name), f"{name} is enrolled, and has no Node")
    assert is_enrolled(desk, name)
    assert unenroll(desk, name, "--force", "--yes").code == 0
    assert not is_enrolled(desk, name)


def test_a_host_whose_machine_was_deleted_goes_on_a_persons_word_alone(desk: Desk) -> None:
    name = f"host-{uuid.uuid4().hex[:8]}"
    desk.enrol(name, "openshift")
    desk.remove(CONFIG_MAPS, ROSTER)
    desk.remove(OPENSHIFT_MACHINES, name, "default")
    refused(desk.run("unenroll", name, "--machines", "openshift"), "has no machine")
    assert desk.run("unenroll", name, "--machines", "openshift", "--force", "--yes").code == 0
    assert not is_enrolled(desk, name)


def test_a_node_that_nobody_knows_is_answered_with_names_like_it(desk: Desk, name: str) -> None:
    refused(unenroll(desk, f"{name}x"), f"Did you mean {name}")
