"""MachineHealthChecks on a real API server with the definitions that OpenShift and Cluster API publish.

A write that one of their schemas refuses, or prunes, would never show the fields that these tests wait for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.resources import (
    CAPI_CLUSTERS,
    CONFIG_MAPS,
    EVENTS,
    MACHINE_HEALTH_CHECKS,
    MACHINES,
    NAMESPACES,
    NODES,
    POISON_PILL_REMEDIATIONS,
    Resource,
    template_of,
)
from pp_hostd.leader.leader_term import LeaderTerm
from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.model.keys import CLUSTER_NAME, EXTERNAL_REMEDIATION, NAMESPACE, STATUS
from pp_hostd.model.leader_status import parse_leader_status
from pp_hostd.model.settings import Api, Health, Leader, Settings
from pp_hostd.service.metric import render
from tests.agent.objects import until_found
from tests.harness.controlplane import RealCluster
from tests.harness.published import published
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import LEADER, pp_leader
from tests.leader.health.mhc_objects import ALL, CLUSTER, OPENSHIFT, PLACE, TEMPLATE, V1BETA1, V1BETA2, spec_of
from tests.leader.in_term import client_for, term, unless_there
from tests.leader.power.site import OWNER, SPEC

Json = dict[str, Any]
LONG_AGO = "2026-01-01T00:00:00Z"
IN_EACH = pytest.mark.parametrize("spelling", ALL, ids=lambda each: each.value)
FLOWS = ("--flows", "external-remediation,machine-health-check")


def of_version(spelling: Spelling) -> list[Json]:
    """Of Cluster API's kinds only this version is served, as before the newest came."""
    found = published()
    if spelling is V1BETA1:
        for definition in found:
            versions = definition["spec"]["versions"]
            names = [each["name"] for each in versions]
            if definition["spec"]["group"] == "cluster.x-k8s.io" and "v1beta1" in names:
                for each in versions:
                    each["served"] = each["storage"] = each["name"] == "v1beta1"
    return found


class Place:
    """A cluster with two Machines, of which `sick` has a silent Node."""

    def __init__(self, cluster: RealCluster, client: ApiClient, spelling: Spelling) -> None:
        self.cluster, self.client, self.spelling = cluster, client, spelling
        self.machines = "openshift" if spelling is OPENSHIFT else "cluster-api"
        newest = 0 if spelling is V1BETA2 else -1
        self.kind, self.checks = MACHINES[self.machines][newest], MACHINE_HEALTH_CHECKS[self.machines][newest]

    async def build(self) -> None:
        for namespace in (NAMESPACE, PLACE):
            await unless_there(self.client.create(NAMESPACES, {"metadata": {"name": namespace}}))
        await self.client.create(self.checks, {"metadata": {"name": "workers"}, "spec": self.spec(0)}, namespace=PLACE)
        await self.client.create(CAPI_CLUSTERS, {"metadata": {"name": CLUSTER}, "spec": {}}, namespace=PLACE)
        true = [{"type": each, "status": "True"} for each in ("ControlPlaneInitialized", "InfrastructureReady")]
        ready = {"status": {"infrastructureReady": True, "conditions": true}}
        await self.client.patch(CAPI_CLUSTERS, CLUSTER, ready, namespace=PLACE, subresource="status")
        for name, status in (("sick", "Unknown"), ("well", "True")):
            await self._add(name, status)

    async def _add(self, name: str, ready: str) -> None:
        metadata = {"name": name, "labels": {"pool": "a", CLUSTER_NAME: CLUSTER}, "ownerReferences": [OWNER]}
        await self.client.create(self.kind, {"metadata": metadata, "spec": SPEC[self.machines]}, namespace=PLACE)
        reference = {"name": name} if self.spelling is V1BETA2 else {"kind": "Node", "name": name}
        status = {"status": {"nodeRef": reference}}
        await self.client.patch(self.kind, name, status, namespace=PLACE, subresource="status")
        named = {"machine.openshift.io/machine": f"{PLACE}/{name}"}
        if self.spelling is not OPENSHIFT:
            named = {"cluster.x-k8s.io/machine": name, "cluster.x-k8s.io/cluster-namespace": PLACE}
        await self.client.create(NODES, {"metadata": {"name": name, "annotations": named}})
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": LONG_AGO}
        await self.client.patch(NODES, name, {"status": {"conditions": [condition]}}, subresource="status")

    def spec(self, most: object, template: Json | None = None) -> Json:
        return spec_of(self.spelling, most=most, template=template)

    async def change(self, most: object, template: Json | None = None) -> None:
        await self.client.patch(self.checks, "workers", {"spec": self.spec(most, template)}, namespace=PLACE)

    async def status(self, kind: Resource, name: str) -> Json:
        found = await self.client.get(kind, name, namespace=PLACE)
        status: Json = found.get("status") or {}
        return status

    async def said(self, kind: Resource, name: str, of_type: str) -> list[tuple[str, str]]:
        """Status and reason of this condition, in each list that has it."""
        status = await self.status(kind, name)
        older = ((status.get("deprecated") or {}).get("v1beta1") or {}).get("conditions") or ()
        both = [*(status.get("conditions") or ()), *older]
        return [(each["status"], each.get("reason", "")) for each in both if each["type"] == of_type]

    async def until_said(self, kind: Resource, name: str, of_type: str, *wanted: tuple[str, str]) -> None:
        async def is_said() -> bool:
            return await self.said(kind, name, of_type) == list(wanted)

        await until_found(is_said, f"{name} has {of_type} {wanted}")

    async def events(self) -> list[str]:
        return [each["message"] for each in (await self.client.list(EVENTS)).items]


@contextmanager
def installed(spelling: Spelling) -> Iterator[RealCluster]:
    machines = "openshift" if spelling is OPENSHIFT else "cluster-api"
    with RealCluster.start(definitions=of_version(spelling)) as cluster:
        done = pp_leader("install", "--kubeconfig", str(cluster.kubeconfig()), "--machines", machines, *FLOWS)
        assert done.returncode == 0, done.stderr
        yield cluster


@asynccontextmanager
async def led(cluster: RealCluster, place: Place) -> AsyncIterator[LeaderTerm]:
    settings = Settings(
        api=Api(machines=place.machines),
        leader=Leader(start_grace_seconds=0.0, max_unhealthy="100%"),
        health=Health(machine_health_checks=True),
    )
    with closing(client_for(str(cluster.kubeconfig(*LEADER)))) as leader:
        async with term(leader, settings) as leader_term:
            yield leader_term


@IN_EACH
async def test_published_definitions_take_every_status_and_condition_and_another_controller_is_left_alone(
    spelling: Spelling,
) -> None:
    with installed(spelling) as cluster, closing(client_for(str(cluster.kubeconfig()))) as client:
        place = Place(cluster, client, spelling)
        await place.build()
        async with led(cluster, place) as leader:
            await _restricted(place)
            await _told_by_leader(place)
            if spelling is not OPENSHIFT:
                await _left_to_its_owner(place)
            await _by_template(place)
            labels = 'kind="MachineHealthCheck",namespace="machines",check="workers"'
            figures, remediations = render(leader.metrics()), 1 if spelling is OPENSHIFT else 2
            assert f"pp_leader_health_check_short_circuits_total{{{labels}}} 1\n" in figures
            assert f"pp_leader_health_check_remediations_total{{{labels}}} {remediations}\n" in figures
            if spelling is OPENSHIFT:
                await _annotated_and_deleted(place)
            await _left_alone(place)


def _each(spelling: Spelling, newer: tuple[str, str], older: tuple[str, str]) -> list[tuple[str, str]]:
    return [newer, older] if spelling is V1BETA2 else [older]


async def _restricted(place: Place) -> None:
    wanted = ("False", "TooManyUnhealthy")
    allowed = _each(place.spelling, wanted, wanted)
    await place.until_said(place.checks, "workers", "RemediationAllowed", *allowed)
    status = await place.status(place.checks, "workers")
    assert (status["expectedMachines"], status["currentHealthy"], status["remediationsAllowed"]) == (2, 1, 0)
    if place.spelling is not OPENSHIFT:
        assert (status["targets"], status["observedGeneration"]) == (["sick", "well"], 1)
        succeeded, failed = ("True", "HealthCheckSucceeded"), ("False", "UnhealthyNode")
        well = _each(place.spelling, succeeded, ("True", ""))
        await place.until_said(place.kind, "well", "HealthCheckSucceeded", *well)
        sick = _each(place.spelling, failed, failed)
        await place.until_said(place.kind, "sick", "HealthCheckSucceeded", *sick)
        metadata = (await place.client.get(place.checks, "workers", namespace=PLACE))["metadata"]
        assert metadata["labels"][CLUSTER_NAME] == metadata["ownerReferences"][0]["name"] == CLUSTER
    if place.spelling is V1BETA2:
        assert await place.said(place.checks, "workers", "Paused") == [("False", "NotPaused")]


async def _told_by_leader(place: Place) -> None:
    async def is_told() -> bool:
        found = (each.get("data") or {} for each in (await place.client.list(CONFIG_MAPS, namespace=NAMESPACE)).items)
        statuses = [parse_leader_status(data[STATUS]) for data in found if STATUS in data]
        return [getattr(each, "machine_health_checks", "") for each in statuses] == [place.machines]

    await until_found(is_told, "the leader says whose health checks it carries out")


async def _left_to_its_owner(place: Place) -> None:
    await place.change("100%")
    wanted = ("False", "WaitingForRemediation")
    await place.until_said(place.kind, "sick", "OwnerRemediated", *_each(place.spelling, wanted, wanted))
    allowed = _each(place.spelling, ("True", "RemediationAllowed"), ("True", ""))
    await place.until_said(place.checks, "workers", "RemediationAllowed", *allowed)


async def _by_template(place: Place) -> None:
    await place.change("100%", TEMPLATE)
    trouble = ("False", "ExternalRemediationTemplateNotFound")
    await place.until_said(place.checks, "workers", "ExternalRemediationTemplateAvailable", trouble)
    if place.spelling is V1BETA2:
        told = ("False", "RemediationTemplateNotFound")
        await place.until_said(place.kind, "sick", "ExternallyRemediated", told)
    template = {"metadata": {"name": TEMPLATE["name"]}, "spec": {"template": {"spec": {"retryLimit": 0}}}}
    await place.client.create(template_of(POISON_PILL_REMEDIATIONS), template, namespace=PLACE)

    async def made() -> bool:
        return bool((await place.client.list(POISON_PILL_REMEDIATIONS)).items)

    await until_found(made, "the object is made")
    found = await place.client.get(POISON_PILL_REMEDIATIONS, "sick", namespace=PLACE)
    owner = {key: found["metadata"]["ownerReferences"][0][key] for key in ("apiVersion", "kind", "name")}
    assert owner == {"apiVersion": place.kind.api_version, "kind": "Machine", "name": "sick"}
    await place.until_said(place.checks, "workers", "ExternalRemediationTemplateAvailable")
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": LONG_AGO}
    await place.client.patch(NODES, "sick", {"status": {"conditions": [ready]}}, subresource="status")

    async def gone() -> bool:
        return not (await place.client.list(POISON_PILL_REMEDIATIONS)).items

    await until_found(gone, "the object is deleted")


async def _annotated_and_deleted(place: Place) -> None:
    """With the rights that `install` gives the leader."""
    strategy = {"machine.openshift.io/remediation-strategy": "external-baremetal"}
    patch = {"metadata": {"annotations": strategy}, "spec": {"remediationTemplate": None}}
    await place.client.patch(place.checks, "workers", patch, namespace=PLACE)
    silent = {"type": "Ready", "status": "Unknown", "lastTransitionTime": LONG_AGO}
    await place.client.patch(NODES, "sick", {"status": {"conditions": [silent]}}, subresource="status")

    async def annotated() -> bool:
        found = await place.client.get(place.kind, "sick", namespace=PLACE)
        return EXTERNAL_REMEDIATION in (found["metadata"].get("annotations") or {})

    await until_found(annotated, "it is annotated")
    failed = {"status": {"phase": "Failed"}}
    await place.client.patch(place.kind, "well", failed, namespace=PLACE, subresource="status")

    async def deleted() -> bool:
        return [each["metadata"]["name"] for each in (await place.client.list(place.kind)).items] == ["sick"]

    await until_found(deleted, "the Machine that has failed is deleted")


async def _left_alone(place: Place) -> None:
    """Another client than ours writes its status."""
    with closing(World(place.cluster)) as others:
        patch = {"status": {"currentHealthy": 7}}
        assert others.make(Attempt("patch", place.checks, "workers", patch, PLACE, "status")).ok

    async def is_told() -> bool:
        return any("python-requests has written its status" in each for each in await place.events())

    await until_found(is_told, "somebody is told")
    assert (await place.status(place.checks, "workers"))["currentHealthy"] == 7
