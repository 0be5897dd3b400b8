"""The client of the Kubernetes API: every call ends by its deadline, with an object or with a typed outcome."""

from __future__ import annotations

import json
from functools import lru_cache, partial
from typing import Any, Callable
from urllib.parse import urlencode

from pp_hostd.frozen import frozen
from pp_hostd.kube.certificate import Certificate
from pp_hostd.kube.connection import Connection
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.outcome import ApiError, Garbage, Outcome
from pp_hostd.kube.resources import PODS, Resource
from pp_hostd.kube.transport import Request, Transport

Json = dict[str, Any]
Keep = Callable[[Json], Any]
"""A function that takes a whole object and returns the part to hold."""

REPLY_LIMIT_BYTES = 8 * 1024 * 1024
PAGE_SIZE = 100  # a page is held as JSON, many times its size; of Nodes with all their images it is 1 or 2 MB
MAX_PAGES = 1000
MERGE_PATCH = "application/merge-patch+json"


@frozen
class Page:
    """A part of a list; `continue_token` is empty on the last one."""

    items: list[Json]
    resource_version: str
    continue_token: str
    remaining: int | None


@frozen
class Listing:
    """A whole list of what was kept of each object, and the resourceVersion from which a watch goes on."""

    items: list[Any]
    resource_version: str


def whole(api_object: Json) -> Json:
    """Keeps all of an object."""
    return api_object


class ApiClient:
    """The few typed calls that pp-hostd needs. Reads are linearizable: they name no resourceVersion (rule 1)."""

    def __init__(self, kubeconfig: Kubeconfig, *, deadline_seconds: float) -> None:
        self.deadline_seconds = deadline_seconds
        self._transport = Transport(kubeconfig)

    def close(self) -> None:
        """Drop the kept connections. The client can be used again."""
        self._transport.close()

    def use(self, kubeconfig: Kubeconfig) -> None:
        """Take another kubeconfig for the next exchange; KubeconfigError, and no change, if it can't be used."""
        self._transport.use(kubeconfig)

    @property
    def certificate(self) -> Certificate | None:
        """The client certificate in use; None without one."""
        return self._transport.certificate

    @property
    def requests(self) -> int:
        """How many were made so far."""
        return self._transport.requests

    @property
    def trouble(self) -> str:
        """The reason why rotated credentials are not in use; empty if none."""
        return self._transport.trouble

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        deadline_seconds: float | None = None,
        may_rest: bool = False,
        every_server: bool = False,
    ) -> Json:
        """Read one object, by a deadline of its own or the client's. One that may rest makes no connection while the
        last exchanges brought no answer; one of every server is refused, or missing, if no server says otherwise."""
        request = _reading(resource, namespace, name, may_rest, every_server)
        return await self._send(request, partial(_expect, resource, namespace, name), deadline_seconds)

    async def list(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = PAGE_SIZE,
        keep: Keep = whole,
    ) -> Listing:
        """Read all objects that match, page by page. The pages show one state of the cluster.

        Of thousands of objects no more is held than what `keep` makes of each.
        """
        items: list[Any] = []
        token = ""
        for _ in range(MAX_PAGES):
            page = await self.page(
                resource,
                namespace=namespace,
                label_selector=label_selector,
                field_selector=field_selector,
                limit=page_size,
                continue_token=token,
            )
            items += map(keep, page.items)
            token = page.continue_token
            if not token:
                return Listing(items, page.resource_version)
        raise ApiError(Outcome.GARBAGE, f"listing {resource.describe(namespace)}: garbage (the list does not end)")

    async def page(
        self,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str = "",
        field_selector: str = "",
        limit: int,
        continue_token: str = "",
    ) -> Page:
        """Read at most `limit` objects."""
        what = f"listing {resource.describe(namespace)}"
        query = selection(label_selector, field_selector)
        query.update({"limit": str(limit), **({"continue": continue_token} if continue_token else {})})
        target = f"{resource.path(namespace)}?{urlencode(query)}"
        return _page(resource, await self._call(what, "GET", target, check=partial(_expect_list, resource)))

    async def create(self, resource: Resource, body: Json, *, namespace: str | None = None) -> Json:
        """Create an object. A name that is taken is a conflict with reason AlreadyExists."""
        name = _metadata(body).get("name") or _metadata(body).get("generateName")
        what = f"creating {resource.describe(namespace, str(name))}"
        check = partial(_expect, resource, namespace, None)
        return await self._call(what, "POST", resource.path(namespace), _typed(body, resource), check=check)

    async def update(
        self, resource: Resource, body: Json, *, namespace: str | None = None, subresource: str | None = None
    ) -> Json:
        """Replace an object; with metadata.resourceVersion set, only if it is still that one."""
        name = str(_metadata(body).get("name"))
        what = f"updating {resource.describe(namespace, name)}"
        path, check = resource.path(namespace, name, subresource), partial(_expect, resource, namespace, name)
        return await self._call(what, "PUT", path, _typed(body, resource), check=check)

    async def patch(
        self,
        resource: Resource,
        name: str,
        patch: Json,
        *,
        namespace: str | None = None,
        subresource: str | None = None,
    ) -> Json:
        """Merge-patch an object; with metadata.resourceVersion in the patch, only if it is still that one."""
        what = f"patching {resource.describe(namespace, name)}"
        path, check = resource.path(namespace, name, subresource), partial(_expect, resource, namespace, name)
        return await self._call(what, "PATCH", path, patch, content_type=MERGE_PATCH, check=check)

    async def delete(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        uid: str | None = None,
        resource_version: str | None = None,
        grace_period_seconds: int | None = None,
        propagation: str | None = None,
    ) -> Json:
        """Delete an object, only if uid and resourceVersion are still those given. Finalizers may delay it."""
        conditions = _given(uid=uid, resourceVersion=resource_version)
        options = _given(
            preconditions=conditions or None, gracePeriodSeconds=grace_period_seconds, propagationPolicy=propagation
        )
        what = f"deleting {resource.describe(namespace, name)}"
        body = {"apiVersion": "v1", "kind": "DeleteOptions", **options}
        return await self._call(what, "DELETE", resource.path(namespace, name), body)

    async def evict(self, name: str, /, *, namespace: str, uid: str) -> Json:
        """Have the pod of this uid deleted, with its grace. It is THROTTLED where a disruption budget objects."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        what = f"evicting {PODS.describe(namespace, name)}"
        return await self._call(what, "POST", PODS.path(namespace, name, "eviction"), body)

    async def request(
        self, method: str, target: str, body: bytes | Json | None = None, content_type: str = "application/json"
    ) -> Json:
        """Any request at all, for what has no call of its own."""
        return await self._call(f"{method} {target}", method, target, body, content_type)

    async def open_watch(self, resource: Resource, namespace: str | None, query: dict[str, str]) -> Connection:
        """A connection on which the stream of a watch has begun. The watch closes it."""
        request = Request(
            f"watching {resource.describe(namespace)}", "GET", f"{resource.path(namespace)}?{urlencode(query)}"
        )
        return await self._transport.open(
            request, deadline_seconds=self.deadline_seconds, limit_bytes=REPLY_LIMIT_BYTES
        )

    async def _call(
        self,
        what: str,
        method: str,
        target: str,
        body: bytes | Json | None = None,
        content_type: str = "application/json",
        check: Callable[[Json], None] | None = None,
    ) -> Json:
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        return await self._send(Request(what, method, target, data, content_type), check)

    async def _send(
        self, request: Request, check: Callable[[Json], None] | None, deadline_seconds: float | None = None
    ) -> Json:
        def accept(data: bytes) -> Json:
            reply = decode(data)
            if check is not None:
                check(reply)
            return reply

        return await self._transport.exchange(
            request,
            deadline_seconds=self.deadline_seconds if deadline_seconds is None else deadline_seconds,
            limit_bytes=REPLY_LIMIT_BYTES,
            accept=accept,
        )


@lru_cache(maxsize=8)
def _reading(resource: Resource, namespace: str | None, name: str, may_rest: bool, every_server: bool) -> Request:
    """Kept, since an agent reads the same few objects as long as it lives."""
    what, path = f"reading {resource.describe(namespace, name)}", resource.path(namespace, name)
    return Request(what, "GET", path, may_rest=may_rest, every_server=every_server)


def selection(label_selector: str, field_selector: str) -> dict[str, str]:
    """The query parameters that choose objects."""
    chosen = {"labelSelector": label_selector, "fieldSelector": field_selector}
    return {key: value for key, value in chosen.items() if value}


def decode(data: bytes | bytearray) -> Json:
    """A JSON object, or Garbage."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        raise Garbage("the reply is not JSON") from None
    if not isinstance(value, dict):
        raise Garbage("the reply is JSON, but not an object")
    return value


def _expect(resource: Resource, namespace: str | None, name: str | None, reply: Json) -> None:
    """Garbage unless the reply is of the requested kind and place: a lying server proves nothing."""
    _expect_kind(reply, resource.api_version, resource.kind)
    metadata = _metadata(reply)
    found_in, found = metadata.get("namespace"), metadata.get("name")
    if found_in != namespace or (name is not None and found != name):
        wanted = resource.describe(namespace, str(found if name is None else name))
        raise Garbage(f"the reply is {resource.describe(found_in, str(found))}, not {wanted}")


def _expect_list(resource: Resource, reply: Json) -> None:
    _expect_kind(reply, resource.api_version, f"{resource.kind}List")
    items = reply.get("items")
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Garbage(f"the reply is a {resource.kind}List whose items are not a list of objects")


def _expect_kind(reply: Json, api_version: str, kind: str) -> None:
    found = f"{reply.get('apiVersion')} {reply.get('kind')}"
    if found != f"{api_version} {kind}":
        raise Garbage(f"the reply is {found}, not {api_version} {kind}")


def _page(resource: Resource, reply: Json) -> Page:
    items, metadata = reply["items"], _metadata(reply)
    for item in items:  # the API leaves these out of lists
        item.update(apiVersion=resource.api_version, kind=resource.kind)
    remaining = metadata.get("remainingItemCount")
    return Page(
        items,
        str(metadata.get("resourceVersion") or ""),
        str(metadata.get("continue") or ""),
        remaining if isinstance(remaining, int) else None,
    )


def _metadata(body: Json) -> Json:
    metadata = body.get("metadata")
    return metadata if isinstance(metadata, dict) else {}


def _typed(body: Json, resource: Resource) -> Json:
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


def _given(**values: Any) -> Json:
    return {key: value for key, value in values.items() if value is not None}
