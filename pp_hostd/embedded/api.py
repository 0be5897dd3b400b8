"""One HTTP request to the store and back: who asks, for what, may they, and what is answered."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Callable, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from pp_hostd.embedded import access
from pp_hostd.embedded.access import Access, Action, User
from pp_hostd.embedded.discovery import discovered
from pp_hostd.embedded.history import Subscription
from pp_hostd.embedded.kinds import KINDS, Kind, Object
from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.paging import Query
from pp_hostd.embedded.status import Cause, StatusError, bad_request, invalid, method_not_allowed, no_such_path
from pp_hostd.embedded.store import Store, merge_patch
from pp_hostd.embedded.tables import table, wants_table
from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import NODES, PODS, Resource

Parameters = Mapping[str, str]

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
NO_APPLY = (
    "the embedded API has no server-side apply, since it knows no owners of fields. "
    "Use kubectl apply without --server-side; a real control plane (make controlplane) has all of Kubernetes"
)
NO_STRATEGY = (
    "the embedded API takes no strategic merge-patch with lists or directives, since it has no schemas. "
    "Use kubectl patch --type=merge, or kubectl replace"
)
NOT_SERVED = "the embedded API runs no containers, so it serves no {} of pods; it serves their status and eviction"
EVICTION = "eviction"
_POLICIES = (None, "Foreground", "Background", "Orphan")


def query_of(namespace: str, parameters: Parameters) -> Query:
    """Which objects a list or a watch is about."""
    return Query(
        namespace=namespace,
        label_selector=parameters.get("labelSelector", ""),
        field_selector=parameters.get("fieldSelector", ""),
        resource_version=parameters.get("resourceVersion", ""),
        resource_version_match=parameters.get("resourceVersionMatch", ""),
        limit=number(parameters, "limit") or 0,
        continue_token=parameters.get("continue", ""),
    )


def number(parameters: Parameters, name: str) -> int | None:
    """The number under that name, if there is something."""
    text = parameters.get(name)
    try:
        return int(text) if text else None
    except ValueError:
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def truth(parameters: Parameters, name: str) -> bool:
    """Whether the request wants that."""
    return parameters.get(name, "false").lower() not in ("false", "0")


def body_of(content_type: str, wanted: str, raw: bytes) -> Any:
    """A JSON body_of of the type that is wanted. Without a type it counts as plain JSON."""
    if (content_type or JSON).partition(";")[0].strip().lower() != wanted:
        message = f"the body of the request was in an unknown format - accepted media types include: {wanted}"
        raise StatusError(415, "UnsupportedMediaType", message)
    return _parsed(raw)


def _parsed(raw: bytes) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise bad_request(f"the body of the request is not JSON: {error}") from None


def delete_options(parameters: Parameters, raw: bytes) -> DeleteOptions:
    """The options of a deletion: from the body, or else from the query string."""
    read = _parsed(raw or b"{}")
    if not isinstance(read, dict) or read.get("kind", "DeleteOptions") != "DeleteOptions":
        raise bad_request("the body of a deletion must be DeleteOptions")
    conditions = read.get("preconditions") or {}
    grace = read.get("gracePeriodSeconds", number(parameters, "gracePeriodSeconds"))
    policy = read.get("propagationPolicy", parameters.get("propagationPolicy"))
    if not isinstance(conditions, dict) or not isinstance(grace, (int, type(None))):
        raise bad_request("DeleteOptions: preconditions must be an object, gracePeriodSeconds a number")
    if policy not in _POLICIES:
        why = f'Unsupported value: "{policy}": supported values: "Foreground", "Background", "Orphan"'
        cause = Cause("FieldValueNotSupported", "propagationPolicy", why)
        raise invalid("meta.k8s.io", "DeleteOptions", "", [cause])
    return DeleteOptions(conditions.get("uid"), conditions.get("resourceVersion"), grace, policy)


_BY_PATH = {(kind.resource.group, kind.resource.version, kind.resource.plural): kind for kind in KINDS.values()}
_SERVED = {(group, version) for group, version, _ in _BY_PATH}
_BUILT_IN_GROUPS = {kind.resource.group for kind in KINDS.values() if not kind.custom}


@frozen
class Route:
    """The meaning of a path under /api or /apis; the kind is None where the API serves nothing."""

    group: str
    version: str
    plural: str
    namespace: str = ""
    name: str = ""
    subresource: str = ""

    @property
    def kind(self) -> Kind | None:
        """The kind whose objects, or one of whose objects, this is the path of."""
        kind = _BY_PATH.get((self.group, self.version, self.plural))
        if kind is None:
            return None
        known = ("", *(["status"] if kind.has_status else []), *([EVICTION] if kind.resource == PODS else []))
        if self.subresource not in known:
            return None
        placed = bool(self.namespace) == kind.resource.namespaced
        return kind if placed or not (self.namespace or self.name) else None

    @property
    def known_group(self) -> bool:
        """Whether the real server would answer 404 in JSON: it knows built-in groups in any version."""
        return (self.group, self.version) in _SERVED or self.group in _BUILT_IN_GROUPS


def parse_path(path: str) -> Route | None:
    """The route, or None for a path that is no resource's."""
    root, *parts = [unquote(part) for part in path.strip("/").split("/")]
    if root == "api":
        parts.insert(0, "")
    elif root != "apis":
        return None
    if len(parts) < 3 or "" in parts[1:]:
        return None
    group, version, *parts = parts
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and parts[2] not in ("status", "finalize"):
        _, namespace, *parts = parts
    plural, name, subresource, *more = [*parts, "", ""]
    return None if any(more) else Route(group, version, plural, namespace, name, subresource)


_OF_KUBELETS = {("pods", subresource) for subresource in ("log", "exec", "attach", "portforward", "proxy")}
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
        route = parse_path(url.path)
        if route is None:
            return self._page(user, url.path)
        parameters = dict(parse_qsl(url.query, keep_blank_values=True))
        action = _action(request.method, route, parameters)
        if "dryRun" in parameters and (action.verb, parameters["dryRun"]) != ("patch", "All"):
            raise bad_request("the embedded API makes dry runs (All) of patches only, and will not write instead")
        self._access.check(user, action)
        kind = route.kind
        if kind is None:
            if (route.plural, route.subresource) in _OF_KUBELETS:
                raise StatusError(501, "NotImplemented", NOT_SERVED.format(route.subresource))
            if route.known_group:
                raise no_such_path()
            return _text(*_NO_PAGE)
        _check_method(kind, route, request.method)
        if route.subresource == EVICTION:
            return self._evict(action, request)
        if action.verb in ("create", "update", "patch"):
            return self._write(kind, action, user, request, dry="dryRun" in parameters)
        answer = self._read_or_delete(kind.resource, action, parameters, request.body, wake)
        if (
            isinstance(answer, Reply)
            and action.verb in ("get", "list")
            and wants_table(request.headers.get("accept", ""))
        ):
            return _json(200, table(kind.resource, json.loads(answer.body), self.store.wallclock()))
        return answer

    def _page(self, user: User, path: str) -> Reply:
        self._access.check_path(user, path)
        if path in ("/healthz", "/livez", "/readyz"):
            return _text(200, "ok")
        document = discovered(path.rstrip("/"))
        return _text(*_NO_PAGE) if document is None else _json(200, document)

    def _read_or_delete(
        self, resource: Resource, action: Action, parameters: Parameters, body: bytes, wake: Callable[[], None]
    ) -> Reply | Stream:
        place = (resource, action.namespace, action.name)
        if action.verb == "get":
            return _json(200, self.store.get(*place))
        if action.verb == "delete":
            return _json(200, self.store.delete(*place, delete_options(parameters, body)))
        query = query_of(action.namespace, parameters)
        if action.verb == "list":
            return _json(200, self.store.list(resource, query))
        seconds = min(number(parameters, "timeoutSeconds") or WATCH_SECONDS, WATCH_SECONDS)
        bookmarks = truth(parameters, "allowWatchBookmarks")
        return Stream(resource, self.store.watch(resource, wake, query), bookmarks, seconds)

    def _evict(self, action: Action, request: Request) -> Reply:
        """A deletion with the pod's grace; nobody here has a disruption budget."""
        body = body_of(request.headers.get("content-type", ""), JSON, request.body)
        options = body.get("deleteOptions") if isinstance(body, dict) else None
        self.store.delete(PODS, action.namespace, action.name, delete_options({}, json.dumps(options or {}).encode()))
        return _json(201, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})

    def _write(self, kind: Kind, action: Action, user: User, request: Request, *, dry: bool) -> Reply:
        place = (kind.resource, action.namespace, action.name)
        wanted, content_type = MERGE_PATCH if action.verb == "patch" else JSON, request.headers.get("content-type", "")
        if content_type.startswith(APPLY_PATCH):
            raise StatusError(415, "UnsupportedMediaType", NO_APPLY)
        if content_type.startswith(STRATEGIC_PATCH) and not kind.custom:
            wanted = STRATEGIC_PATCH
        body = body_of(content_type, wanted, request.body)
        if wanted == STRATEGIC_PATCH and not _is_plain(body):
            raise StatusError(415, "UnsupportedMediaType", NO_STRATEGY)
        if user.node and isinstance(body, dict):
            old = self.store.get(*place) if action.name and kind.resource == NODES else {}
            access.check_node_write(user.node, action, old, merge_patch(old, body) if action.verb == "patch" else body)
        if action.verb == "create":
            return _json(201, self.store.create(kind.resource, action.namespace, body))
        if action.verb == "patch":
            return _json(200, self.store.patch(*place, body, action.subresource, dry=dry))
        return _json(200, self.store.update(*place, body, action.subresource))


def _is_plain(patch: Any) -> bool:
    """Whether a strategic merge-patch means what a merge-patch means: it has no lists, and no directives."""
    if isinstance(patch, dict):
        return all(not key.startswith("$") and _is_plain(value) for key, value in patch.items())
    return not isinstance(patch, list)


def _json(status: int, body: Object) -> Reply:
    return Reply(status, json.dumps(body, separators=(",", ":")).encode())


def _text(status: int, body: str) -> Reply:
    return Reply(status, body.encode(), "text/plain")


def _action(method: str, route: Route, parameters: Parameters) -> Action:
    verb = _VERBS.get(method, method.lower())
    if verb == "get" and not route.name:
        verb = "watch" if truth(parameters, "watch") else "list"
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
    if route.subresource == EVICTION:
        allowed = {"POST"}
    elif route.name:
        allowed |= {"PUT", "PATCH"} if route.subresource else {"PUT", "PATCH", "DELETE"}
    elif route.namespace or not kind.resource.namespaced:
        allowed |= {"POST"}
    if method not in allowed:
        raise bad_request("name must be provided") if kind.custom and method in _VERBS else method_not_allowed()
