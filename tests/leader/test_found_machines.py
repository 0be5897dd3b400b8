"""The kind of the machines is found where install left it, so that a printed command works as it is printed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from pp_hostd.leader.access.manifests import AGENT_ROLE, KINDS, agent_roles, installed_machines
from pp_hostd.model.keys import AgentsUse
from tests.harness.controlplane import RealCluster
from tests.leader.desk import Desk

CLUSTER_ROLES = KINDS["ClusterRole"]
MACHINES = ("openshift", "cluster-api", "node")


@pytest.mark.parametrize("machines", MACHINES)
@pytest.mark.parametrize("use", AgentsUse)
def test_the_agents_role_tells_the_machines(machines: str, use: AgentsUse) -> None:
    [role] = [each for each in agent_roles(machines, use) if each["kind"] == "ClusterRole"]
    assert (role["metadata"]["name"], installed_machines(role)) == (AGENT_ROLE, machines)


@pytest.fixture(scope="module")
def real_desk() -> Iterator[Desk]:
    """The embedded API serves no roles."""
    with RealCluster.start() as cluster, closing(Desk(cluster)) as desk:
        desk.install()
        yield desk


@pytest.mark.parametrize("machines", MACHINES)
def test_a_command_without_a_configuration_works_as_installed(real_desk: Desk, machines: str) -> None:
    real_desk.remove(CLUSTER_ROLES, AGENT_ROLE, None)
    [role] = [each for each in agent_roles(machines, AgentsUse.CERTIFICATE) if each["kind"] == "ClusterRole"]
    real_desk.world.create(CLUSTER_ROLES, "", role)
    real_desk.enrol(f"host-{machines}", machines)
    said = real_desk.run("explain", f"host-{machines}")
    assert (said.code, said.complaint) == (0, "")
    assert "Its machine is well" in said.prose


def test_where_nothing_is_installed_that_is_said_with_what_to_do(real_desk: Desk) -> None:
    real_desk.remove(CLUSTER_ROLES, AGENT_ROLE, None)
    said = real_desk.run("explain", "anyone")
    assert (said.code, said.output) == (2, "")
    assert "ClusterRole pp-hostd:agent is not there, so pp-hostd is not installed" in said.complaint
    assert "pp-leader install" in said.complaint
    real_desk.world.create(CLUSTER_ROLES, "", {"metadata": {"name": AGENT_ROLE}, "rules": []})
    assert "grants no right on any kind of machines" in real_desk.run("absolve", "anyone").complaint
