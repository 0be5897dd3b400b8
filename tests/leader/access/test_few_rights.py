"""Commands of people who may do less than a cluster administrator: what was done is told, and what was not."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NODES
from pp_hostd.leader.access.manifests import KINDS
from pp_hostd.model.condemnation import Requested, parse_condemnation
from tests.contract.objects import sample
from tests.harness.eventually import eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import pp_leader

LI = ("li", ())
READS: Json = {
    "apiGroups": ["", "coordination.k8s.io"],
    "resources": ["configmaps", "leases"],
    "verbs": ["get", "list"],
}
WRITES: Json = {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "patch"]}


@pytest.fixture
def kubeconfig(world: World) -> str:
    """Of Li, who may annotate Nodes and not write Events."""
    about: Json = {"metadata": {"name": "few-rights"}}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "li"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "few-rights"}
    world.create(KINDS["ClusterRole"], "", {**about, "rules": [READS, WRITES]})
    world.create(KINDS["ClusterRoleBinding"], "", {**about, "roleRef": role, "subjects": [subject]})
    eventually(lambda: world.make(Attempt("list", NODES, ""), LI).ok, "Li lists Nodes")
    return str(world.cluster.kubeconfig(*LI))


def test_a_request_that_no_event_can_tell_of_is_made_and_that_is_said(world: World, kubeconfig: str) -> None:
    world.create(NODES, "", sample(NODES, "eventless"))
    said = pp_leader("condemn", "eventless", "--machines", "node", "--yes", "--kubeconfig", kubeconfig)
    assert (said.returncode, said.stderr) == (0, "")
    told = " ".join(said.stdout.split())
    assert "Requested. No Event says by whom and why: POST" in told
    assert parse_condemnation(world.read(NODES, "eventless")["metadata"]) == Requested(0)
