"""docs/quickstart.md: its commands work as they stand there, from nothing to an enrolled node."""

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

PAGE = (DOCS / "quickstart.md").read_text()
ETC = "/etc/pp-hostd"
HOSTS_ALONE = ("dnf", "firewall-cmd", "make", "systemctl", "pp-hostd", "[agent]", "kubelet_unit", "kubectl drain")
"""These need a host, packages, or a kubelet."""
ASKS = ("condemn", "explain")
"""These read the file of settings, which a host has, and `condemn` wants the name typed."""
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


def test_a_cluster_is_set_up_by_the_commands_as_they_stand_there(world: World, tmp_path: Path) -> None:
    first = PAGE[: PAGE.index("## OpenShift")]
    lines = [line for block in blocks(first) for line in block.splitlines() if not line.startswith(HOSTS_ALONE)]
    said = {line: run(world, line, tmp_path) for line in lines}
    assert len(said) == 9
    assert "created    NodeHealthCheck workers" in said["pp-leader install --health-check"]
    assert "systemctl enable pp-hostd-gate; systemctl enable --now pp-hostd" in said["pp-leader enroll worker-1"]
    assert "worker-1" in said["pp-leader explain worker-1"]
    assert {path.name for path in tmp_path.iterdir()} == {"leader.kubeconfig", "peer.key", "kubeconfig"}


def run(world: World, line: str, directory: Path) -> str:
    program, *arguments = (word.replace(ETC, str(directory)) for word in shlex.split(line))
    if program == "kubectl":
        return kubectl(world, *arguments)
    assert program == "pp-leader"
    if arguments[0] in ASKS:
        arguments += ["--machines", "node"]
    if arguments[0] == "condemn":
        arguments += ["--yes"]
    if arguments[:2] == ["enroll", "worker-1"]:
        arguments += ["--out", str(directory)]
    done = pp_leader(*arguments, "--kubeconfig", str(world.cluster.kubeconfig()))
    without_leader = LEADERLESS if arguments[0] == "status" else 0
    assert (done.returncode, done.stderr) == (without_leader, "")
    return done.stdout
