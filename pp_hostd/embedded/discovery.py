"""The answers by which kubectl learns what is served: groups, kinds, the version, and that the server checks fields."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pp_hostd.embedded.kinds import KINDS, Kind
from pp_hostd.kube.resources import CONFIG_MAPS, EVENTS, NAMESPACES, NODE_FENCES, NODE_HEALTH_CHECKS, NODES, PODS

Json = dict[str, Any]
VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")
SHORT_NAMES = {
    NODES: ["no"],
    PODS: ["po"],
    NAMESPACES: ["ns"],
    CONFIG_MAPS: ["cm"],
    EVENTS: ["ev"],
    NODE_HEALTH_CHECKS: ["nhc"],
    NODE_FENCES: ["nf"],
}
MINOR_VERSION = 36
"""The Kubernetes whose behaviour is played; kubectl warns of one that is far from its own."""
ROOTS = ("/api", "/apis", "/version", "/openapi/v3")


def is_discovery(path: str) -> bool:
    """Whether every user may read this path, as in Kubernetes."""
    return any(path == root or path.startswith(f"{root}/") for root in ROOTS)


def discovered(path: str) -> Json | None:
    """Returns the document at that path; None if there is none."""
    pages: dict[str, Json] = {
        "/api": {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []},
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(name) for name in _groups() if name]},
        "/version": {"major": "1", "minor": str(MINOR_VERSION), "gitVersion": f"v1.{MINOR_VERSION}.0+embedded"},
        "/openapi/v3": {"paths": {root[1:]: {"serverRelativeURL": f"/openapi/v3{root}"} for root in _roots()}},
    }
    pages.update((f"/apis/{name}", {**_group(name), "kind": "APIGroup", "apiVersion": "v1"}) for name in _groups())
    for root, kinds in _roots().items():
        version = root.rpartition("api/" if root.startswith("/api/") else "apis/")[2]
        listed = [each for kind in kinds for each in _listed(kind)]
        pages[root] = {
            "kind": "APIResourceList",
            "apiVersion": "v1",
            "groupVersion": version,
            "resources": listed,
        }
        pages[f"/openapi/v3{root}"] = _openapi(kinds)
    return pages.get(path)


def _groups() -> dict[str, list[str]]:
    """The versions of each group, as they are listed."""
    groups: dict[str, list[str]] = {}
    for resource in KINDS:
        versions = groups.setdefault(resource.group, [])
        if resource.version not in versions:
            versions.append(resource.version)
    return groups


def _group(name: str) -> Json:
    versions = [{"groupVersion": f"{name}/{version}", "version": version} for version in _groups()[name]]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def _roots() -> dict[str, list[Kind]]:
    """The kinds, by the path of their group and version."""
    roots: dict[str, list[Kind]] = {}
    for resource, kind in KINDS.items():
        root = f"/apis/{resource.group}/{resource.version}" if resource.group else f"/api/{resource.version}"
        roots.setdefault(root, []).append(kind)
    return roots


def _listed(kind: Kind) -> Iterator[Json]:
    resource = kind.resource
    known = {"singularName": resource.kind.lower(), "namespaced": resource.namespaced, "kind": resource.kind}
    short = {"shortNames": SHORT_NAMES[resource]} if resource in SHORT_NAMES else {}
    every = {"categories": ["all"]} if resource == PODS else {}
    yield {"name": resource.plural, **known, **short, **every, "verbs": list(VERBS)}
    if kind.has_status:
        yield {"name": f"{resource.plural}/status", **known, "verbs": ["get", "patch", "update"]}
    if resource == PODS:
        yield {
            "name": "pods/eviction",
            **known,
            "group": "policy",
            "version": "v1",
            "kind": "Eviction",
            "verbs": ["create"],
        }


def _openapi(kinds: list[Kind]) -> Json:
    """No schemas: kubectl only looks whether the server itself checks fields, and so does not want to."""
    operation = {"parameters": [{"name": "fieldValidation", "in": "query"}], "responses": {}}
    paths: Json = {}
    for resource in (kind.resource for kind in kinds):
        named = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        place = resource.path("{namespace}" if resource.namespaced else None, "{name}")
        paths[place] = {"patch": {**operation, "x-kubernetes-group-version-kind": named}}
    return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": f"v1.{MINOR_VERSION}.0"}, "paths": paths}
