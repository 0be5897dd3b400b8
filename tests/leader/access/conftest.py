"""A cluster of their own for the tests of access: policies in force would meddle with other tests' nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from pp_hostd.kube.certificate import Subject
from pp_hostd.kube.renewing import REQUESTS, made_request, signing_request
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NODES, OPENSHIFT_MACHINES
from pp_hostd.model.keys import LEADER_USER, LEADERS, NAMESPACE
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import LEADER, agent, almighty, pp_leader


@pytest.fixture(scope="package")
def world() -> Iterator[World]:
    """Installed for the Machines of OpenShift, in force, and with nothing else granted to leader or agents."""
    with RealCluster.start() as cluster:
        world = World(cluster)
        installed = pp_leader("install", "--kubeconfig", str(cluster.kubeconfig()), "--machines", "openshift")
        assert (installed.returncode, installed.stderr) == (0, "")
        eventually(lambda: _effective_settings(world), "roles and policies are in force")
        yield world
        world.close()


def _effective_settings(world: World) -> bool:
    """A probe of each policy: each comes into force in its own time."""
    made = asyncio.run(made_request(Subject(LEADER_USER, frozenset({LEADERS}))))
    renewal = Attempt("create", REQUESTS, "", signing_request("probe", made.request))
    guarded = [
        Attempt("create", NODES, "", {"metadata": {"generateName": "probe-", "labels": {"pp-hostd.io/probe": ""}}}),
        Attempt("create", OPENSHIFT_MACHINES, "", {"metadata": {"generateName": "probe-"}}, "default"),
        Attempt("create", CONFIG_MAPS, "", {"metadata": {"generateName": "probe-"}}, NAMESPACE),
        renewal,
    ]
    granted = [
        (Attempt("list", CONFIG_MAPS, "", namespace=NAMESPACE), LEADER),
        (Attempt("list", OPENSHIFT_MACHINES, ""), LEADER),
        (Attempt("list", OPENSHIFT_MACHINES, ""), agent("probe")),
        (Attempt("get", CONFIG_MAPS, "roster", namespace=NAMESPACE), agent("probe")),
        (Attempt("get", LEASES, "probe", namespace="kube-node-lease"), LEADER),
    ]
    refused = [*((each, almighty("probe")) for each in guarded), (renewal, LEADER)]
    return all(world.make(each, who, dry=True).status_code == 403 for each, who in refused) and all(
        world.make(each, who).status_code in (200, 404) for each, who in granted
    )
