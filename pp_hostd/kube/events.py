"""Kubernetes Events about machines and Nodes: for people, never waited for by a step, and lost without harm."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import datetime
from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import EVENTS, Resource
from pp_hostd.model.moment import render_moment

SOURCE = "pp-leader"
MAX_OPEN = 16
"""So many are under way at most; others wait for their turn."""
MAX_WAITING = 1000
"""So many wait at most; what comes on top is dropped."""
MAX_CHARACTERS = 1024
_CLUSTER_WIDE = "default"
"""The namespace for Events about objects that have none."""


@frozen
class About:
    """The object that an Event speaks of; `namespace` is None for a Node."""

    kind: Resource
    namespace: str | None
    name: str
    uid: str

    def reference(self) -> Json:
        identity = {"name": self.name, "uid": self.uid, **({"namespace": self.namespace} if self.namespace else {})}
        return {"apiVersion": self.kind.api_version, "kind": self.kind.kind, **identity}


class Events:
    """`lost` counts the Events that could not be written."""

    def __init__(self, client: ApiClient, wallclock: Callable[[], datetime], source: str = SOURCE) -> None:
        self.lost = 0
        self._client, self._wallclock, self._source = client, wallclock, source
        self._turn, self._waiting = asyncio.Semaphore(MAX_OPEN), 0

    async def event(self, about: About, reason: str, sentence: str, *, warning: bool) -> None:
        """Tell it; the same Event once more only counts up. Nothing is raised."""
        if self._waiting >= MAX_WAITING:
            self.lost += 1
            return
        event = event_about(about, reason, sentence, warning, self._wallclock(), self._source)
        self._waiting += 1
        try:
            async with self._turn:
                await self._tell(event, about.namespace)
        except ApiError:
            self.lost += 1
        finally:
            self._waiting -= 1

    async def _tell(self, event: Json, namespace: str | None) -> None:
        where, name = namespace or _CLUSTER_WIDE, event["metadata"]["name"]
        try:
            await self._client.create(EVENTS, event, namespace=where)
        except ApiError as error:
            if error.outcome is not Outcome.CONFLICT:
                raise
            told = await self._client.get(EVENTS, name, namespace=where)
            again = {"count": int(told.get("count") or 1) + 1, "lastTimestamp": event["lastTimestamp"]}
            await self._client.patch(EVENTS, name, again, namespace=where)


def event_about(about: About, reason: str, sentence: str, warning: bool, now: datetime, source: str = SOURCE) -> Json:
    """Its name follows from what it says, so that a repetition finds it. Its message begins with its subject, for those
    who see messages alone."""
    subject = about.kind.describe(about.namespace, about.name)
    sentence = sentence if sentence.startswith(subject) else f"{subject}: {sentence}"
    said = "\n".join((about.uid, reason, sentence))
    moment = render_moment(now.replace(microsecond=0))
    return {
        "metadata": {"name": f"{source}.{hashlib.sha256(said.encode()).hexdigest()[:32]}"},
        "involvedObject": about.reference(),
        "reason": reason,
        "message": sentence[:MAX_CHARACTERS],
        "type": "Warning" if warning else "Normal",
        "source": {"component": source},
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
