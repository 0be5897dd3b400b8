"""`pp-leader confirm-dead`: a person's word, bound to the boot that they confirmed dead, after a request."""

from __future__ import annotations

import uuid
from contextlib import closing
from datetime import datetime, timedelta, timezone

import pytest

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import KUBELET_LEASES, LEASES, NAMESPACES, NODES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.condemn import store
from pp_hostd.model.condemnation import Confirmation, NotRequested, Requested, parse_condemnation, parse_confirmation
from pp_hostd.model.keys import AGENT, CONFIRMED_DEAD
from pp_hostd.model.lease import renewed_spec
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import GateClosed, GateKind
from tests.leader.desk import WHEN, Desk, annotations_of, desk

__all__ = ["desk"]


@pytest.fixture
def name(desk: Desk) -> str:
    """An armed host, in boot-1."""
    name = f"host-{uuid.uuid4().hex[:8]}"
    desk.enrol(name)
    return name


def confirmation(desk: Desk, name: str) -> Confirmation:
    found = parse_confirmation(annotations_of(desk.world, NODES, name)[CONFIRMED_DEAD])
    assert isinstance(found, Confirmation)
    return found


def condemnation(desk: Desk, name: str) -> object:
    return parse_condemnation(desk.world.read(NODES, name)["metadata"])


def test_the_word_is_given_for_the_boot_that_is_known_and_asked_for_first(desk: Desk, name: str) -> None:
    said = desk.run("confirm-dead", name, "--machines", "node", "--yes")
    assert (said.code, said.complaint) == (0, "")
    assert "two copies" in said.prose
    assert "The leader now frees its workloads" in said.prose
    given = confirmation(desk, name)
    assert (given.who, given.boot) == ("eve", "boot-1")
    assert condemnation(desk, name) == Requested(0)


def test_a_host_that_never_reported_a_boot_can_be_vouched_for(desk: Desk, name: str) -> None:
    desk.annotate(name, **{AGENT: None})
    assert desk.run("confirm-dead", name, "--machines", "node", "--yes", "--who", "adam").code == 0
    assert (confirmation(desk, name).who, confirmation(desk, name).boot) == ("adam", None)


def test_a_host_that_boots_while_the_person_is_asked_is_not_dead(desk: Desk, name: str) -> None:
    with desk.asked("confirm-dead", name, "--machines", "node") as dialogue:
        assert b"WARNING" in dialogue.heard
        desk.annotate(name, **{AGENT: GateClosed("boot-2", GateKind.HOLD).render()})
        refused = dialogue.answer(f"{name}\n")
    assert refused.code == 2
    assert "has booted again" in refused.complaint
    assert CONFIRMED_DEAD not in annotations_of(desk.world, NODES, name)
    assert condemnation(desk, name) == NotRequested(0)


def test_a_word_about_a_boot_that_is_over_is_not_written(desk: Desk, name: str) -> None:
    before = parse_node(desk.world.read(NODES, name))
    assert isinstance(before, Node)
    desk.annotate(name, **{AGENT: GateClosed("boot-2", GateKind.HOLD).render()})
    with closing(Administrator(desk.kubeconfig)) as administrator, pytest.raises(UserError, match="booted again"):
        store(administrator, before, Confirmation("eve", WHEN, "boot-1"))
    assert CONFIRMED_DEAD not in annotations_of(desk.world, NODES, name)


def test_the_word_of_the_first_who_gave_it_stays(desk: Desk, name: str) -> None:
    for person in ("adam", "eve"):
        said = desk.run("confirm-dead", name, "--machines", "node", "--yes", "--who", person)
        assert said.code == 0
    assert said.prose.startswith("Nothing to do: adam has confirmed it at 2")
    assert confirmation(desk, name).who == "adam"


def test_a_word_about_an_earlier_boot_is_given_anew(desk: Desk, name: str) -> None:
    assert desk.run("confirm-dead", name, "--machines", "node", "--yes", "--who", "adam").code == 0
    desk.annotate(name, **{AGENT: GateClosed("boot-2", GateKind.HOLD).render()})
    assert desk.run("confirm-dead", name, "--machines", "node", "--yes", "--who", "eve").code == 0
    assert (confirmation(desk, name).who, confirmation(desk, name).boot) == ("eve", "boot-2")


def test_another_name_typed_back_changes_nothing(desk: Desk, name: str) -> None:
    with desk.asked("confirm-dead", name, "--machines", "node") as dialogue:
        assert dialogue.answer("host\n").code == 2
    assert CONFIRMED_DEAD not in annotations_of(desk.world, NODES, name)
    assert condemnation(desk, name) == NotRequested(0)


@pytest.mark.parametrize(("ago_seconds", "alive"), [(1, True), (60, False)])
def test_a_kubelet_that_still_renews_its_lease_is_told_of(
    desk: Desk, name: str, ago_seconds: float, alive: bool
) -> None:
    desk.world.create(NAMESPACES, "", {"metadata": {"name": KUBELET_LEASES}})
    spec = renewed_spec(name, 40, datetime.now(timezone.utc) - timedelta(seconds=ago_seconds))
    desk.world.create(LEASES, "", {"metadata": {"name": name}, "spec": spec}, KUBELET_LEASES)
    refused = desk.run("confirm-dead", name, "--machines", "node")
    assert (refused.code, "seems to be alive!" in refused.prose) == (2, alive)


def test_what_still_stands_against_it_is_told(desk: Desk, name: str) -> None:
    desk.store("enrolled", {})
    said = desk.run("confirm-dead", name, "--machines", "node", "--yes")
    assert "Still the leader does nothing about it: the node is not enrolled" in said.prose
