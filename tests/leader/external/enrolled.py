"""Enrolled nodes on any API, whose hosts have booted again and are held: a leader frees them without asking peers."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import (
    CONFIG_MAPS,
    NAMESPACES,
    NODES,
    OPENSHIFT_MACHINES,
    POISON_PILL_REMEDIATION_TEMPLATES,
    POISON_PILL_REMEDIATIONS,
    Resource,
)
from pp_hostd.kube.watch import Change, ChangeKind, Snapshot, watch
from pp_hostd.model.keys import AGENT, ENROLLED, FREED, NAMESPACE, backup_name
from pp_hostd.model.promise import GateClosed, GateKind
from pp_hostd.model.settings import Api, Leader, Remediations, Settings
from tests.agent.objects import running, until, until_found
from tests.leader.external.medik8s import remediation_of
from tests.leader.in_term import client_for, unless_there
from tests.leader.power.clusters import Place

OBJECTS, TEMPLATES = POISON_PILL_REMEDIATIONS, POISON_PILL_REMEDIATION_TEMPLATES
MACHINES_IN = "openshift-machine-api"
LABELS = {"zone": "north"}


def settings_for(machines: str) -> Settings:
    leader = Leader(start_grace_seconds=0.0, max_unhealthy="100%", resets_per_hour="1000", max_at_once=1000)
    return Settings(api=Api(machines=machines), leader=leader, remediations=Remediations(poison_pill=True))


class EnrolledNodes:
    """`deleted` counts the deletions of each Node. Nodes in `silent` are not Ready when they are recreated."""

    def __init__(self, client: ApiClient, machines: str) -> None:
        self.client, self.machines = client, machines
        self.deleted: Counter[str] = Counter()
        self.silent: set[str] = set()
        self._listed = False

    async def build(self, *namespaces: str) -> None:
        for namespace in (NAMESPACE, MACHINES_IN, *namespaces):
            await unless_there(self.client.create(NAMESPACES, {"metadata": {"name": namespace}}))
        await unless_there(self.client.create(CONFIG_MAPS, {"metadata": {"name": ENROLLED}}, namespace=NAMESPACE))

    async def add(self, name: str) -> Json | None:
        """A Node that is not Ready; its Machine, None where Nodes stand for themselves."""
        annotations = {AGENT: GateClosed("another-boot", GateKind.HOLD).render()}
        machine = None
        if self.machines == "openshift":
            annotations["machine.openshift.io/machine"] = f"{MACHINES_IN}/{name}"
            body = {"metadata": {"name": name}, "spec": {}}
            machine = await self.client.create(OPENSHIFT_MACHINES, body, namespace=MACHINES_IN)
            status = {"status": {"nodeRef": {"kind": "Node", "name": name}}}
            await self.client.patch(OPENSHIFT_MACHINES, name, status, namespace=MACHINES_IN, subresource="status")
        await self.client.create(NODES, {"metadata": {"name": name, "labels": LABELS, "annotations": annotations}})
        await self._report(name, "False")
        enrolled = {"data": {name: "{}"}}
        await self.client.patch(CONFIG_MAPS, ENROLLED, enrolled, namespace=NAMESPACE)
        return machine

    async def make(self, name: str, template: Json, machine: Json | None) -> None:
        """As medik8s does, from the template that is in the cluster."""
        metadata = template["metadata"]
        found = await self.client.get(TEMPLATES, metadata["name"], namespace=metadata["namespace"])
        body = remediation_of(name, {**template, "spec": found["spec"]}, machine)
        await self.client.create(OBJECTS, body, namespace=metadata["namespace"])

    async def find(self, kind: Resource, name: str, namespace: str | None = None) -> Json | None:
        try:
            return await self.client.get(kind, name, namespace=namespace)
        except ApiError as error:
            assert error.outcome is Outcome.NOT_FOUND, error
            return None

    async def until_reason(self, name: str, namespace: str, reason: str) -> Json:
        """Until its condition has this reason, and nothing keeps the object any more; the object."""

        async def so() -> Json:
            found = await self.find(OBJECTS, name, namespace) or {}
            reasons = [each["reason"] for each in found.get("status", {}).get("conditions", ())]
            over = reasons == [reason] and not found["metadata"].get("finalizers")
            return found if over and await self._is_given_back(name) else {}

        return await until_found(so, f"{name} is told to be {reason}")

    async def _is_given_back(self, name: str) -> bool:
        return await self.find(CONFIG_MAPS, backup_name(name), NAMESPACE) is None

    async def _report(self, name: str, ready: str) -> None:
        status = {"status": {"conditions": [{"type": "Ready", "status": ready}]}}
        await self.client.patch(NODES, name, status, subresource="status")

    async def live(self) -> None:
        """The kubelets: those of Nodes that were recreated report, unless they are silent."""
        async for event in watch(self.client, NODES):
            self._listed = self._listed or isinstance(event, Snapshot)
            if isinstance(event, Change) and event.kind is ChangeKind.DELETED:
                self.deleted[event.object["metadata"]["name"]] += 1
            elif isinstance(event, Change):
                await self._answer(event.object)

    async def _answer(self, node: Json) -> None:
        name, annotations = node["metadata"]["name"], node["metadata"].get("annotations", {})
        ready = [each["status"] for each in node.get("status", {}).get("conditions", ())] == ["True"]
        if FREED in annotations and not ready and name not in self.silent:
            try:
                await self._report(name, "True")
            except ApiError as error:
                assert error.outcome is Outcome.NOT_FOUND, error

    async def until_listed(self) -> None:
        await until(lambda: self._listed, "the kubelets are there")


@asynccontextmanager
async def enrolled(place: Place, *namespaces: str) -> AsyncIterator[EnrolledNodes]:
    """With kubelets, and with these namespaces."""
    with closing(client_for(place.admin)) as admin:
        nodes = EnrolledNodes(admin, place.machines)
        await nodes.build(*namespaces)
        async with running(nodes.live()):
            await nodes.until_listed()
            yield nodes
