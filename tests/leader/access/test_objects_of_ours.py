"""Machines, roster, backups, orders, budget, peer key, Lease, Namespace: a node's credential changes none of them.

Each attempt is made twice: by an agent with the rights that `install` gives, and by a node with all rights that there
are, which only the policies can stop.
"""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CAPI_MACHINES, CONFIG_MAPS, LEASES, NAMESPACES, OPENSHIFT_MACHINES
from pp_hostd.leader.access.policies import SECRETS
from pp_hostd.leader.commands.rotate_key import PEER_KEY
from pp_hostd.model.keys import (
    BUDGET,
    CONDEMNATION_ID,
    CONDEMNED,
    CONTROL,
    ENROLLED,
    EXTERNAL_REMEDIATION,
    LEADER,
    NAMESPACE,
    ROSTER,
    backup_name,
)
from pp_hostd.model.lease import LEASE
from tests.contract.objects import sample
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import agent, almighty

WHO = "worker-1"
MACHINE_CHANGES: list[Json] = [
    {"metadata": {"annotations": {EXTERNAL_REMEDIATION: None}}},
    {"metadata": {"annotations": {EXTERNAL_REMEDIATION: ""}}},
    {"metadata": {"annotations": {CONDEMNATION_ID: "8"}}},
    {"metadata": {"labels": {CONDEMNED: None}}},
    {"spec": {"providerID": "metal3://another"}},
]
NODE_REFERENCE: Json = {"status": {"nodeRef": {"kind": "Node", "name": "another"}}}
ON_MACHINES = [
    Attempt(verb, kind, WHO, body, "default", subresource)
    for kind in (OPENSHIFT_MACHINES, CAPI_MACHINES)
    for verb, subresource, body in (
        *((verb, None, change) for verb in ("patch", "update") for change in MACHINE_CHANGES),
        ("patch", "status", NODE_REFERENCE),
        ("update", "status", NODE_REFERENCE),
        ("create", None, sample(kind, "worker-2")),
        ("delete", None, None),
        ("deletecollection", None, None),
    )
]
CONFIG_MAP_NAMES = [ROSTER, CONTROL, BUDGET, ENROLLED, LEADER, backup_name(WHO), backup_name("worker-2")]
CONFIG_MAP_CHANGE: Json = {"data": {"node": "forged"}}
AT_HOME = [
    *(
        Attempt(verb, CONFIG_MAPS, name, body, NAMESPACE)
        for name in CONFIG_MAP_NAMES
        for verb, body in (("patch", CONFIG_MAP_CHANGE), ("update", CONFIG_MAP_CHANGE), ("delete", None))
    ),
    Attempt("create", CONFIG_MAPS, "backup-worker-3", sample(CONFIG_MAPS, "backup-worker-3"), NAMESPACE),
    Attempt("deletecollection", CONFIG_MAPS, "", None, NAMESPACE),
    Attempt("create", SECRETS, "another", {"metadata": {"name": "another"}}, NAMESPACE),
    *(Attempt(verb, SECRETS, PEER_KEY, {"data": {"keys": ""}}, NAMESPACE) for verb in ("patch", "update")),
    Attempt("delete", SECRETS, PEER_KEY, None, NAMESPACE),
    Attempt("patch", LEASES, LEASE, {"spec": {"holderIdentity": WHO}}, NAMESPACE),
    Attempt("update", LEASES, LEASE, {"spec": {"holderIdentity": WHO}}, NAMESPACE),
    Attempt("delete", LEASES, LEASE, None, NAMESPACE),
    Attempt("create", LEASES, "rival", sample(LEASES, "rival"), NAMESPACE),
    Attempt("deletecollection", LEASES, "", None, NAMESPACE),
    Attempt("patch", NAMESPACES, NAMESPACE, {"metadata": {"labels": {"a": "b"}}}),
    Attempt("patch", NAMESPACES, NAMESPACE, {"metadata": {"labels": {"a": "b"}}}, subresource="status"),
    Attempt("update", NAMESPACES, NAMESPACE, {"spec": {"finalizers": []}}, subresource="finalize"),
    Attempt("delete", NAMESPACES, NAMESPACE),
]


@pytest.fixture(scope="module", autouse=True)
def objects(world: World) -> None:
    for kind in (OPENSHIFT_MACHINES, CAPI_MACHINES):
        condemned: Json = {
            "annotations": {EXTERNAL_REMEDIATION: "2026-03-01T12:00:00Z", CONDEMNATION_ID: "7"},
            "labels": {CONDEMNED: ""},
        }
        world.create(kind, WHO, sample(kind, WHO, **condemned), "default")
    for name in CONFIG_MAP_NAMES:
        world.create(CONFIG_MAPS, name, sample(CONFIG_MAPS, name), NAMESPACE)
    world.create(SECRETS, PEER_KEY, {"metadata": {"name": PEER_KEY}}, NAMESPACE)
    world.create(LEASES, LEASE, sample(LEASES, LEASE), NAMESPACE)


@pytest.mark.parametrize(
    ("attempt", "policy"),
    [*((each, "machines") for each in ON_MACHINES), *((each, "namespace") for each in AT_HOME)],
    ids=str,
)
def test_no_node_changes_what_others_rely_on(world: World, attempt: Attempt, policy: str) -> None:
    assert world.make(attempt, agent(WHO)).status_code == 403
    reply = world.make(attempt, almighty(WHO))
    assert reply.status_code == 403
    assert f"'{policy}.pp-hostd.io'" in reply.json()["message"]


@pytest.mark.parametrize("attempt", [*ON_MACHINES, *AT_HOME], ids=str)
def test_the_policies_bind_nobody_else(world: World, attempt: Attempt) -> None:
    assert world.make(attempt, dry=True).ok


def test_other_namespaces_are_no_business_of_the_policies(world: World) -> None:
    attempt = Attempt("create", CONFIG_MAPS, "roster", sample(CONFIG_MAPS, "roster"), "default")
    assert world.make(attempt, almighty(WHO), dry=True).status_code == 201
    lease = Attempt("create", LEASES, WHO, sample(LEASES, WHO), "kube-node-lease")
    assert world.make(lease, (f"system:node:{WHO}", ("system:nodes",)), dry=True).status_code == 201
