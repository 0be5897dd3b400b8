"""The same Machines and MachineHealthChecks twice in one cluster: once for Cluster API's real manager, once for us.

The manager keeps the Clusters and Machines of both, and carries its own health checks out. Once it has stopped, ours
are made, and the leader carries them out. `Side.seen` is all that either tells and makes, without the names and times
that can't be the same.
"""

from __future__ import annotations

import asyncio
import json
import time
from base64 import b64encode
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Callable

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import CLUSTERS as CLUSTER_VERSIONS
from pp_hostd.kube.resources import (
    EVENTS,
    MACHINE_HEALTH_CHECKS,
    METAL3_REMEDIATIONS,
    NAMESPACES,
    NODES,
    Resource,
    template_of,
)
from pp_hostd.kube.resources import MACHINES as MACHINE_VERSIONS
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.machine_details import EXTERNALLY_REMEDIATED, OWNER_REMEDIATED
from pp_hostd.model.moment import render_moment
from tests.harness.cluster import Cluster
from tests.harness.cluster_api import INFRASTRUCTURE
from tests.harness.eventually import counted, stalled_seconds
from tests.leader.health.mhc_objects import CLUSTER, V1BETA2, spec_of

Json = dict[str, Any]
Seen = dict[str, object]
"""Each value that is seen, by its path."""
CLUSTERS, MACHINES = CLUSTER_VERSIONS[0], MACHINE_VERSIONS["cluster-api"][0]
HEALTH_CHECKS, OBJECTS = MACHINE_HEALTH_CHECKS["cluster-api"][0], METAL3_REMEDIATIONS
SECRETS = Resource("", "v1", "Secret", "secrets")
BED_CLUSTERS = Resource(INFRASTRUCTURE, "v1", "BedCluster", "bedclusters")
BED_MACHINES = Resource(INFRASTRUCTURE, "v1", "BedMachine", "bedmachines")
TEMPLATE = {"apiVersion": OBJECTS.api_version, "kind": template_of(OBJECTS).kind, "name": "reset"}
MISSING = {**TEMPLATE, "name": "missing"}
LONG_AGO = "2026-01-01T00:00:00Z"
ROW = "row"
"""The label by which a health check selects its Machines."""
WHOLE, PAUSED, EARLY = "whole", "paused", "early"
"""Kinds of Clusters: whole, paused, and without a control plane."""
FIRST = {"cluster.x-k8s.io/control-plane": ""}
"""A Machine of the control plane; the manager counts a Cluster as initialized that has one with a Node."""
TOLD = ("HealthCheckSucceeded", OWNER_REMEDIATED, EXTERNALLY_REMEDIATED)
PROVISIONED = {"initialization": {"provisioned": True}}
MANAGER, LEADER = "machinehealthcheck-controller", "pp-leader"
"""The sources of Events."""


@dataclass(frozen=True)
class Row:
    """A health check, and how each of its Machines is. `rests` is the path and the value (None: any) that show that the
    check is carried out. The Node of `then`, if there is one, is well afterwards, and `again` shows the end of that."""

    name: str
    machines: Mapping[str, str]
    spec: Json = field(default_factory=dict)
    conditions: tuple[tuple[str, str, int], ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    paused: bool = False
    control_plane: bool = False
    place: str = WHOLE
    rests: tuple[str, object] = ("check.status.observedGeneration", 1)
    then: str = ""
    again: tuple[str, object] = ("", None)


class Side:
    """The namespaces of one of the two."""

    def __init__(self, client: ApiClient, cluster: Cluster, name: str, source: str) -> None:
        self._client, self._cluster, self._name, self._source = client, cluster, name, source

    def _place(self, row: Row) -> str:
        return f"{self._name}-{row.place}"

    # Making.

    async def make_place(self, kind: str) -> None:
        """A Cluster, which is the one that the manager runs in, with a Machine of its control plane."""
        place = f"{self._name}-{kind}"
        await self._client.create(NAMESPACES, {"metadata": {"name": place}})
        value = b64encode(self._cluster.kubeconfig().read_bytes()).decode()
        metadata = {"name": f"{CLUSTER}-kubeconfig", "labels": {"cluster.x-k8s.io/cluster-name": CLUSTER}}
        secret = {"metadata": metadata, "type": "cluster.x-k8s.io/secret", "data": {"value": value}}
        await self._client.create(SECRETS, secret, namespace=place)
        endpoint = {"host": "127.0.0.1", "port": int(self._cluster.server.rpartition(":")[2])}
        await self._make(BED_CLUSTERS, place, CLUSTER, {"controlPlaneEndpoint": endpoint}, status=PROVISIONED)
        await self._make(CLUSTERS, place, CLUSTER, {"infrastructureRef": _reference(BED_CLUSTERS, CLUSTER)})
        inner = {"metadata": {"labels": {"team": "red"}, "annotations": {"why": "sick"}}, "spec": {"strategy": {}}}
        await self._make(template_of(OBJECTS), place, TEMPLATE["name"], {"template": inner})
        if kind != EARLY:
            await self._make_machine(place, "first", "well", FIRST, {})

    async def make(self, row: Row) -> None:
        for name, state in row.machines.items():
            annotations = {row.annotations[name]: ""} if name in row.annotations else {}
            labels = {ROW: row.name, **(FIRST if row.control_plane else {})}
            await self._make_machine(self._place(row), _machine_name(row, name), state, labels, annotations)

    async def _make_machine(
        self, place: str, name: str, state: str, labels: Mapping[str, str], annotations: Mapping[str, str]
    ) -> None:
        node, states = f"{place}-{name}", state.split(", ")
        if "absent" not in states:
            await self._client.create(NODES, {"metadata": {"name": node}, "spec": {"providerID": f"bed://{node}"}})
            if "mute" not in states:
                await self._report(node, "True")
        kept = {"finalizers": ["bed/provisioned"]}
        await self._make(BED_MACHINES, place, name, {"providerID": f"bed://{node}"}, kept, status=PROVISIONED)
        spec = {
            "clusterName": CLUSTER,
            "bootstrap": {"dataSecretName": "none"},
            "infrastructureRef": _reference(BED_MACHINES, name),
        }
        metadata = {"labels": labels, "annotations": annotations}
        await self._make(MACHINES, place, name, spec, metadata)

    async def has_nodes(self, row: Row) -> bool:
        """Whether the manager has found the Nodes of its Machines, but for those that it does not look after."""
        return all(
            [
                bool((await self._machine(row, name)).get("status", {}).get("nodeRef"))
                for name, state in row.machines.items()
                if "absent" not in state and row.annotations.get(name) != "cluster.x-k8s.io/paused"
            ]
        )

    async def sicken(self, row: Row) -> None:
        """From here on each Machine is as the row says."""
        place = self._place(row)
        for name, state in row.machines.items():
            machine, states = _machine_name(row, name), state.split(", ")
            node = f"{place}-{machine}"
            if "silent" in states:
                await self._report(node, "Unknown")
            if "just silent" in states:
                await self._report(node, "Unknown", render_moment(datetime.now(timezone.utc)))
            if "gone" in states:
                await self._client.delete(NODES, node)
            if "broken" in states:
                await self._break(place, machine)
            if "condemned" in states:
                patch = {"metadata": Condemned(1, datetime.now(timezone.utc)).render()}
                await self._client.patch(MACHINES, machine, patch, namespace=place)
            if "deleted" in states:
                await self._client.delete(MACHINES, machine, namespace=place)
            if "served" in states:
                uid = (await self._machine(row, name))["metadata"]["uid"]
                owner = {"apiVersion": MACHINES.api_version, "kind": "Machine", "name": machine, "uid": uid}
                await self._make(OBJECTS, place, machine, {}, {"ownerReferences": [owner]})

    async def _break(self, place: str, machine: str) -> None:
        """A condition that the manager does not keep."""
        found = await self._client.get(MACHINES, machine, namespace=place)
        told = {"type": "DiskFailing", "status": "True", "reason": "Smart", "message": ""}
        change = {
            "metadata": {"resourceVersion": found["metadata"]["resourceVersion"]},
            "status": {"conditions": [*found["status"]["conditions"], {**told, "lastTransitionTime": LONG_AGO}]},
        }
        try:
            await self._client.patch(MACHINES, machine, change, namespace=place, subresource="status")
        except ApiError as error:
            if error.reason != "Conflict":
                raise
            await self._break(place, machine)

    async def pause(self) -> None:
        place = f"{self._name}-{PAUSED}"
        await self._client.patch(CLUSTERS, CLUSTER, {"spec": {"paused": True}}, namespace=place)

    async def check(self, row: Row) -> None:
        spec = spec_of(V1BETA2, *row.conditions, selector={"matchLabels": {ROW: row.name}}, **row.spec)
        annotations = {"cluster.x-k8s.io/paused": ""} if row.paused else {}
        await self._make(HEALTH_CHECKS, self._place(row), _check_name(row), spec, {"annotations": annotations})

    async def recover(self, row: Row) -> None:
        await self._report(f"{self._place(row)}-{_machine_name(row, row.then)}", "True")

    async def _report(self, node: str, ready: str, since: str = LONG_AGO) -> None:
        condition = {"type": "Ready", "status": ready, "reason": "Kubelet", "lastTransitionTime": since}
        await self._client.patch(NODES, node, {"status": {"conditions": [condition]}}, subresource="status")

    async def _make(
        self, kind: Resource, place: str, name: str, spec: Json, metadata: Json | None = None, **more: Json
    ) -> None:
        body = {"metadata": {"name": name, **(metadata or {})}, "spec": spec, **more}
        await self._client.create(kind, body, namespace=place)

    async def _machine(self, row: Row, name: str) -> Json:
        return await self._client.get(MACHINES, _machine_name(row, name), namespace=self._place(row))

    # Looking.

    async def seen(self, row: Row) -> Seen:
        place = self._place(row)
        check = await self._client.get(HEALTH_CHECKS, _check_name(row), namespace=place)
        cluster = await self._client.get(CLUSTERS, CLUSTER, namespace=place)
        machines = {_machine_name(row, name): await self._machine(row, name) for name in row.machines}
        objects = (await self._client.list(OBJECTS, namespace=place)).items
        events = (await self._client.list(EVENTS, namespace=place)).items
        about = {_check_name(row), *machines}
        found = {
            "check": {**_metadata(check), "status": _status(check)},
            "machines": {name: _conditions(each, TOLD) for name, each in machines.items()},
            "objects": {
                each["metadata"]["name"]: {**_metadata(each), "spec": each.get("spec")}
                for each in objects
                if each["metadata"]["name"] in about
            },
            "events": _told(
                [
                    each
                    for each in events
                    if each["involvedObject"]["name"] in about and each["source"]["component"] == self._source
                ]
            ),
        }
        text = json.dumps(found)
        for each in (cluster, *machines.values()):
            text = text.replace(each["metadata"]["uid"], f"uid of {each['metadata']['name']}")
        names = {self._cluster.server: "SERVER", place: "PLACE", _check_name(row): "CHECK", _machine_name(row, ""): ""}
        for name, instead in names.items():
            text = text.replace(name, instead)
        return dict(_flat(json.loads(text)))


def _check_name(row: Row) -> str:
    return f"check-of-{row.name}"


def _machine_name(row: Row, name: str) -> str:
    return f"machine-of-{row.name}-{name}"


def _reference(kind: Resource, name: str) -> Json:
    return {"apiGroup": kind.group, "kind": kind.kind, "name": name}


def _metadata(found: Json) -> Json:
    metadata = found["metadata"]
    owners = {each["kind"]: each for each in metadata.get("ownerReferences") or ()}
    return {"labels": metadata.get("labels"), "annotations": metadata.get("annotations"), "owners": owners}


def _status(check: Json) -> Json:
    status = check.get("status") or {}
    counts = ("expectedMachines", "currentHealthy", "remediationsAllowed", "observedGeneration", "targets")
    return {**{each: status.get(each) for each in counts}, **_conditions(check)}


def _conditions(found: Json, types: tuple[str, ...] = ()) -> Json:
    """In both lists, by type; all types, unless some are named."""
    status = found.get("status") or {}
    older = ((status.get("deprecated") or {}).get("v1beta1") or {}).get("conditions") or ()
    told = ("status", "reason", "message", "severity")
    return {
        name: {
            each["type"]: {key: each.get(key) or None for key in told}
            for each in conditions
            if not types or each["type"] in types
        }
        for name, conditions in (("newer", status.get("conditions") or ()), ("older", older))
    }


def _told(events: list[Json]) -> Json:
    """The sentences by what they are about, their type and reason."""
    found: dict[str, set[str]] = {}
    for each in events:
        about = each["involvedObject"]
        found.setdefault(f"{about['kind']} {about['name']} {each['type']} {each['reason']}", set()).add(each["message"])
    return {key: sorted(sentences) for key, sentences in found.items()}


def _flat(value: object, path: str = "") -> list[tuple[str, object]]:
    """Each value that is not empty, by its path."""
    if isinstance(value, dict):
        return [each for key, inner in value.items() for each in _flat(inner, f"{path}.{key}" if path else key)]
    return [] if value in (None, "", []) else [(path, value)]


def differences(theirs: Seen, ours: Seen) -> dict[str, tuple[object, object]]:
    """By path, theirs and ours; None where there is no value."""
    paths = sorted({*theirs, *ours})
    return {path: (theirs.get(path), ours.get(path)) for path in paths if theirs.get(path) != ours.get(path)}


async def until(look: Callable[[], Awaitable[object]], what: str, within_seconds: float = 120) -> None:
    """As `eventually` does, while the loop goes on."""
    began_at, stalled_before = time.monotonic(), stalled_seconds()
    while not await look():
        if counted(time.monotonic() - began_at, stalled_seconds() - stalled_before) > within_seconds:
            raise TimeoutError(f"waited {within_seconds:g} s in vain until {what}")
        await asyncio.sleep(0.1)
