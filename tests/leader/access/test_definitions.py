"""The definitions that `pp-leader install` ships: never in place of somebody else's, and not removed with objects."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from copy import deepcopy

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import PROPOSED_REMEDIATIONS, template_of
from pp_hostd.leader.definition import DEFINITIONS, MANAGED_BY, US
from pp_hostd.leader.requests.remediation_objects.definitions import definitions
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import pp_leader

FLOWS = ("--machines", "cluster-api", "--flows", "external-remediation")
NAMES = [each["metadata"]["name"] for each in definitions()]
OBJECTS, TEMPLATES = NAMES[2:]
OTHERS = "which somebody else installed"


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Without any definitions; with controllers, since a Namespace must end."""
    with RealCluster.start(controllers=True, definitions=[]) as cluster:
        world = World(cluster)
        yield world
        world.close()


def run(world: World, command: str, *arguments: str) -> dict[str, str]:
    """Runs the command; returns its line about each definition, by the definition's name."""
    done: subprocess.CompletedProcess[str] = pp_leader(
        command, "--kubeconfig", str(world.cluster.kubeconfig()), *arguments
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = [line for line in done.stdout.splitlines() if DEFINITIONS.kind in line]
    return {name: line for line in lines for name in NAMES if f" {name}" in line}


def words(said: dict[str, str]) -> list[str]:
    return [said[name].split()[0] for name in NAMES]


def is_gone(world: World, name: str) -> bool:
    return world.make(Attempt("get", DEFINITIONS, name)).status_code == 404


def install(world: World) -> dict[str, str]:
    """The Namespace of the test before may still be going."""

    def done() -> bool:
        ended = pp_leader("install", "--kubeconfig", str(world.cluster.kubeconfig()))
        return ended.returncode == 0

    eventually(done, "what was uninstalled is gone")
    return run(world, "install", *FLOWS)


def foreign() -> Json:
    """The proposals' object, as somebody else defines it."""
    definition = deepcopy(definitions()[2])
    definition["metadata"]["labels"] = {MANAGED_BY: "Helm"}
    definition["spec"]["versions"][0]["schema"] = {
        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    }
    return definition


def test_all_of_them_come_with_the_flow_and_go_with_the_uninstall(world: World) -> None:
    assert words(install(world)) == ["created"] * 4
    assert words(run(world, "install")) == ["unchanged"] * 4
    assert world.read(DEFINITIONS, OBJECTS)["metadata"]["labels"] == {MANAGED_BY: US}
    bad = {"metadata": {"name": "bad"}, "spec": {"strategy": "prayer"}}
    attempt = Attempt("create", PROPOSED_REMEDIATIONS, "", bad, "default")
    eventually(lambda: world.make(attempt).status_code == 422, "the schema is in force")
    assert "escalate" in world.make(attempt).json()["message"]
    assert words(run(world, "uninstall")) == ["deleted"] * 4
    eventually(lambda: all(is_gone(world, name) for name in NAMES), "they are gone")


def test_one_that_somebody_else_installed_is_neither_changed_nor_removed(world: World) -> None:
    world.create(DEFINITIONS, OBJECTS, foreign())
    before = world.read(DEFINITIONS, OBJECTS)["spec"]
    said = install(world)
    assert words(said) == ["created", "created", "left", "created"] and OTHERS in said[OBJECTS]
    assert world.read(DEFINITIONS, OBJECTS)["spec"] == before
    said = run(world, "uninstall")
    assert words(said) == ["deleted", "deleted", "left", "deleted"] and OTHERS in said[OBJECTS]
    assert world.read(DEFINITIONS, OBJECTS)["spec"] == before
    assert world.make(Attempt("delete", DEFINITIONS, OBJECTS)).ok
    eventually(lambda: all(is_gone(world, name) for name in NAMES), "they are gone")


def test_one_of_which_there_are_objects_stays_and_the_command_that_removes_it_is_told(world: World) -> None:
    install(world)
    kind, spec = template_of(PROPOSED_REMEDIATIONS), {"template": {"spec": {"strategy": "escalate"}}}
    body = {"metadata": {"name": "cycle"}, "spec": spec}
    eventually(lambda: world.make(Attempt("create", kind, "", body, "default")).ok, "templates are served")
    said = run(world, "uninstall")
    assert words(said) == ["deleted", "deleted", "deleted", "left"]
    assert f"of which there is default/cycle. To remove it with them: kubectl delete crd {TEMPLATES}" in said[TEMPLATES]
    assert world.read(kind, "cycle", "default")["spec"]["template"]["spec"]["deleteAfterRetries"] == 1
    assert world.make(Attempt("delete", kind, "cycle", namespace="default")).ok
    assert words(run(world, "uninstall"))[3] == "deleted"


def test_an_object_that_is_carried_out_stands_against_the_uninstall(world: World) -> None:
    eventually(lambda: all(is_gone(world, name) for name in NAMES), "they are gone")
    install(world)
    finalizers = ["remediation.metal3.io"]
    body = {"metadata": {"name": "metal", "finalizers": finalizers}, "spec": {"strategy": "escalate"}}
    eventually(lambda: world.make(Attempt("create", PROPOSED_REMEDIATIONS, "", body, "default")).ok, "it is served")
    refused = pp_leader("uninstall", "--kubeconfig", str(world.cluster.kubeconfig()))
    assert refused.returncode == 2
    assert "Metal3Remediation default/metal is being carried out" in refused.stderr
