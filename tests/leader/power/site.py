"""Machines on BareMetalHosts, on any API: an operator and kubelets that act at once, and a leader of this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from typing import Any

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import (
    BARE_METAL_HOSTS,
    CONFIG_MAPS,
    EVENTS,
    MACHINES,
    METAL3_REMEDIATIONS,
    NAMESPACES,
    NODES,
    PODS,
    Resource,
)
from pp_hostd.kube.watch import Change, ChangeKind, Snapshot, watch
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import reboot_key
from pp_hostd.model.keys import EXTERNAL_REMEDIATION, NAMESPACE, backup_name
from pp_hostd.model.settings import Api, Leader, Power, Remediations, Settings
from tests.agent.objects import until, until_found
from tests.leader.in_term import client_for, unless_there
from tests.leader.power.clusters import Place

PLACE = "metal"
KEY = reboot_key(Power().suffix)
LABELS, TAINT = {"zone": "north"}, {"key": "dedicated", "value": "storage", "effect": "NoSchedule"}
OWNER = {"apiVersion": "v1", "kind": "MachineSet", "name": "workers", "uid": "workers", "controller": True}
PROVIDER = {"openshift": f"baremetalhost:///{PLACE}/", "cluster-api": f"metal3://{PLACE}/"}
SPEC = {
    "openshift": {},
    "cluster-api": {
        "clusterName": "metal",
        "bootstrap": {"dataSecretName": "none"},
        "infrastructureRef": {"apiGroup": METAL3_REMEDIATIONS.group, "kind": "Metal3Machine", "name": "any"},
    },
}
"""Fields of a Machine's spec that today's definitions require and no leader reads."""
TOLD = {
    "errorCount": 0,
    "errorMessage": "",
    "operationalStatus": "OK",
    "provisioning": {"ID": "", "state": "provisioned"},
}


class Site:
    """`happened` is the outcome of nodes, requests, power requests, backups by name, each with its version. Hosts in
    `stuck` never come on, those in `sick` are not well when they do, and the
    kubelets of those in `slow` do not start by themselves."""

    def __init__(self, client: ApiClient, machines: str = "openshift", *, newest: bool = False) -> None:
        self.client, self.machines = client, machines
        self.kind = MACHINES[machines][0 if newest else -1]
        self.stuck: set[str] = set()
        self.sick: set[str] = set()
        self.slow: set[str] = set()
        self.happened: list[tuple[int, str, str]] = []
        self._true: set[tuple[str, str]] = set()
        self._listed: set[Resource] = set()

    # The objects of the site.

    async def build(self) -> None:
        for namespace in (NAMESPACE, PLACE):
            await unless_there(self.client.create(NAMESPACES, {"metadata": {"name": namespace}}))

    async def add(
        self,
        name: str,
        *,
        node: bool = True,
        on: bool = True,
        annotations: dict[str, str] | None = None,
        labels: dict[str, str] | None = None,
        owned: bool = True,
        external: bool = False,
    ) -> Json:
        """A host, and its Machine, perhaps with a Node; the Machine. `annotations` are the Machine's."""
        host = {"metadata": {"name": name}, "spec": {"online": True, "externallyProvisioned": external}}
        await self.client.create(BARE_METAL_HOSTS, host, namespace=PLACE)
        await self.tell(BARE_METAL_HOSTS, name, {**TOLD, "poweredOn": on})
        metadata: Json = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
        metadata["ownerReferences"] = [OWNER] if owned else []
        provider = PROVIDER[self.machines] + name + ("/any" if self.machines == "cluster-api" else "")
        body = {"metadata": metadata, "spec": {**SPEC[self.machines], "providerID": provider}}
        made = await self.client.create(self.kind, body, namespace=PLACE)
        await self.tell(self.kind, name, {"nodeRef": self._reference(name)})
        if node:
            await self.register(name)
            await self.client.patch(NODES, name, {"metadata": {"labels": LABELS}, "spec": {"taints": [TAINT]}})
        return made

    async def add_pod(self, node: str) -> None:
        """Of the node's name."""
        container = {"name": "web", "image": "web"}
        spec = {"nodeName": node, "containers": [container], "tolerations": [{"operator": "Exists"}]}
        await self.client.create(PODS, {"metadata": {"name": node}, "spec": spec}, namespace=PLACE)

    def _reference(self, name: str) -> Json:
        """The newest of Cluster API's know a Node by its name alone."""
        return {"name": name} if self.kind.version == "v1beta2" else {"kind": "Node", "name": name}

    async def register(self, name: str) -> None:
        """As a kubelet does when it starts."""
        named = {"machine.openshift.io/machine": f"{PLACE}/{name}"}
        if self.machines == "cluster-api":
            named = {"cluster.x-k8s.io/machine": name, "cluster.x-k8s.io/cluster-namespace": PLACE}
        await unless_there(self.client.create(NODES, {"metadata": {"name": name, "annotations": named}}))
        ready = {"type": "Ready", "status": "False" if name in self.sick else "True"}
        await self.client.patch(NODES, name, {"status": {"conditions": [ready]}}, subresource="status")

    async def tell(self, kind: Resource, name: str, status: Json) -> None:
        await self.client.patch(kind, name, {"status": status}, namespace=PLACE, subresource="status")

    async def ask(self, name: str) -> None:
        asked = {"metadata": {"annotations": {EXTERNAL_REMEDIATION: ""}}}
        await self.client.patch(self.kind, name, asked, namespace=PLACE)

    async def find(self, kind: Resource, name: str) -> Json | None:
        try:
            return await self.client.get(kind, name, namespace=PLACE if kind.namespaced else None)
        except ApiError as error:
            assert error.outcome is Outcome.NOT_FOUND, error
            return None

    async def told(self, words: str, types: tuple[str, ...] = ("Normal", "Warning")) -> None:
        """Until an Event says these words."""

        async def is_told() -> bool:
            events = (await self.client.list(EVENTS)).items
            return any(words in each["message"] for each in events if each["type"] in types)

        await until_found(is_told, f"somebody is told: {words}")

    async def until_restored(self, name: str) -> None:
        await until_found(lambda: self.is_restored(name), f"{name} is well again")

    async def is_restored(self, name: str) -> bool:
        """On, its Node there with all that it had, and nothing of a remedy left."""
        host, node = await self.find(BARE_METAL_HOSTS, name), await self.find(NODES, name)
        if host is None or node is None or not host["status"]["poweredOn"] or self.is_true(name, *CHANGES):
            return False
        whole = LABELS.items() <= node["metadata"].get("labels", {}).items()
        return whole and TAINT in (node["spec"].get("taints") or [])

    # The changes at the site, and the operator and kubelets that make some of them.

    @asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """`happened` begins here."""
        kinds = (NODES, self.kind, BARE_METAL_HOSTS, CONFIG_MAPS)
        watching = [asyncio.create_task(self._look(kind)) for kind in kinds]
        try:
            await until(lambda: len(self._listed) == len(kinds), "all is listed")
            yield
        finally:
            for task in watching:
                task.cancel()
            await asyncio.gather(*watching, return_exceptions=True)

    async def _look(self, kind: Resource) -> None:
        async for event in watch(self.client, kind):
            if isinstance(event, Snapshot):
                self._listed.add(kind)
                for found in event.items:
                    self._true |= _facts(kind, found)
            elif isinstance(event, Change):
                gone = event.kind is ChangeKind.DELETED
                self._note(int(event.resource_version), kind, event.object, gone)

    def _note(self, version: int, kind: Resource, found: Json, gone: bool) -> None:
        name = _name(kind, found)
        now = set() if gone else _facts(kind, found)
        before = {fact for fact in self._true if fact[0] == name and fact[1] in _about(kind)}
        self.happened += [(version, name, f"+{what}") for _, what in sorted(now - before)]
        self.happened += [(version, name, f"-{what}") for _, what in sorted(before - now)]
        self._true = (self._true - before) | now

    def of(self, name: str) -> list[str]:
        """Returns all that happened to the host of this name, in order."""
        return [what for _, which, what in sorted(self.happened) if which == name]

    def is_true(self, name: str, *facts: str) -> bool:
        """Whether any of these is so."""
        return any((name, fact) in self._true for fact in facts)

    async def ask_again(self, name: str) -> None:
        """As a health check does to which a missing Node is unhealthy at once."""
        while True:
            await until(lambda: not self.is_true(name, "asked", "node"), f"{name} is unhealthy, and nobody asks")
            await self.ask(name)
            await until(lambda: self.is_true(name, "asked"), f"{name} is requested")

    async def operate(self) -> None:
        """The operator and the kubelets."""
        async for event in watch(self.client, BARE_METAL_HOSTS):
            hosts = event.items if isinstance(event, Snapshot) else []
            if isinstance(event, Change) and event.kind is not ChangeKind.DELETED:
                hosts = [event.object]
            for host in hosts:
                await self._operate(host)

    async def _operate(self, host: Json) -> None:
        name, status = host["metadata"]["name"], host.get("status") or {}
        if "poweredOn" not in status:
            return
        wanted = not any(key.startswith("reboot.metal3.io/") for key in host["metadata"].get("annotations") or {})
        if status["poweredOn"] and not wanted:
            await self.switched(name, on=False)
        elif not status["poweredOn"] and wanted and name not in self.stuck:
            await self.switched(name, on=True)

    async def switched(self, name: str, *, on: bool) -> None:
        await self.tell(BARE_METAL_HOSTS, name, {"poweredOn": on})
        if on and name not in self.slow:
            await self.register(name)


CHANGES = ("asked", "kept off", "backup")


def _about(kind: Resource) -> tuple[str, ...]:
    if kind is BARE_METAL_HOSTS:
        return ("kept off",)
    return {"Node": ("node",), "Machine": ("asked", "machine"), "ConfigMap": ("backup",)}[kind.kind]


def _name(kind: Resource, found: Json) -> str:
    name: str = found["metadata"]["name"]
    return name.partition("backup-")[2] if kind is CONFIG_MAPS else name


def _facts(kind: Resource, found: Json) -> set[tuple[str, str]]:
    name, annotations = _name(kind, found), found["metadata"].get("annotations") or {}
    so = {
        "node": kind is NODES,
        "machine": kind.kind == "Machine",
        "asked": kind.kind == "Machine" and EXTERNAL_REMEDIATION in annotations,
        "kept off": kind is BARE_METAL_HOSTS and KEY in annotations,
        "backup": kind is CONFIG_MAPS and found["metadata"]["name"] == backup_name(name),
    }
    return {(name, fact) for fact, holds in so.items() if holds}


def settings_for(machines: str, cycle: bool = True, **power: Any) -> Settings:
    return Settings(
        api=Api(machines=machines),
        leader=Leader(
            start_grace_seconds=0.0,
            max_unhealthy="100%",
            resets_per_hour="1000",
            max_at_once=1000,
            deletions_per_second=1000.0,
        ),
        power=Power(cycle=cycle, **power),
        remediations=Remediations(metal3=True, metal3_proposed=True),
    )


@asynccontextmanager
async def on_site(place: Place) -> AsyncIterator[tuple[Site, ApiClient]]:
    """Watched from now on; and the client of its leader."""
    with closing(client_for(place.admin)) as admin, closing(client_for(place.leader)) as leader:
        site = Site(admin, place.machines, newest=place.newest)
        await site.build()
        async with site.watched():
            yield site, leader
