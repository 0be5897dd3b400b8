"""Our own kind NodeHealthCheck, and the one that `pp-leader install --health-check` makes."""

from __future__ import annotations

from pp_hostd.kube.resources import NODE_HEALTH_CHECKS
from pp_hostd.leader.definition import CONDITIONS, MANAGED_BY, US, definition, duration, text
from pp_hostd.leader.facts.limits import MOST
from pp_hostd.leader.requests.health_checks.check import DEFAULT_MOST, MOST_UNREACHABLE_SECONDS
from pp_hostd.leader.steps.api import Json
from pp_hostd.model.observed import CONTROL_PLANE_LABELS

DEFAULT_NAME = "workers"
FULL_NAME = f"{NODE_HEALTH_CHECKS.plural}.{NODE_HEALTH_CHECKS.group}"
"""As kubectl takes it, also where somebody else has a kind of the same name."""
_RANGE = "^[[][0-9]{1,7}-[0-9]{1,7}[]]$"
_NAME = "[a-z0-9]([-.a-z0-9]*[a-z0-9])?"
_MOST_CONDITIONS = 20
_EXPRESSION: Json = {
    "type": "object",
    "required": ["key", "operator"],
    "properties": {
        "key": {"type": "string", "minLength": 1},
        "operator": {"type": "string", "enum": ["In", "NotIn", "Exists", "DoesNotExist"]},
        "values": {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 63}},
    },
    "x-kubernetes-validations": [
        {
            "rule": "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
            "message": "values are needed for In and NotIn, and for no other operator",
        }
    ],
}
_SELECTOR: Json = {
    "type": "object",
    "description": "The Nodes that are checked; empty selects all, control-plane Nodes too.",
    "properties": {
        "matchLabels": {"type": "object", "additionalProperties": {"type": "string"}},
        "matchExpressions": {"type": "array", "maxItems": 50, "items": _EXPRESSION},
    },
}
_UNHEALTHY_CONDITION: Json = {
    "type": "object",
    "required": ["type", "status", "timeout"],
    "properties": {
        "type": text("The type of a condition of Nodes.", minLength=1, maxLength=316),
        "status": text("The status that is unhealthy.", enum=["True", "False", "Unknown"]),
        "timeout": duration("A Node that has had the condition for longer is unhealthy: 300s, 5m, 1h30m."),
    },
}
_TEMPLATE: Json = {
    "type": "object",
    "description": "The template of remediation objects. Without it the leader itself is asked.",
    "required": ["apiVersion", "kind", "namespace", "name"],
    "properties": {
        "apiVersion": {"type": "string", "pattern": f"^{_NAME}/{_NAME}$", "maxLength": 317},
        "kind": {"type": "string", "pattern": "^[A-Z][A-Za-z0-9]*Template$", "maxLength": 63},
        "namespace": {"type": "string", "pattern": f"^{_NAME}$", "maxLength": 63},
        "name": {"type": "string", "pattern": f"^{_NAME}$", "maxLength": 253},
    },
}
_SPEC: Json = {
    "type": "object",
    "description": "Which Nodes are checked, when one is unhealthy, and how many may be so.",
    "required": ["selector"],
    "properties": {
        "selector": _SELECTOR,
        "unhealthyConditions": {
            "type": "array",
            "maxItems": _MOST_CONDITIONS,
            "items": _UNHEALTHY_CONDITION,
            "description": "Any one of them makes a Node unhealthy.",
        },
        "unreachableSeconds": {
            "type": "integer",
            "minimum": 0,
            "maximum": MOST_UNREACHABLE_SECONDS,
            "description": "A Node is unhealthy so long after pp-hostd's own probes have found its host unreachable. "
            "Without it the probes request nothing.",
        },
        "maxUnhealthy": {
            "x-kubernetes-int-or-string": True,
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "default": DEFAULT_MOST,
            "description": "Nobody is remediated while more Nodes than these are not healthy: a number, or a part of "
            "the selected Nodes, rounded down.",
        },
        "unhealthyRange": text(
            "Instead of maxUnhealthy: Nodes are remediated only while the number of those that are not healthy is "
            "within it, as [1-3].",
            pattern=_RANGE,
            maxLength=20,
        ),
        "nodeStartupTimeout": duration(
            "A Node that never reported, or has not reported since it was remediated, is unhealthy after this; 0: "
            "never.",
            default="10m",
        ),
        "remediationTemplate": _TEMPLATE,
    },
    "x-kubernetes-validations": [
        {
            "rule": "has(self.unreachableSeconds) || "
            "(has(self.unhealthyConditions) && size(self.unhealthyConditions) > 0)",
            "message": "unhealthyConditions or unreachableSeconds is needed: else no Node would ever be unhealthy",
        },
        {
            "rule": "!has(self.maxUnhealthy) || (type(self.maxUnhealthy) == int ? "
            f"int(self.maxUnhealthy) >= 0 && int(self.maxUnhealthy) <= {MOST} : "
            f"string(self.maxUnhealthy).matches('^({MOST}|[0-9]{{1,6}}|100%|0?[0-9]{{1,2}}%)$'))",
            "message": f"maxUnhealthy is a whole number from 0 to {MOST}, or a part from 0% to 100%",
        },
        {
            "rule": f"!has(self.unhealthyRange) || !self.unhealthyRange.matches('{_RANGE}') || "
            "int(self.unhealthyRange.substring(1, self.unhealthyRange.indexOf('-'))) <= "
            "int(self.unhealthyRange.substring(self.unhealthyRange.indexOf('-') + 1, "
            "size(self.unhealthyRange) - 1))",
            "message": "unhealthyRange ends before it begins",
        },
    ],
}
_STATUS: Json = {
    "type": "object",
    "properties": {
        "observedGeneration": {"type": "integer", "format": "int64"},
        "expectedNodes": {"type": "integer", "description": "The Nodes that it selects."},
        "currentHealthy": {"type": "integer"},
        "remediationsAllowed": {
            "type": "integer",
            "description": "So many more Nodes may become unhealthy before nobody is remediated.",
        },
        "unhealthyNodes": {
            "type": "array",
            "description": "The first hundred.",
            "items": {
                "type": "object",
                "properties": {key: {"type": "string"} for key in ("name", "reason", "message")},
            },
        },
        "remediated": {
            "type": "array",
            "description": "The Nodes for which it made, or was about to make, a remediation object.",
            "items": {"type": "string"},
        },
        "conditions": CONDITIONS,
    },
}
_COLUMNS: list[Json] = [
    {"name": "Nodes", "type": "integer", "jsonPath": ".status.expectedNodes"},
    {"name": "Healthy", "type": "integer", "jsonPath": ".status.currentHealthy"},
    {"name": "Max unhealthy", "type": "string", "jsonPath": ".spec.maxUnhealthy"},
    {"name": "More allowed", "type": "integer", "jsonPath": ".status.remediationsAllowed"},
    {
        "name": "Remediation",
        "type": "string",
        "jsonPath": ".status.conditions[?(@.type=='RemediationAllowed')].reason",
    },
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Range", "type": "string", "jsonPath": ".spec.unhealthyRange", "priority": 1},
]


def definitions() -> list[Json]:
    parts = {"spec": _SPEC, "status": _STATUS}
    made = definition(NODE_HEALTH_CHECKS, parts, _COLUMNS, required=["spec"])
    made["spec"]["names"]["shortNames"] = ["nhc"]
    return [made]


def default_check(most: str = DEFAULT_MOST, *, control_plane: bool = False) -> Json:
    """Workers alone, unless `control_plane`: a control plane that is remediated by mistake costs more.

    A kubelet that says Ready=False is alive, and a reset rarely cures what it complains of, so it has as long as other
    health checks give it. Kubernetes itself takes 40 s to say Unknown of a silent one, and a minute more is enough.
    """
    workers = [{"key": key, "operator": "DoesNotExist"} for key in CONTROL_PLANE_LABELS]
    return {
        "apiVersion": NODE_HEALTH_CHECKS.api_version,
        "kind": NODE_HEALTH_CHECKS.kind,
        "metadata": {"name": DEFAULT_NAME, "labels": {MANAGED_BY: US}},
        "spec": {
            "selector": {} if control_plane else {"matchExpressions": workers},
            "unreachableSeconds": 2,
            "unhealthyConditions": [
                {"type": "Ready", "status": "Unknown", "timeout": "60s"},
                {"type": "Ready", "status": "False", "timeout": "300s"},
            ],
            "maxUnhealthy": int(most) if most.isdecimal() else most,
            "nodeStartupTimeout": "10m",
        },
    }
