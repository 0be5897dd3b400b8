"""docs/health.md: its manifests and commands work as they stand there, and its tables are true."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import closing

import pytest
import yaml

from pp_hostd.kube.resources import NODE_HEALTH_CHECKS, NODES
from pp_hostd.leader.facts.limits import parse_limit
from pp_hostd.leader.requests.health_checks.definitions import default_check, definitions
from tests.contract.objects import sample
from tests.harness.controlplane import OTHERS, RealCluster
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.pages import kubectl
from tests.leader.access.people import pp_leader
from tests.pages import DOCS, blocks, rows

PAGE = (DOCS / "health.md").read_text()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Where medik8s has a kind of the same name."""
    with RealCluster.start(definitions=OTHERS) as cluster, closing(World(cluster)) as world:
        for number in range(3):
            world.create(NODES, "", sample(NODES, f"worker-{number}"))
        yield world


MANIFESTS = [block for block in blocks(PAGE) if block.startswith("apiVersion: ")]
COMMANDS = [line for block in blocks(PAGE) if block not in MANIFESTS for line in block.splitlines()]


def run(world: World, line: str) -> str:
    program, *arguments = shlex.split(line)
    if program == "kubectl":
        return kubectl(world, *arguments)
    assert program == "pp-leader"
    done = pp_leader(*arguments, "--kubeconfig", str(world.cluster.kubeconfig()))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_command_works_as_it_stands_there(world: World) -> None:
    world.make(Attempt("delete", NODE_HEALTH_CHECKS, "workers"))  # of another test
    said = [run(world, line) for line in COMMANDS]
    assert len(said) == 9
    assert "created    NodeHealthCheck workers" in said[0]
    assert "workers" in said[1]
    spec = world.read(NODE_HEALTH_CHECKS, "workers")["spec"]
    assert spec["maxUnhealthy"] == 1
    assert "unreachableSeconds" not in spec
    annotated = [line for line, told in zip(COMMANDS, said) if "annotated" in told]
    assert [line[-1] for line in annotated] == ["=", "-"]


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda manifest: str(yaml.safe_load(manifest)["metadata"]["name"]))
def test_every_manifest_is_admitted(world: World, manifest: str) -> None:
    run(world, COMMANDS[0])
    kubectl(world, "apply", "--server-side", "--force-conflicts", "-f", "-", given=manifest)
    name = yaml.safe_load(manifest)["metadata"]["name"]
    said = pp_leader("health", "--check", name, "--kubeconfig", str(world.cluster.kubeconfig()))
    assert said.returncode == 0 and "unreadable" not in said.stdout
    assert world.make(Attempt("get", NODE_HEALTH_CHECKS, name)).ok


def test_the_first_manifest_is_the_check_that_install_makes() -> None:
    assert yaml.safe_load(MANIFESTS[0]) == default_check()


def test_the_table_of_percentages_is_true() -> None:
    (_, *counts), *parts = rows(PAGE, "| Nodes selected |")
    assert len(parts) == 2
    for part, *allowed in parts:
        assert [str(parse_limit(part, None).most(int(count))) for count in counts] == allowed


def test_the_table_of_fields_names_each_with_its_default() -> None:
    (definition,) = definitions()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    assert sorted(row[0] for row in rows(PAGE, "| `spec` |")[1:]) == sorted(schema["properties"])
    for name, default, _ in rows(PAGE, "| `spec` |")[1:]:
        absent = "required" if name in schema["required"] else "none" if name == "unhealthyConditions" else "not set"
        assert schema["properties"][name].get("default", absent) == default
