"""One HTTP request to the store and back: who asks, for what, may they, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from pp_hostd.embedded import nodes, options, routes
from pp_hostd.embedded.access import Access
from pp_hostd.embedded.kinds import Kind, Object
from pp_hostd.embedded.merge_patch import merge_patch
from pp_hostd.embedded.options import Parameters
from pp_hostd.embedded.routes import Route
from pp_hostd.embedded.rules import Action, User
from pp_hostd.embedded.status import StatusError, bad_request, method_not_allowed, no_such_path
from pp_hostd.embedded.store import Store
from pp_hostd.embedded.subscription import Subscription
from pp_hostd.kube.resources import NODES, Resource

_VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_NO_PAGE = (404, "404 page not found\n")
WATCH_SECONDS = 1800


class Request(NamedTuple):
    """A request as it was read from the network."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes
    certificate: Mapping[str, Any] | None


class Reply(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes
    content_type: str = "application/json"


class Stream(NamedTuple):
    """An answer that goes on: the events of a subscription, for some time."""

    resource: Resource
    subscription: Subscription
    bookmarks: bool
    timeout_seconds: int


class Api:
    """A store and who may do what with it."""

    def __init__(self, store: Store, access: Access) -> None:
        self.store = store
        self._access = access

    def answer(self, request: Request, wake: Callable[[], None]) -> Reply | Stream:
        """Carry the request out. `wake` is called when the stream, if it is one, has something new."""
        try:
            return self._answer(request, wake)
        except StatusError as refusal:
            return _json(refusal.code, refusal.body())

    def _answer(self, request: Request, wake: Callable[[], None]) -> Reply | Stream:
        url = urlsplit(request.target)
        user = self._access.user(request.headers.get("authorization", ""), request.certificate)
        route = routes.parse(url.path)
        if route is None:
            return self._page(user, url.path)
        parameters = dict(parse_qsl(url.query, keep_blank_values=True))
        action = _action(request.method, route, parameters)
        if "dryRun" in parameters and (action.verb, parameters["dryRun"]) != ("patch", "All"):
            raise bad_request("the embedded API makes dry runs (All) of patches only, and will not write instead")
        self._access.check(user, action)
        kind = route.kind
        if kind is None:
            if route.known_group:
                raise no_such_path()
            return _text(*_NO_PAGE)
        _check_method(kind, route, request.method)
        if action.verb in ("create", "update", "patch"):
            return self._write(kind, action, user, request, dry="dryRun" in parameters)
        return self._read_or_delete(kind.resource, action, parameters, request.body, wake)

    def _page(self, user: User, path: str) -> Reply:
        self._access.check_path(user, path)
        return _text(200, "ok") if path in ("/healthz", "/livez", "/readyz") else _text(*_NO_PAGE)

    def _read_or_delete(
        self, resource: Resource, action: Action, parameters: Parameters, body: bytes, wake: Callable[[], None]
    ) -> Reply | Stream:
        place = (resource, action.namespace, action.name)
        if action.verb == "get":
            return _json(200, self.store.get(*place))
        if action.verb == "delete":
            return _json(200, self.store.delete(*place, options.delete_options(parameters, body)))
        query = options.query(action.namespace, parameters)
        if action.verb == "list":
            return _json(200, self.store.list(resource, query))
        seconds = min(options.number(parameters, "timeoutSeconds") or WATCH_SECONDS, WATCH_SECONDS)
        bookmarks = options.truth(parameters, "allowWatchBookmarks")
        return Stream(resource, self.store.watch(resource, wake, query), bookmarks, seconds)

    def _write(self, kind: Kind, action: Action, user: User, request: Request, *, dry: bool) -> Reply:
        place = (kind.resource, action.namespace, action.name)
        wanted = options.MERGE_PATCH if action.verb == "patch" else options.JSON
        body = options.body(request.headers.get("content-type", ""), wanted, request.body)
        if user.node and isinstance(body, dict):
            old = self.store.get(*place) if action.name and kind.resource == NODES else {}
            nodes.check_write(user.node, action, old, merge_patch(old, body) if action.verb == "patch" else body)
        if action.verb == "create":
            return _json(201, self.store.create(kind.resource, action.namespace, body))
        if action.verb == "patch":
            return _json(200, self.store.patch(*place, body, action.subresource, dry=dry))
        return _json(200, self.store.update(*place, body, action.subresource))


def _json(status: int, body: Object) -> Reply:
    return Reply(status, json.dumps(body, separators=(",", ":")).encode())


def _text(status: int, body: str) -> Reply:
    return Reply(status, body.encode(), "text/plain")


def _action(method: str, route: Route, parameters: Parameters) -> Action:
    verb = _VERBS.get(method, method.lower())
    if verb == "get" and not route.name:
        verb = "watch" if options.truth(parameters, "watch") else "list"
    return Action(
        verb,
        route.group,
        route.plural,
        route.subresource,
        route.namespace,
        route.name,
        parameters.get("fieldSelector", ""),
    )


def _check_method(kind: Kind, route: Route, method: str) -> None:
    allowed = {"GET"}
    if route.name:
        allowed |= {"PUT", "PATCH"} if route.subresource else {"PUT", "PATCH", "DELETE"}
    elif route.namespace or not kind.resource.namespaced:
        allowed |= {"POST"}
    if method not in allowed:
        raise bad_request("name must be provided") if kind.custom and method in _VERBS else method_not_allowed()
