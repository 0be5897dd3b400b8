"""Each call that the agent makes to the API, really made; the one write as a dry run, which changes nothing."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import Callable, TypeVar

from pp_hostd.agent.doctor.facts import Attempt, NotKnown
from pp_hostd.agent.sense.boot import boot_id
from pp_hostd.kube.client import MERGE_PATCH, ApiClient, Json
from pp_hostd.kube.outcome import ApiError, Outcome, is_missing, is_unserved
from pp_hostd.kube.resources import CONFIG_MAPS, MACHINES, NODES, Resource
from pp_hostd.model.keys import AGENT, CONDEMNED, CONTROL, NAMESPACE, ROSTER
from pp_hostd.model.machine import machine_of_node
from pp_hostd.model.promise import Withdrawn
from pp_hostd.model.record import Unreadable

T = TypeVar("T")

NO_ANSWER = (Outcome.UNREACHABLE, Outcome.TIMED_OUT, Outcome.TLS_REFUSED)
"""Then nothing else is tried: it would only take long to say the same."""
WRITES = 3
"""Others write to a Node too, so a conflict is no answer yet."""
WATCH = {"watch": "true", "timeoutSeconds": "1"}


class Calls:
    """`attempts` is what came of each; `roster` the ConfigMap, if it was found."""

    def __init__(self, client: ApiClient, machines: str, node: str) -> None:
        self.attempts: list[Attempt] = []
        self.roster: Json | None = None
        self._client, self._machines, self._node = client, machines, node
        self._unreachable = ""

    async def make(self) -> None:
        kind = MACHINES[self._machines][0].plural
        node = await self._try("api-read-node", f"get nodes {self._node}", self._read_node)
        if self._machines != "node":
            await self._try("api-read-machine", f"get {kind}", lambda: self._read_machine(node))
        await self._try("api-list-condemned", f"list {kind} (the condemned)", self._list_condemned)
        await self._try("api-watch-condemned", f"watch {kind} (the condemned)", self._watch_condemned)
        await self._try("api-list-roster", f"list configmaps {NAMESPACE}/{ROSTER}", self._list_roster)
        await self._try("api-watch-roster", f"watch configmaps {NAMESPACE}/{ROSTER}", self._watch_roster)
        await self._try("api-read-orders", f"get configmaps {NAMESPACE}/{CONTROL}", self._read_orders)
        await self._try("api-write-node", f"patch nodes {self._node} (dry run)", lambda: self._write_node(node))

    async def _try(self, check: str, right: str, call: Callable[[], Awaitable[T]]) -> T | None:
        found: T | None = None
        error: ApiError | NotKnown | None = None
        began_at = time.monotonic()
        try:
            if self._unreachable:
                raise LookupError(f"the API can't be reached ({self._unreachable})")
            found = await call()
        except ApiError as failed:
            error = failed
            self._unreachable = failed.outcome.value if failed.outcome in NO_ANSWER else ""
        except LookupError as lacking:
            error = NotKnown(str(lacking.args[0]), "See the lines above.")
        self.attempts.append(Attempt(check, right, error, time.monotonic() - began_at))
        return found

    async def _read_node(self) -> Json:
        return await self._client.get(NODES, self._node)

    async def _read_machine(self, node: Json | None) -> Json:
        subject = "" if node is None else machine_of_node(node, self._machines)
        if isinstance(subject, Unreadable) or not subject:
            raise LookupError(str(subject) or "the Node that names it could not be read")
        namespace, _, name = subject.rpartition("/")
        return await self._of_any_version(lambda kind: self._client.get(kind, name, namespace=namespace or None))

    async def _list_condemned(self) -> object:
        return await self._of_any_version(lambda kind: self._client.page(kind, label_selector=CONDEMNED, limit=1))

    async def _watch_condemned(self) -> None:
        await self._of_any_version(lambda kind: self._watch(kind, None, {"labelSelector": CONDEMNED}))

    async def _list_roster(self) -> None:
        selector = f"metadata.name={ROSTER}"
        page = await self._client.page(CONFIG_MAPS, namespace=NAMESPACE, field_selector=selector, limit=1)
        self.roster = page.items[0] if page.items else None

    async def _watch_roster(self) -> None:
        await self._watch(CONFIG_MAPS, NAMESPACE, {"fieldSelector": f"metadata.name={ROSTER}"})

    async def _watch(self, kind: Resource, namespace: str | None, selector: dict[str, str]) -> None:
        connection = await self._client.open_watch(kind, namespace, {**WATCH, **selector})
        connection.close()

    async def _read_orders(self) -> None:
        try:
            await self._client.get(CONFIG_MAPS, CONTROL, namespace=NAMESPACE)
        except ApiError as error:
            if not is_missing(error):  # who may be told that there are none has the right
                raise

    async def _write_node(self, node: Json | None) -> None:
        """The annotation as it stands, or as an agent that promises nothing would write it."""
        for left in reversed(range(WRITES)):
            if node is None:
                raise LookupError("the Node could not be read")
            metadata = node["metadata"]
            present = (metadata.get("annotations") or {}).get(AGENT) or Withdrawn(boot_id()).render()
            condition = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
            patch = {"metadata": {**condition, "annotations": {AGENT: present}}}
            try:
                await self._client.request("PATCH", f"{NODES.path(name=self._node)}?dryRun=All", patch, MERGE_PATCH)
            except ApiError as error:
                if error.outcome is not Outcome.CONFLICT or not left:
                    raise
                node = await self._read_node()
            else:
                return

    async def _of_any_version(self, call: Callable[[Resource], Awaitable[T]]) -> T:
        *newer, oldest = MACHINES[self._machines]
        for kind in newer:
            try:
                return await call(kind)
            except ApiError as error:
                if not is_unserved(error):
                    raise
        return await call(oldest)
