"""From a request's path to the resource, object and subresource that it means."""

from __future__ import annotations

from urllib.parse import unquote

from pp_hostd.embedded.kinds import KINDS, Kind
from pp_hostd.frozen import frozen

_BY_PATH = {(kind.resource.group, kind.resource.version, kind.resource.plural): kind for kind in KINDS.values()}
_SERVED = {(group, version) for group, version, _ in _BY_PATH}
_BUILT_IN_GROUPS = {kind.resource.group for kind in KINDS.values() if not kind.custom}


@frozen
class Route:
    """What a path under /api or /apis means; the kind is None where nothing is served."""

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
        if kind is None or (self.subresource and not (self.subresource == "status" and kind.has_status)):
            return None
        placed = bool(self.namespace) == kind.resource.namespaced
        return kind if placed or not (self.namespace or self.name) else None

    @property
    def known_group(self) -> bool:
        """Whether the real server would answer 404 in JSON: it knows built-in groups in any version."""
        return (self.group, self.version) in _SERVED or self.group in _BUILT_IN_GROUPS


def parse(path: str) -> Route | None:
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
