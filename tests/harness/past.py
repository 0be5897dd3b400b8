"""The objects that a cluster holds, and the writes to it since a moment."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import requests

from pp_hostd.kube.resources import Resource
from tests.harness.cluster import Cluster, token_of
from tests.harness.eventually import HANGS_SECONDS

Json = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """One write, as a watch reports it."""

    kind: Resource
    type: str
    object: Json

    @property
    def name(self) -> str:
        return str(self.object["metadata"]["name"])

    @property
    def revision(self) -> int:
        """Of the whole store: it orders the writes of all kinds."""
        return int(self.object["metadata"]["resourceVersion"])


class Past:
    """Begins now."""

    def __init__(self, cluster: Cluster, kinds: Iterable[Resource]) -> None:
        self._server, self._session = cluster.server, requests.Session()
        self._session.trust_env = False
        self._session.verify = str(cluster.ca_file)
        self._session.headers["Authorization"] = f"Bearer {token_of('admin')}"
        self._versions = {kind: str(self._get(kind).json()["metadata"]["resourceVersion"]) for kind in kinds}

    def there(self) -> list[tuple[Resource, Json]]:
        """Returns the objects that are there now, each with its kind."""
        return [(kind, item) for kind in self._versions for item in self._get(kind).json()["items"]]

    def changes(self) -> Iterator[Change]:
        """Up to now, and in the second that follows."""
        watches = [
            (kind, self._get(kind, watch="1", resourceVersion=version, timeoutSeconds="1"))
            for kind, version in self._versions.items()
        ]
        for kind, watch in watches:
            for line in watch.iter_lines():
                event = json.loads(line)
                yield Change(kind, event["type"], event["object"])

    def _get(self, kind: Resource, **query: str) -> requests.Response:
        reply = self._session.get(self._server + kind.path(), params=query, timeout=HANGS_SECONDS, stream=True)
        reply.raise_for_status()
        return reply

    def close(self) -> None:
        self._session.close()

    def __enter__(self) -> Past:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
