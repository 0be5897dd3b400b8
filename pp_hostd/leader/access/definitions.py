"""The kinds that are ours: PoisonPillRemediation and its template, for health checks to use by their template field."""

from __future__ import annotations

from copy import deepcopy

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import POISON_PILL_REMEDIATIONS, Resource
from pp_hostd.model.remediation import MOST_RETRIES, MOST_SECONDS

DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
_SPEC: Json = {
    "type": "object",
    "description": "How often the host is made to reset itself, and how long it has to be well again after it.",
    "properties": {
        "retryLimit": {
            "type": "integer",
            "minimum": 0,
            "maximum": MOST_RETRIES,
            "default": 1,
            "description": "Attempts after the first one; then the Machine is left to its owner.",
        },
        "timeoutSeconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_SECONDS,
            "default": 600,
            "description": "A node that is not Ready so long after an attempt is reset again.",
        },
    },
}
_CONDITION: Json = {
    "type": "object",
    "required": ["type", "status"],
    "properties": {
        **{key: {"type": "string"} for key in ("type", "status", "reason", "message")},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
    },
}
_STATUS: Json = {
    "type": "object",
    "properties": {
        "phase": {"type": "string", "enum": ["Running", "Waiting", "Deleting machine", "Failed"]},
        "retryCount": {"type": "integer", "minimum": 0},
        "lastRemediated": {"type": "string", "format": "date-time"},
        "conditions": {
            "type": "array",
            "items": _CONDITION,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        },
    },
}
_TEMPLATE: Json = {
    "type": "object",
    "required": ["template"],
    "properties": {"template": {"type": "object", "required": ["spec"], "properties": {"spec": deepcopy(_SPEC)}}},
}
_COLUMNS = [
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Retries", "type": "integer", "jsonPath": ".status.retryCount"},
    {"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Remediated')].reason"},
    {"name": "Last remediated", "type": "date", "jsonPath": ".status.lastRemediated"},
]


def definitions() -> list[Json]:
    """The object, then its template."""
    kind = POISON_PILL_REMEDIATIONS
    template = f"{kind.kind}Template"
    return [
        _definition(kind.kind, kind.plural, {"spec": _SPEC, "status": _STATUS}, _COLUMNS),
        _definition(template, f"{template.lower()}s", {"spec": _TEMPLATE}, []),
    ]


def _definition(kind: str, plural: str, parts: Json, columns: list[Json]) -> Json:
    group, version = POISON_PILL_REMEDIATIONS.group, POISON_PILL_REMEDIATIONS.version
    served: Json = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": parts}},
        **({"subresources": {"status": {}}} if "status" in parts else {}),
        **({"additionalPrinterColumns": columns} if columns else {}),
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": DEFINITIONS.api_version,
        "kind": DEFINITIONS.kind,
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [served]},
    }
