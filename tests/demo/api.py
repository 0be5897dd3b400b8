"""The cluster as its administrator sees it: creates and changes objects, and hears of every change at once."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import requests

from pp_hostd.kube.resources import Resource
from tests.demo.narrator import now
from tests.harness.cluster import Cluster, token_of
from tests.harness.eventually import HANGS_SECONDS

Json = dict[str, Any]
GONE = (404, 409)
"""Somebody else was faster: the next change tells."""
RECONNECT_SECONDS = 0.2


@dataclass(frozen=True)
class Change:
    """One event of a watch; `how` is ADDED, MODIFIED or DELETED."""

    at: float
    how: str
    kind: Resource
    object: Json


class Api:
    """One connection for calls, and one thread for each kind that is watched; they end with the cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._session = self._connect()
        self._changes: queue.SimpleQueue[Change] = queue.SimpleQueue()
        self._seen: dict[tuple[Resource, str], Json] = {}
        self._closed = False

    def create(self, kind: Resource, body: Json, namespace: str | None = None) -> None:
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        reply = self._session.post(self._url(kind.path(namespace)), json=whole, timeout=HANGS_SECONDS)
        reply.raise_for_status()
        self._seen[kind, body["metadata"]["name"]] = (
            reply.json()
        )  # the watch comes later, and must not cause another one

    def get(self, path: str) -> Json:
        found: Json = self._session.get(self._url(path), timeout=HANGS_SECONDS).json()
        return found

    def patch(self, path: str, patch: Json) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        url, data = self._url(path), json.dumps(patch)
        _checked(self._session.patch(url, data=data, headers=headers, timeout=HANGS_SECONDS))

    def delete(self, path: str, options: Json | None = None) -> None:
        _checked(self._session.delete(self._url(path), json=options, timeout=HANGS_SECONDS))

    def watch(self, *kinds: Resource) -> None:
        for kind in kinds:
            threading.Thread(target=self._read, args=(kind,), daemon=True).start()

    def changes(self) -> Iterator[Change]:
        """Those since the last call."""
        with contextlib.suppress(queue.Empty):
            while True:
                change = self._changes.get_nowait()
                key = (change.kind, change.object["metadata"]["name"])
                if change.how == "DELETED":
                    self._seen.pop(key, None)
                else:
                    self._seen[key] = change.object
                yield change

    def seen(self, kind: Resource, name: str) -> Json | None:
        """The object as the changes so far have it."""
        return self._seen.get((kind, name))

    def close(self) -> None:
        self._closed = True
        self._session.close()

    def _read(self, kind: Resource) -> None:
        version = ""
        with self._connect() as session:
            while not self._closed:
                with contextlib.suppress(requests.RequestException):
                    for event in self._events(session, kind, version):
                        version = event["object"]["metadata"].get(
                            "resourceVersion", ""
                        )  # an ERROR has none: begin again
                        if event["type"] not in ("BOOKMARK", "ERROR"):
                            self._changes.put(Change(now(), event["type"], kind, event["object"]))
                time.sleep(RECONNECT_SECONDS)

    def _events(self, session: requests.Session, kind: Resource, version: str) -> Iterator[Json]:
        url = self._url(f"{kind.path()}?watch=1&allowWatchBookmarks=1&resourceVersion={version}")
        for line in session.get(url, stream=True, timeout=(HANGS_SECONDS, None)).iter_lines():
            yield json.loads(line)

    def _connect(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.verify = str(self._cluster.ca_file)
        session.headers["Authorization"] = f"Bearer {token_of('admin')}"
        return session

    def _url(self, path: str) -> str:
        return self._cluster.server + path


def _checked(reply: requests.Response) -> None:
    if reply.status_code not in GONE:
        reply.raise_for_status()
