"""The rights that `install` gives, with the real authorizer: every call works, and nothing is granted beyond them."""

from __future__ import annotations

import asyncio

import pytest

from pp_hostd.kube.certificate import Subject
from pp_hostd.kube.client import Json
from pp_hostd.kube.renewing import REQUESTS, approval, made_request, signing_request
from pp_hostd.kube.resources import (
    CAPI_MACHINES,
    CONFIG_MAPS,
    EVENTS,
    LEASES,
    NAMESPACES,
    NODES,
    OPENSHIFT_MACHINES,
    PODS,
    VOLUME_ATTACHMENTS,
    Resource,
)
from pp_hostd.leader.access.manifests import KINDS, agent_roles, leader_roles
from pp_hostd.leader.access.policies import SECRETS
from pp_hostd.model.keys import AGENTS, LEADER_USER, LEADERS, NAMESPACE, ROSTER, AgentsUse, backup_name
from pp_hostd.model.keys import LEADER as STATUS
from pp_hostd.model.keys import NODES_GROUP as NODE_GROUP
from pp_hostd.model.lease import LEASE
from tests.contract.objects import sample
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import LEADER, agent

ME, OTHER = "rights-1", "rights-2"
NODE_LEASES = "kube-node-lease"
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
ANNOTATED: Json = {"metadata": {"annotations": {"pp-hostd.io/agent": "a"}}}
CHANGED: Json = {"data": {"a": "b"}}
RENEWED: Json = {"spec": {"holderIdentity": "two"}}
OWN_ROSTER = f"metadata.name={ROSTER}"

RENEWAL, FOREIGN = f"pp-hostd.{ME}.told", "of-somebody-else"
OF_AGENT = asyncio.run(made_request(Subject(f"system:node:{ME}", frozenset({NODE_GROUP, AGENTS})))).request
OF_LEADER = asyncio.run(made_request(Subject(LEADER_USER, frozenset({LEADERS})))).request
APPROVED = approval(True, "Because", "of nothing")

CALLS_OF_THE_LEADER = [
    Attempt("get", NODES, ME),
    Attempt("list", NODES, ""),
    Attempt("watch", NODES, ""),
    Attempt("create", NODES, "rights-3", sample(NODES, "rights-3")),
    Attempt("patch", NODES, ME, ANNOTATED),
    Attempt("patch", NODES, ME, {"status": {"conditions": []}}, subresource="status"),
    Attempt("delete", NODES, ME),
    Attempt("get", OPENSHIFT_MACHINES, ME, namespace="default"),
    Attempt("list", OPENSHIFT_MACHINES, ""),
    Attempt("watch", OPENSHIFT_MACHINES, ""),
    Attempt("patch", OPENSHIFT_MACHINES, ME, ANNOTATED, "default"),
    Attempt("list", PODS, "", selector=f"spec.nodeName={ME}"),
    Attempt("delete", PODS, "web", {"gracePeriodSeconds": 0}, "default"),
    Attempt("list", VOLUME_ATTACHMENTS, ""),
    Attempt("delete", VOLUME_ATTACHMENTS, "attached"),
    Attempt("create", EVENTS, "new", sample(EVENTS, "new", namespace="default"), "default"),
    Attempt("get", EVENTS, "told", namespace="default"),
    Attempt("patch", EVENTS, "told", {"count": 2}, "default"),
    Attempt("get", CONFIG_MAPS, STATUS, namespace=NAMESPACE),
    Attempt("list", CONFIG_MAPS, "", namespace=NAMESPACE),
    Attempt("watch", CONFIG_MAPS, "", namespace=NAMESPACE),
    Attempt("create", CONFIG_MAPS, "new", sample(CONFIG_MAPS, "new"), NAMESPACE),
    Attempt("update", CONFIG_MAPS, ROSTER, CHANGED, NAMESPACE),
    Attempt("patch", CONFIG_MAPS, STATUS, CHANGED, NAMESPACE),
    Attempt("delete", CONFIG_MAPS, backup_name(ME), namespace=NAMESPACE),
    Attempt("create", LEASES, "new", sample(LEASES, "new"), NAMESPACE),
    Attempt("get", LEASES, LEASE, namespace=NAMESPACE),
    Attempt("patch", LEASES, LEASE, RENEWED, NAMESPACE),
    Attempt("get", LEASES, ME, namespace=NODE_LEASES),
    Attempt("list", REQUESTS, ""),
    Attempt("get", REQUESTS, RENEWAL),
    Attempt("create", REQUESTS, "", signing_request("pp-leader.new", OF_LEADER)),
    Attempt("patch", REQUESTS, RENEWAL, APPROVED, subresource="approval"),
]
CALLS_OF_AN_AGENT = [
    Attempt("get", NODES, ME),
    Attempt("patch", NODES, ME, ANNOTATED),
    Attempt("get", OPENSHIFT_MACHINES, ME, namespace="default"),
    Attempt("get", OPENSHIFT_MACHINES, OTHER, namespace="default"),
    Attempt("list", OPENSHIFT_MACHINES, ""),
    Attempt("watch", OPENSHIFT_MACHINES, ""),
    Attempt("get", CONFIG_MAPS, backup_name(ME), namespace=NAMESPACE),
    Attempt("list", CONFIG_MAPS, "", namespace=NAMESPACE, selector=OWN_ROSTER),
    Attempt("watch", CONFIG_MAPS, "", namespace=NAMESPACE, selector=OWN_ROSTER),
    Attempt("create", REQUESTS, "", signing_request(f"pp-hostd.{ME}.new", OF_AGENT)),
    Attempt("get", REQUESTS, RENEWAL),
]
NOT_FOR_ANYBODY = [
    *(Attempt("list", SECRETS, "", namespace=where) for where in (NAMESPACE, "default", "kube-system")),
    Attempt("get", SECRETS, "any", namespace=NAMESPACE),
    Attempt("create", SERVICE_ACCOUNTS, "new", {"metadata": {"name": "new"}}, NAMESPACE),
    Attempt("get", CONFIG_MAPS, "elsewhere", namespace="default"),
    Attempt("list", CONFIG_MAPS, "", namespace="kube-system"),
    Attempt("create", CONFIG_MAPS, "new", sample(CONFIG_MAPS, "new"), "default"),
    Attempt("update", CONFIG_MAPS, "elsewhere", CHANGED, "default"),
    Attempt("delete", CONFIG_MAPS, "elsewhere", namespace="default"),
    Attempt("deletecollection", CONFIG_MAPS, "", namespace=NAMESPACE),
    Attempt("deletecollection", NODES, ""),
    Attempt("create", PODS, "new", sample(PODS, "new"), "default"),
    Attempt("deletecollection", PODS, "", namespace="default"),
    Attempt("create", VOLUME_ATTACHMENTS, "new", sample(VOLUME_ATTACHMENTS, "new")),
    Attempt("create", OPENSHIFT_MACHINES, "new", sample(OPENSHIFT_MACHINES, "new"), "default"),
    Attempt("delete", OPENSHIFT_MACHINES, ME, namespace="default"),
    Attempt("patch", OPENSHIFT_MACHINES, ME, ANNOTATED, "default", "status"),
    Attempt("list", CAPI_MACHINES, ""),
    Attempt("patch", CAPI_MACHINES, ME, ANNOTATED, "default"),
    Attempt("list", LEASES, "", namespace=NODE_LEASES),
    Attempt("patch", LEASES, OTHER, RENEWED, NODE_LEASES),
    Attempt("patch", LEASES, "another", RENEWED, NAMESPACE),
    Attempt("delete", LEASES, LEASE, namespace=NAMESPACE),
    Attempt("delete", NAMESPACES, NAMESPACE),
    Attempt("delete", REQUESTS, RENEWAL),
    Attempt("deletecollection", REQUESTS, ""),
    Attempt("create", REQUESTS, "", signing_request(f"pp-hostd.{OTHER}.new", OF_AGENT)),
    Attempt("patch", REQUESTS, FOREIGN, APPROVED, subresource="approval"),
    Attempt("patch", REQUESTS, RENEWAL, {"status": {"certificate": ""}}, subresource="status"),
    *(Attempt("delete", kind, "pp-hostd:leader") for kind in (KINDS["ClusterRole"], KINDS["ClusterRoleBinding"])),
    Attempt("delete", KINDS["Role"], "pp-hostd:agent", namespace=NAMESPACE),
    Attempt("delete", KINDS["ValidatingAdmissionPolicy"], "nodes.pp-hostd.io"),
    Attempt("delete", KINDS["ValidatingAdmissionPolicyBinding"], "nodes.pp-hostd.io"),
]
NOT_FOR_THE_LEADER = [
    Attempt("get", CONFIG_MAPS, ROSTER, namespace=NAMESPACE),
    Attempt("patch", CONFIG_MAPS, ROSTER, CHANGED, NAMESPACE),
    Attempt("update", NODES, ME, ANNOTATED),
    Attempt("get", NODES, ME, subresource="proxy"),
    Attempt("get", PODS, "web", namespace="default", subresource="log"),
    Attempt("list", EVENTS, ""),
]
NOT_FOR_AGENTS = [
    Attempt("get", NODES, OTHER),
    Attempt("list", NODES, ""),
    Attempt("list", PODS, ""),
    Attempt("list", CONFIG_MAPS, "", namespace=NAMESPACE),
    Attempt("watch", CONFIG_MAPS, "", namespace=NAMESPACE),
    Attempt("list", CONFIG_MAPS, "", namespace=NAMESPACE, selector="metadata.name=enrolled"),
    Attempt("get", LEASES, LEASE, namespace=NAMESPACE),
    Attempt("patch", REQUESTS, RENEWAL, APPROVED, subresource="approval"),
]


@pytest.fixture(scope="module", autouse=True)
def objects(world: World) -> None:
    for name in (ME, OTHER):
        world.create(NODES, name, sample(NODES, name))
        world.create(OPENSHIFT_MACHINES, name, sample(OPENSHIFT_MACHINES, name), "default")
        world.create(CAPI_MACHINES, name, sample(CAPI_MACHINES, name), "default")
        world.create(LEASES, name, sample(LEASES, name), NODE_LEASES)
    for name in (ROSTER, STATUS, backup_name(ME)):
        world.create(CONFIG_MAPS, name, sample(CONFIG_MAPS, name), NAMESPACE)
    for name in (LEASE, "another"):
        world.create(LEASES, name, sample(LEASES, name), NAMESPACE)
    world.create(CONFIG_MAPS, "elsewhere", sample(CONFIG_MAPS, "elsewhere"), "default")
    world.create(PODS, "web", sample(PODS, "web"), "default")
    world.create(EVENTS, "told", sample(EVENTS, "told", namespace="default"), "default")
    world.create(VOLUME_ATTACHMENTS, "attached", sample(VOLUME_ATTACHMENTS, "attached"))
    renewal = Attempt("create", REQUESTS, "", signing_request(RENEWAL, OF_AGENT))
    assert world.make(renewal, agent(ME)).status_code in (201, 409)
    world.create(REQUESTS, FOREIGN, signing_request(FOREIGN, OF_AGENT))


@pytest.mark.parametrize("attempt", CALLS_OF_THE_LEADER, ids=str)
def test_every_call_of_the_leader_is_allowed(world: World, attempt: Attempt) -> None:
    reply = world.make(attempt, LEADER, dry=True)
    assert reply.ok, reply.text


@pytest.mark.parametrize("attempt", CALLS_OF_AN_AGENT, ids=str)
def test_every_call_of_an_agent_is_allowed(world: World, attempt: Attempt) -> None:
    reply = world.make(attempt, agent(ME), dry=True)
    assert reply.ok, reply.text


@pytest.mark.parametrize("attempt", [*NOT_FOR_ANYBODY, *NOT_FOR_THE_LEADER], ids=str)
def test_the_leader_is_refused_everything_else(world: World, attempt: Attempt) -> None:
    assert world.make(attempt, LEADER, dry=True).status_code == 403


@pytest.mark.parametrize("attempt", [*NOT_FOR_ANYBODY, *NOT_FOR_AGENTS], ids=str)
def test_an_agent_is_refused_everything_else(world: World, attempt: Attempt) -> None:
    assert world.make(attempt, agent(ME), dry=True).status_code == 403


@pytest.mark.parametrize("attempt", [*NOT_FOR_ANYBODY, *NOT_FOR_THE_LEADER, *NOT_FOR_AGENTS], ids=str)
def test_what_is_refused_would_be_carried_out_for_an_administrator(world: World, attempt: Attempt) -> None:
    assert world.make(attempt, dry=True).status_code not in (400, 403, 405)


def part(attempt: Attempt) -> str:
    """Returns the resource of the attempt, as RBAC calls it."""
    return f"{attempt.kind.plural}/{attempt.subresource}" if attempt.subresource else attempt.kind.plural


def granted(roles: list[Json]) -> set[tuple[str, str, str, str]]:
    return {
        (role["metadata"].get("namespace", ""), group, resource, verb)
        for role in roles
        for rule in role.get("rules", [])
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for verb in rule["verbs"]
    }


@pytest.mark.parametrize(
    ("roles", "calls"),
    [
        (leader_roles("openshift"), CALLS_OF_THE_LEADER),
        (agent_roles("openshift", AgentsUse.CERTIFICATE), CALLS_OF_AN_AGENT),
    ],
    ids=["leader", "agent"],
)
def test_no_right_is_granted_that_no_call_needs(roles: list[Json], calls: list[Attempt]) -> None:
    needed = {(where, each.kind.group, part(each), each.verb) for each in calls for where in ("", each.namespace)}
    needed |= {("", REQUESTS.group, "signers", "approve")}  # which the API wants of whoever approves
    assert granted(roles) - needed == set()
