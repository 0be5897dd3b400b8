"""CustomResourceDefinitions, as `pp-leader install` makes them."""

from __future__ import annotations

from typing import Any

from pp_hostd.kube.resources import POISON_PILL_REMEDIATIONS, Resource
from pp_hostd.leader.facts.limits import MOST_SECONDS
from pp_hostd.leader.steps.api import Json

OWN_GROUP = POISON_PILL_REMEDIATIONS.group
DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
MANAGED_BY, US = "app.kubernetes.io/managed-by", "pp-leader"
"""The label by which a definition is known as one that `pp-leader install` made."""
_GO_DURATION = "^(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$"


def text(description: str, **more: Any) -> Json:
    return {"type": "string", "description": description, **more}


def duration(description: str, **more: Any) -> Json:
    """As Go writes it: 300s, 5m, 1h30m."""
    most = f"{MOST_SECONDS / 3600:g}h"
    rule = {
        "rule": f"self.matches('{_GO_DURATION}') && duration(self) <= duration('{most}')",
        "message": f"it is not a duration like 300s, 5m or 1h30m, of at most {MOST_SECONDS / 86400:g} days",
    }
    return text(description, maxLength=40, **more, **{"x-kubernetes-validations": [rule]})


CONDITION: Json = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        **{key: {"type": "string"} for key in ("type", "status", "reason", "message")},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    },
}
CONDITIONS: Json = {
    "type": "array",
    "items": CONDITION,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
}


def is_ours(definition: Json) -> bool:
    """Whether `pp-leader install` made this definition. Nobody else makes those of our own group."""
    made_by = definition["metadata"].get("labels", {}).get(MANAGED_BY)
    return bool(made_by == US or definition["spec"]["group"] == OWN_GROUP)


def defined(definition: Json) -> Resource:
    """The kind that it defines."""
    spec = definition["spec"]
    names, namespaced = spec["names"], spec["scope"] == "Namespaced"
    return Resource(spec["group"], spec["versions"][0]["name"], names["kind"], names["plural"], namespaced)


def definition(kind: Resource, parts: Json, columns: list[Json], **schema: object) -> Json:
    """The definition of this kind with these `parts`, spec and status; `schema` adds to the schema of the whole."""
    served: Json = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", **schema, "properties": parts}},
        **({"subresources": {"status": {}}} if "status" in parts else {}),
        **({"additionalPrinterColumns": columns} if columns else {}),
    }
    names = {"kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower()}
    return {
        "apiVersion": DEFINITIONS.api_version,
        "kind": DEFINITIONS.kind,
        "metadata": {"name": f"{kind.plural}.{kind.group}", "labels": {MANAGED_BY: US}},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": names,
            "versions": [served],
        },
    }
