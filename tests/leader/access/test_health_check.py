"""`pp-leader install --health-check`: a check that is true to the cluster, made once, and gone with the uninstall."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Iterator
from copy import deepcopy

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NAMESPACES, NODE_HEALTH_CHECKS, NODES
from pp_hostd.leader.definition import DEFINITIONS, MANAGED_BY, US
from pp_hostd.leader.requests.health_checks.definitions import default_check, definitions
from pp_hostd.model.keys import NAMESPACE, REQUESTED_BY
from pp_hostd.model.machine_details import Claim
from tests.contract.objects import sample
from tests.harness.build import binaries
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import LEADER, pp_leader

(DEFINITION,) = definitions()
FULL_NAME = DEFINITION["metadata"]["name"]
MASTER = {"node-role.kubernetes.io/control-plane": ""}
LIST = Attempt("list", NODE_HEALTH_CHECKS, "")
STATUS = Attempt("patch", NODE_HEALTH_CHECKS, "workers", {"status": {"expectedNodes": 1}}, subresource="status")


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Two workers, one host of the control plane, and no definitions; with controllers, since a Namespace must end."""
    with RealCluster.start(controllers=True, definitions=[]) as cluster:
        world = World(cluster)
        for name in ("worker-1", "worker-2"):
            world.create(NODES, "", sample(NODES, name))
        world.create(NODES, "", sample(NODES, "control-1", labels=MASTER))
        yield world
        world.close()


@pytest.fixture(autouse=True)
def _without_checks(world: World) -> None:
    reply = world.make(LIST)
    for each in reply.json()["items"] if reply.ok else ():
        world.make(Attempt("delete", NODE_HEALTH_CHECKS, each["metadata"]["name"]))


def run(world: World, *arguments: str) -> list[str]:
    """Runs the command, which must succeed; returns its lines, those that are wrapped as one."""
    done = pp_leader(*arguments, "--kubeconfig", str(world.cluster.kubeconfig()))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.replace("\n  ", " ").splitlines()


def install(world: World, *arguments: str) -> list[str]:
    return run(world, "install", "--health-check", *arguments)


def uninstall(world: World) -> list[str]:
    said = run(world, "uninstall")
    eventually(lambda: world.make(Attempt("get", NAMESPACES, NAMESPACE)).status_code == 404, "the Namespace is gone")
    return said


def kubectl(world: World, *arguments: str, given: str = "") -> subprocess.CompletedProcess[str]:
    command = [str(binaries() / "kubectl"), "--kubeconfig", str(world.cluster.kubeconfig()), *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False)


def test_a_new_cluster_gets_the_kind_its_rights_and_a_check_and_hears_whom_it_selects(world: World) -> None:
    said = install(world)
    assert f"created    {DEFINITIONS.kind} {FULL_NAME}" in said
    assert "created    NodeHealthCheck workers" in said
    assert "It selects 2 of 3 Nodes: worker-1, worker-2." in said
    stored = world.read(NODE_HEALTH_CHECKS, "workers")
    assert (stored["spec"], stored["metadata"]["labels"]) == (default_check()["spec"], {MANAGED_BY: US})
    eventually(lambda: world.make(LIST, LEADER).ok and world.make(STATUS, LEADER).ok, "the leader may read and judge")


def test_a_limit_of_nobody_is_said_plainly_with_a_command_that_changes_it(world: World) -> None:
    (told,) = [line for line in install(world) if "Nobody would be remediated" in line]
    assert "maxUnhealthy allows 40%, and of 2 Nodes that is 0, rounded down" in told
    assert "--max-unhealthy 1 " in told
    command = shlex.split(told[told.index("kubectl patch") :])[1:]
    assert kubectl(world, *command).returncode == 0
    assert world.read(NODE_HEALTH_CHECKS, "workers")["spec"]["maxUnhealthy"] == 1


@pytest.mark.parametrize(
    ("arguments", "selected", "limit"),
    [
        (("--max-unhealthy", "1"), "2 of 3 Nodes: worker-1, worker-2.", "at most 1 of"),
        (("--max-unhealthy", "50%"), "2 of 3 Nodes: worker-1, worker-2.", "at most 1 (50%) of"),
        (("--control-plane",), "3 of 3 Nodes: control-1, worker-1, worker-2.", "at most 1 (40%) of"),
    ],
)
def test_the_options_change_whom_it_selects_and_its_limit(
    world: World, arguments: tuple[str, ...], selected: str, limit: str
) -> None:
    said = install(world, *arguments)
    assert f"It selects {selected}" in said
    assert f"It acts while {limit} them are not healthy." in said
    assert "Nobody" not in "".join(said)


def test_repeated_it_changes_nothing_and_a_check_that_was_there_is_left_alone(world: World) -> None:
    install(world)
    before = world.read(NODE_HEALTH_CHECKS, "workers")
    said = install(world, "--max-unhealthy", "100%")
    assert {line.split()[0] for line in said[:-1]} == {"unchanged"}
    assert said[-1].startswith("left       NodeHealthCheck workers, which was there before.")
    assert world.read(NODE_HEALTH_CHECKS, "workers") == before
    assert {line.split()[0] for line in run(world, "install")} == {"unchanged"}


def test_it_makes_none_beside_one_of_another_name(world: World) -> None:
    install(world)
    assert world.make(Attempt("delete", NODE_HEALTH_CHECKS, "workers")).ok
    world.create(NODE_HEALTH_CHECKS, "", {**default_check(), "metadata": {"name": "mine"}})
    assert "left       NodeHealthCheck mine, which was there before." in install(world)[-1]
    assert world.make(Attempt("get", NODE_HEALTH_CHECKS, "workers")).status_code == 404


def test_it_adds_its_flow_to_those_that_are_chosen(world: World) -> None:
    run(world, "install", "--flows", "poison-pill")
    eventually(lambda: not world.make(LIST, LEADER).ok, "its rights are taken away")
    install(world, "--flows", "poison-pill")
    eventually(lambda: world.make(LIST, LEADER).ok, "its rights are given")


def test_options_without_the_check_are_refused() -> None:
    for option in (("--control-plane",), ("--max-unhealthy", "1")):
        refused = pp_leader("install", "--dry-run", *option)
        assert (refused.returncode, "--health-check" in refused.stderr) == (2, True)
    for bad in ("101%", "some", "-1", "1.5"):
        refused = pp_leader("install", "--dry-run", "--health-check", "--max-unhealthy", bad)
        assert (refused.returncode, f"'{bad}' is neither" in refused.stderr) == (2, True)


def test_a_dry_run_prints_it_and_kubectl_applies_it(world: World) -> None:
    printed = pp_leader("install", "--dry-run", "--health-check", "--max-unhealthy", "2").stdout
    assert "apply this once more" in printed.splitlines()[-1]
    eventually(lambda: kubectl(world, "apply", "-f", "-", given=printed).returncode == 0, "all of it is applied")
    assert world.read(NODE_HEALTH_CHECKS, "workers")["spec"]["maxUnhealthy"] == 2


def test_the_uninstall_removes_it_and_its_request_and_the_kind(world: World) -> None:
    install(world)
    claim = Claim("NodeHealthCheck workers", "uid-1").render()
    request = {"host.metal3.io/external-remediation": ""}
    for name, more in (("worker-1", {REQUESTED_BY: claim}), ("worker-2", {})):
        body = {"metadata": {"annotations": {**request, **more}}}
        assert world.make(Attempt("patch", NODES, name, body)).ok
    said = uninstall(world)
    assert "deleted   NodeHealthCheck workers" in said
    assert f"deleted   {DEFINITIONS.kind} {FULL_NAME}" in said
    found = [world.read(NODES, name)["metadata"].get("annotations", {}).keys() for name in ("worker-1", "worker-2")]
    assert [request.keys() <= each for each in found] == [False, True]  # somebody else takes the second one back
    eventually(lambda: world.make(Attempt("get", DEFINITIONS, FULL_NAME)).status_code == 404, "the kind is gone")


def test_the_uninstall_leaves_the_kind_while_there_are_others_checks(world: World) -> None:
    install(world)
    world.create(NODE_HEALTH_CHECKS, "", {**default_check(), "metadata": {"name": "mine"}})
    said = uninstall(world)
    assert "deleted   NodeHealthCheck workers" in said
    kept = f"of which there is mine. To remove it with them: kubectl delete crd {FULL_NAME}"
    assert f"left      {DEFINITIONS.kind} {FULL_NAME}, {kept}" in said
    assert world.read(NODE_HEALTH_CHECKS, "mine")["spec"] == default_check()["spec"]
    assert world.make(Attempt("delete", DEFINITIONS, FULL_NAME)).ok
    eventually(lambda: world.make(Attempt("get", DEFINITIONS, FULL_NAME)).status_code == 404, "the kind is gone")


def rival() -> Json:
    """A definition of the same kind under another plural: the API accepts only the first of both."""
    made = deepcopy(DEFINITION)
    made["metadata"]["name"] = f"rivals.{NODE_HEALTH_CHECKS.group}"
    made["spec"]["names"] = {**made["spec"]["names"], "plural": "rivals", "singular": "rival", "shortNames": []}
    return made


def test_a_kind_that_the_api_does_not_serve_is_told_with_its_reason(world: World) -> None:
    eventually(lambda: world.make(Attempt("get", DEFINITIONS, FULL_NAME)).status_code == 404, "the kind is gone")
    world.create(DEFINITIONS, "", rival())

    def is_refused() -> bool:
        refused = pp_leader(
            *("install", "--health-check", "--wait", "0", "--kubeconfig", str(world.cluster.kubeconfig()))
        )
        assert (refused.returncode, "Traceback" in refused.stderr) == (2, False)
        assert "the API does not serve nodehealthchecks within 0 s" in refused.stderr
        return re.search(r'"NodeHealthCheck\w*" is already in use', refused.stderr) is not None

    eventually(is_refused, "it says that the name is taken")
