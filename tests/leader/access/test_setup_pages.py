"""docs/quickstart.md and docs/operations.md: what they tell people to run in a cluster works as it stands there."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pp_hostd.kube.resources import NODES
from tests.contract.objects import sample
from tests.harness.controlplane import RealCluster
from tests.leader.access.attempts import World
from tests.leader.access.pages import kubectl
from tests.leader.access.people import pp_leader
from tests.pages import DOCS, blocks

QUICKSTART = (DOCS / "quickstart.md").read_text()
OPERATIONS = (DOCS / "operations.md").read_text()
ETC = "/etc/pp-hostd"
HOSTS_ALONE = (
    "dnf",
    "firewall-cmd",
    "make",
    "scp",
    "systemctl",
    "pp-hostd",
    "[agent]",
    "kubelet_unit",
    "kubectl drain",
)
"""These need a host, packages, or a kubelet."""
LIVING = ("pp-leader unenroll", "pp-leader confirm-dead", "pp-leader rotate-key", "kubectl delete")
"""These need a leader that leads, or hosts with agents: the tests of the commands have them."""
NEED_SETTINGS = ("absolve", "condemn", "explain")
"""These read the file of settings, which a host has."""
LEADERLESS = 3


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    with RealCluster.start() as cluster, closing(World(cluster)) as world:
        cluster.run_signer()
        for number in range(1, 4):
            node = sample(NODES, f"worker-{number}")
            node["status"] = {"addresses": [{"type": "InternalIP", "address": f"10.0.0.{number}"}]}
            world.create(NODES, "", node)
        yield world


def test_a_cluster_is_set_up_and_kept_by_the_commands_as_they_stand_there(world: World, tmp_path: Path) -> None:
    said = run_all(world, QUICKSTART[: QUICKSTART.index("## OpenShift")], tmp_path)
    assert len(said) == 9
    assert "created    NodeHealthCheck workers" in said["pp-leader install --health-check"]
    assert "systemctl enable pp-hostd-gate; systemctl enable --now pp-hostd" in said["pp-leader enroll worker-1"]
    assert "worker-1" in said["pp-leader explain worker-1"]
    assert {path.name for path in tmp_path.iterdir()} == {"leader.kubeconfig", "peer.key", "kubeconfig"}
    run(world, "pp-leader absolve worker-1", tmp_path)
    said = run_all(world, OPERATIONS, tmp_path)
    assert len(said) == 7
    assert "No host is armed any more: the work may begin." in next(
        told for line, told in said.items() if "--for" in line
    )


def run_all(world: World, page: str, directory: Path) -> dict[str, str]:
    """The output of each command of the page that needs no more than a cluster."""
    lines = [line for block in blocks(page) for line in block.splitlines()]
    return {line: run(world, line, directory) for line in lines if not line.startswith((*HOSTS_ALONE, *LIVING))}


def run(world: World, line: str, directory: Path) -> str:
    program, *arguments = shlex.split(line)
    if program == "kubectl":
        return kubectl(world, *arguments)
    assert program == "pp-leader"
    arguments = [word.replace(ETC, str(directory)) for word in arguments]
    if arguments[0] in NEED_SETTINGS:
        arguments += ["--machines", "node"]
    if arguments[0] == "condemn":
        arguments += ["--yes"]
    if arguments[0] == "enroll" and "--out" not in arguments:
        arguments += ["--out", str(directory)]
    done = pp_leader(*arguments, "--kubeconfig", str(world.cluster.kubeconfig()))
    without_leader = LEADERLESS if arguments[0] == "status" else 0
    assert (done.returncode, done.stderr) == (without_leader, ""), line
    return done.stdout
