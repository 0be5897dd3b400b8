"""The kinds that health checks use by their template field: our PoisonPillRemediation, and the Metal3Remediation of the
proposals, which nobody else ships; each with its template. Others may have installed the latter all the same.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pp_hostd.kube.resources import POISON_PILL_REMEDIATIONS, PROPOSED_REMEDIATIONS, Resource, template_of
from pp_hostd.leader.requests.remediation_objects.remediation import MOST_RETRIES, MOST_SECONDS
from pp_hostd.leader.steps.api import Json

DEFINITIONS = Resource(
    "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions", namespaced=False
)
MANAGED_BY, US = "app.kubernetes.io/managed-by", "pp-leader"
"""The label by which a definition is known as one that `pp-leader install` made."""


def _whole_number(least: int, most: int, default: int, description: str) -> Json:
    within: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return {**within, "description": description}


_SPEC: Json = {
    "type": "object",
    "description": "How often the host is made to reset itself, and how long it has to be well again after it.",
    "properties": {
        "retryLimit": _whole_number(
            0, MOST_RETRIES, 1, "Attempts after the first one; then the Machine is left to its owner."
        ),
        "timeoutSeconds": _whole_number(
            1, MOST_SECONDS, 600, "A node that is not Ready so long after an attempt is reset again."
        ),
    },
}
_PROPOSED_SPEC: Json = {
    "type": "object",
    "description": "How often the host is switched off and on, and how long each may take.",
    "required": ["strategy"],
    "properties": {
        "strategy": {
            "type": "string",
            "enum": ["escalate"],
            "description": "Power cycles, then the Machine's deletion.",
        },
        "deleteAfterRetries": _whole_number(
            0, MOST_RETRIES, 1, "Attempts after the first one; then the Machine is deleted."
        ),
        "powerOnTimeoutSeconds": _whole_number(
            1, MOST_SECONDS, 600, "A node that is not Ready so long after an attempt is power-cycled again."
        ),
        "powerOffTimeoutSeconds": _whole_number(
            1,
            MOST_SECONDS,
            600,
            "If the host is still on after this, the leader reports it, and goes on once it is off.",
        ),
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
_PROPOSED_STATUS: Json = {
    "type": "object",
    "properties": {
        "phase": {"type": "string"},
        "retryCount": {"type": "integer", "minimum": 0},
        "lastRemediated": {"type": "string", "format": "date-time"},
    },
}
_COLUMNS = [
    {"name": "Phase", "type": "string", "jsonPath": ".status.phase"},
    {"name": "Retries", "type": "integer", "jsonPath": ".status.retryCount"},
    {"name": "Reason", "type": "string", "jsonPath": ".status.conditions[?(@.type=='Remediated')].reason"},
    {"name": "Last remediated", "type": "date", "jsonPath": ".status.lastRemediated"},
]


def definitions() -> list[Json]:
    """Of each kind the object, then its template."""
    proposed = [column for column in _COLUMNS if column["name"] != "Reason"]
    return [
        *_definitions(POISON_PILL_REMEDIATIONS, _SPEC, _STATUS, _COLUMNS),
        *_definitions(PROPOSED_REMEDIATIONS, _PROPOSED_SPEC, _PROPOSED_STATUS, proposed),
    ]


def is_ours(definition: Json) -> bool:
    """Whether `pp-leader install` made this definition. Nobody else makes those of our own group."""
    made_by = definition["metadata"].get("labels", {}).get(MANAGED_BY)
    return bool(made_by == US or definition["spec"]["group"] == POISON_PILL_REMEDIATIONS.group)


def defined(definition: Json) -> Resource:
    """The kind that it defines."""
    spec = definition["spec"]
    return Resource(spec["group"], spec["versions"][0]["name"], spec["names"]["kind"], spec["names"]["plural"])


def _definitions(kind: Resource, spec: Json, status: Json, columns: list[Json]) -> list[Json]:
    within = {"type": "object", "required": ["spec"], "properties": {"spec": deepcopy(spec)}}
    template = {"type": "object", "required": ["template"], "properties": {"template": within}}
    return [
        _definition(kind, {"spec": spec, "status": status}, columns),
        _definition(template_of(kind), {"spec": template}, []),
    ]


def _definition(kind: Resource, parts: Json, columns: list[Json]) -> Json:
    served: Json = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "properties": parts}},
        **({"subresources": {"status": {}}} if "status" in parts else {}),
        **({"additionalPrinterColumns": columns} if columns else {}),
    }
    names = {"kind": kind.kind, "listKind": f"{kind.kind}List", "plural": kind.plural, "singular": kind.kind.lower()}
    return {
        "apiVersion": DEFINITIONS.api_version,
        "kind": DEFINITIONS.kind,
        "metadata": {"name": f"{kind.plural}.{kind.group}", "labels": {MANAGED_BY: US}},
        "spec": {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [served]},
    }
