"""The kind NodeRemedyConfiguration, as `pp-leader install --flows node-fence` defines it.

Its fields stand under `spec`, as those of our other kinds do. Fields that have a short form, too, have no type here:
the leader itself reads them, and says in the status what is wrong with them.
"""

from __future__ import annotations

from pp_hostd.kube.resources import NODE_REMEDY_CONFIGURATIONS
from pp_hostd.leader.definition import CONDITIONS, definition, duration, text
from pp_hostd.leader.remedies.node_fence.configuration import (
    DEFAULT_TIMEOUT_SECONDS,
    FENCING_ALLOWED,
    MOST_REMEDIES,
    MOST_STORAGE,
    MOST_THRESHOLDS,
    MOST_TIMEOUT_SECONDS,
    STATUSES,
    Fences,
)
from pp_hostd.leader.steps.api import Json

_ANY: Json = {"x-kubernetes-preserve-unknown-fields": True}
_NAME: Json = {"type": "string", "pattern": "^[a-z0-9]([-.a-z0-9]*[a-z0-9])?$", "maxLength": 253}
_THRESHOLD: Json = {
    "type": "object",
    **_ANY,
    "description": "A Node that has had the condition for this long is fenced: by remedy1, and if that does not help "
    "by remedy2 and so on, each {name, period, clean-resource}; without any, by the Node's own fence configuration.",
    "required": ["nodeConditionType", "nodeConditionStatus", "nodeConditionPeriod"],
    "properties": {
        "nodeConditionType": text("The type of a condition of Nodes, as Ready.", minLength=1, maxLength=316),
        "nodeConditionStatus": {**_ANY, "description": "The status that counts.", "enum": [*STATUSES, True, False]},
        "nodeConditionPeriod": duration("The condition counts once it has been so for this long: 30s, 5m, 1h30m."),
        "recovery": {**_ANY, "description": "{name} of the remedy that runs once the condition is gone."},
    },
}
_CONTAINER: Json = {
    "type": "object",
    **_ANY,
    "description": "As in a Pod. Names in env are of Secrets, those in configmaps of ConfigMaps.",
    "required": ["name", "image"],
    "properties": {"name": _NAME, "image": {"type": "string", "minLength": 1, "maxLength": 500}},
}
_POD_TEMPLATE: Json = {
    "type": "object",
    **_ANY,
    "description": "The template of the pod that is the remedy: it succeeds or fails as the pod does.",
    "required": ["spec"],
    "properties": {
        "spec": {
            "type": "object",
            **_ANY,
            "required": ["containers"],
            "properties": {"containers": {"type": "array", "minItems": 1, "maxItems": 20, "items": _CONTAINER}},
        }
    },
}
_REMEDY: Json = {
    "type": "object",
    "required": ["name", "podTemplate"],
    "properties": {
        "name": _NAME,
        "podTemplate": _POD_TEMPLATE,
        "timeoutSeconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_TIMEOUT_SECONDS,
            "default": DEFAULT_TIMEOUT_SECONDS,
            "description": "A pod that takes longer has failed.",
        },
        "fences": text(
            "A Node that this remedy has succeeded for is cut off from nothing, from this storage, or altogether: "
            "clean-resource frees only workloads that are cut off.",
            enum=[each.value for each in Fences],
            default=Fences.NONE.value,
        ),
        "storage": {
            "type": "array",
            "maxItems": MOST_STORAGE,
            "items": _NAME,
            "description": "The names of StorageClasses or CSI drivers, for fences: storage.",
        },
    },
    "x-kubernetes-validations": [
        {
            "rule": "(self.fences == 'storage') == (has(self.storage) && size(self.storage) > 0)",
            "message": "storage is needed for fences: storage, and allowed for it alone",
        }
    ],
}
_SPEC: Json = {
    "type": "object",
    "description": "Which Nodes are fenced, from which condition on, and how.",
    "required": ["thresholdConfigs"],
    "properties": {
        "nodeSelector": {
            **_ANY,
            "description": "matchLabels and matchExpressions, or a text like type=compute,zone=a; without it all Nodes "
            "are selected, control-plane Nodes too.",
        },
        "thresholdConfigs": {"type": "array", "minItems": 1, "maxItems": MOST_THRESHOLDS, "items": _THRESHOLD},
        "remedyConfigs": {
            "type": "array",
            "maxItems": MOST_REMEDIES,
            "items": _REMEDY,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["name"],
        },
    },
}
_STATUS: Json = {
    "type": "object",
    "properties": {
        "observedGeneration": {"type": "integer", "format": "int64"},
        "selectedNodes": {"type": "integer", "description": "So many Nodes it selects."},
        "matchingNodes": {"type": "integer", "description": "So many of them have reached a threshold."},
        "overlappingNodes": {
            "type": "array",
            "description": "The first of those that others select, too, and that nobody fences therefore.",
            "items": {"type": "string"},
        },
        "conditions": CONDITIONS,
    },
}
_COLUMNS: list[Json] = [
    {"name": "Nodes", "type": "integer", "jsonPath": ".status.selectedNodes"},
    {"name": "Matching", "type": "integer", "jsonPath": ".status.matchingNodes"},
    {
        "name": "Fencing",
        "type": "string",
        "jsonPath": f".status.conditions[?(@.type=='{FENCING_ALLOWED}')].reason",
    },
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]


def configuration_definition() -> Json:
    parts = {"spec": _SPEC, "status": _STATUS}
    made = definition(NODE_REMEDY_CONFIGURATIONS, parts, _COLUMNS, required=["spec"])
    made["spec"]["names"]["shortNames"] = ["nrc"]
    return made
