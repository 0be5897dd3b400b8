"""Remediation objects by power, in today's form and in the proposals', on any API."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import METAL3_REMEDIATIONS, PROPOSED_REMEDIATIONS, Resource
from tests.agent.objects import until_found
from tests.harness.published import BESIDE
from tests.leader.power.clusters import Place
from tests.leader.power.site import PLACE, Site

TODAY, PROPOSED = "today", "proposed"
KINDS = {TODAY: METAL3_REMEDIATIONS, PROPOSED: PROPOSED_REMEDIATIONS}
WAITING = {TODAY: "Waiting", PROPOSED: "power-on"}
RUNNING = {TODAY: "Running", PROPOSED: "power-off"}
DELETING = {TODAY: "Deleting machine", PROPOSED: "deleting-machine"}
SPECS: dict[str, Json] = {
    TODAY: {"strategy": {"type": "Reboot", "retryLimit": 1, "timeout": "1s"}},
    PROPOSED: {
        "strategy": "escalate",
        "deleteAfterRetries": 1,
        "powerOnTimeoutSeconds": 1,
        "powerOffTimeoutSeconds": 60,
    },
}
PUBLISHED_SPEC = {"strategy": {"type": "Reboot", "retryLimit": 1, "timeoutSeconds": 100}}


class Objects:
    """Of one form, in a cluster with Cluster API's Machines; each bears the name of its Machine."""

    def __init__(self, site: Site, place: Place, form: str) -> None:
        self.site, self.form, self.place = site, form, place
        newest = form == TODAY and place.newest and BESIDE.is_dir()
        self.kind: Resource = replace(KINDS[form], version="v1beta2") if newest else KINDS[form]
        self.spec = PUBLISHED_SPEC if newest else SPECS[form]

    async def make(self, name: str) -> None:
        machine = await self.site.find(self.site.kind, name)
        assert machine is not None
        owner = {"apiVersion": self.site.kind.api_version, "kind": "Machine", "name": name}
        metadata = {"name": name, "ownerReferences": [{**owner, "uid": machine["metadata"]["uid"]}]}
        await self.site.client.create(self.kind, {"metadata": metadata, "spec": self.spec}, namespace=PLACE)

    async def until(self, name: str, **status: Any) -> Json:
        """Until its status holds these; the object."""

        async def so() -> Json | None:
            found = await self.site.find(self.kind, name)
            return found if found is not None and status.items() <= found.get("status", {}).items() else None

        found = await until_found(so, f"{name} has {status}")
        assert found is not None
        return found

    async def until_let_go(self, name: str) -> None:
        await until_found(lambda: self.is_let_go(name), f"{name} has no finalizer")

    async def is_let_go(self, name: str) -> bool:
        found = await self.site.find(self.kind, name)
        return found is None or not found["metadata"].get("finalizers")
