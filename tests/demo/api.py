"""The cluster as its administrator sees it: creates and changes objects, and hears of every change at once."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import requests

from pp_hostd.kube.resources import Resource
from tests.demo.narrator import now
from tests.harness.cluster import Cluster, token_of

Json = dict[str, Any]


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

    def create(self, kind: Resource, body: Json, namespace: str | None = None) -> None:
        whole = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        self._session.post(self._url(kind.path(namespace)), json=whole, timeout=5).raise_for_status()

    def get(self, path: str) -> Json:
        found: Json = self._session.get(self._url(path), timeout=5).json()
        return found

    def patch(self, path: str, patch: Json) -> None:
        headers = {"Content-Type": "application/merge-patch+json"}
        self._session.patch(self._url(path), data=json.dumps(patch), headers=headers, timeout=5).raise_for_status()

    def watch(self, *kinds: Resource) -> None:
        for kind in kinds:
            threading.Thread(target=self._read, args=(kind,), daemon=True).start()

    def changes(self) -> Iterator[Change]:
        """Those since the last call."""
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._changes.get_nowait()

    def close(self) -> None:
        self._session.close()

    def _read(self, kind: Resource) -> None:
        with contextlib.suppress(requests.RequestException), self._connect() as session:  # the cluster is gone
            for line in session.get(self._url(f"{kind.path()}?watch=1"), stream=True).iter_lines():
                event = json.loads(line)
                self._changes.put(Change(now(), event["type"], kind, event["object"]))

    def _connect(self) -> requests.Session:
        session = requests.Session()
        session.trust_env = False
        session.verify = str(self._cluster.ca_file)
        session.headers["Authorization"] = f"Bearer {token_of('admin')}"
        return session

    def _url(self, path: str) -> str:
        return self._cluster.server + path
