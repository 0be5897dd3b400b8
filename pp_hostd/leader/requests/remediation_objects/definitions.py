"""The kinds that health checks use by their template field: our PoisonPillRemediation, and the Metal3Remediation of the
proposals, which nobody else ships; each with its template. Others may have installed the latter all the same.
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from pp_hostd.kube.resources import POISON_PILL_REMEDIATIONS, PROPOSED_REMEDIATIONS, Resource, template_of
from pp_hostd.leader.definition import CONDITION, definition
from pp_hostd.leader.requests.remediation_objects.remediation import MOST_RETRIES, MOST_SECONDS
from pp_hostd.leader.steps.api import Json


def _whole_number(least: int, most: int, default: int, description: str) -> Json:
    within: dict[str, Any] = {"type": "integer", "minimum": least, "maximum": most, "default": default}
    return {**within, "description": description}


_SPEC: Json = {
    "type": "object",
    "description": "How often the host is made to reset itself, and how long it has to be well again after it.",
    "properties": {
        "retryLimit": _whole_number(
            0, MOST_RETRIES, 1, "Attempts after the first one; then the Machine, if any, is left to its owner."
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
_STATUS: Json = {
    "type": "object",
    "properties": {
        "phase": {"type": "string", "enum": ["Running", "Waiting", "Deleting machine", "Failed"]},
        "retryCount": {"type": "integer", "minimum": 0},
        "lastRemediated": {"type": "string", "format": "date-time"},
        "nodeUID": {
            "type": "string",
            "description": "The uid of the Node whose remediation this attempt requests, where Nodes stand for "
            "themselves. Another uid means that the attempt is over.",
        },
        "conditions": {
            "type": "array",
            "items": CONDITION,
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


def definitions(kinds: tuple[Resource, ...] = (POISON_PILL_REMEDIATIONS, PROPOSED_REMEDIATIONS)) -> list[Json]:
    """Of each of these kinds the object, then its template."""
    proposed = [column for column in _COLUMNS if column["name"] != "Reason"]
    of_kind = {
        POISON_PILL_REMEDIATIONS: (_SPEC, _STATUS, _COLUMNS),
        PROPOSED_REMEDIATIONS: (_PROPOSED_SPEC, _PROPOSED_STATUS, proposed),
    }
    return [definition for kind in kinds for definition in _definitions(kind, *of_kind[kind])]


def _definitions(kind: Resource, spec: Json, status: Json, columns: list[Json]) -> list[Json]:
    within = {"type": "object", "required": ["spec"], "properties": {"spec": deepcopy(spec)}}
    template = {"type": "object", "required": ["template"], "properties": {"template": within}}
    return [
        definition(kind, {"spec": spec, "status": status}, columns),
        definition(template_of(kind), {"spec": template}, []),
    ]
