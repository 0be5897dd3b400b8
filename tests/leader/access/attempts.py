"""Requests that tables of attempts are made of, and a cluster in which they are carried out as anybody."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import requests

from pp_hostd.embedded.store import merge_patch
from pp_hostd.kube.client import MERGE_PATCH, Json
from pp_hostd.kube.resources import Resource
from tests.harness.cluster import Cluster
from tests.harness.eventually import HANGS_SECONDS

METHODS = {"create": "POST", "update": "PUT", "patch": "PATCH", "delete": "DELETE", "deletecollection": "DELETE"}
NAMELESS = ("list", "watch", "create", "deletecollection")
ADMIN = ("admin", ("system:masters",))


@dataclass(frozen=True)
class Attempt:
    """One request, by its verb in RBAC. `body` is the new object, or what of an old one changes (update, patch)."""

    verb: str
    kind: Resource
    name: str
    body: Any = None
    namespace: str | None = None
    subresource: str | None = None
    selector: str = ""

    def __str__(self) -> str:
        what = f"{self.kind.plural}.{self.kind.group}".rstrip(".")
        place = "/".join(filter(None, (self.namespace, self.name, self.subresource)))
        return f"{self.verb} {what} {place} {_brief(self.body)}".strip()

    @property
    def path(self) -> str:
        name = None if self.verb in NAMELESS else self.name
        return self.kind.path(self.namespace, name, self.subresource)


def _brief(body: Any) -> str:
    """The innermost keys that a body names."""
    if not isinstance(body, dict) or not body:
        return ""
    return ",".join(_brief(value) or key for key, value in body.items() if key != "name")


class World:
    """A cluster, and sessions of whoever speaks to it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self._closing = contextlib.ExitStack()
        self._session = lru_cache(maxsize=None)(self._open)

    def close(self) -> None:
        self._closing.close()

    def make(self, attempt: Attempt, who: tuple[str, Sequence[str]] = ADMIN, *, dry: bool = False) -> requests.Response:
        """Carry it out; with `dry` all but the last step, so that nothing changes."""
        query = {"dryRun": "All"} if dry and attempt.verb in METHODS else {}
        query.update({"watch": "true"} if attempt.verb == "watch" else {})
        query.update({"fieldSelector": attempt.selector} if attempt.selector else {})
        body = self._body(attempt)
        reply = self._session(*who).request(
            METHODS.get(attempt.verb, "GET"),
            self.cluster.server + attempt.path,
            params=query,
            json=body,
            headers={"Content-Type": MERGE_PATCH if attempt.verb == "patch" else "application/json"},
            stream=True,
            timeout=HANGS_SECONDS,
        )
        with reply:  # the head of an answer is enough of a watch
            if attempt.verb != "watch":
                reply.content  # noqa: B018
        return reply

    def read(self, kind: Resource, name: str, namespace: str | None = None) -> Json:
        reply = self.make(Attempt("get", kind, name, namespace=namespace))
        assert reply.status_code == 200, reply.text
        found: Json = reply.json()
        return found

    def create(self, kind: Resource, name: str, body: Json, namespace: str | None = None) -> None:
        reply = self.make(Attempt("create", kind, name, body, namespace))
        assert reply.status_code in (201, 409), reply.text

    def _body(self, attempt: Attempt) -> Any:
        if attempt.verb == "create":
            return {"apiVersion": attempt.kind.api_version, "kind": attempt.kind.kind, **attempt.body}
        if attempt.verb == "update":
            return merge_patch(self.read(attempt.kind, attempt.name, attempt.namespace), attempt.body)
        return attempt.body

    def _open(self, user: str, groups: Sequence[str]) -> requests.Session:
        session = self._closing.enter_context(requests.Session())
        session.trust_env = False
        session.verify = str(self.cluster.ca_file)
        issued = self.cluster.authority.issue(user, groups)
        pair = self.cluster.directory / f"{abs(hash((user, tuple(groups))))}.pem"
        pair.write_bytes(issued.cert_pem + issued.key_pem)
        session.cert = str(pair)
        return session
