"""The kind NodeFence, as `pp-leader install --flows node-fence` defines it."""

from __future__ import annotations

from pp_hostd.kube.resources import NODE_FENCES
from pp_hostd.leader.definition import CONDITIONS, definition
from pp_hostd.leader.remedies.node_fence.fence import MOST_JOBS, MOST_METHODS, PREFIX, Outcome, Status, Step
from pp_hostd.leader.steps.api import Json

_TEXT: Json = {"type": "string"}
_COUNT: Json = {"type": "integer", "format": "int64", "minimum": 0}
_METHOD: Json = {
    "type": "object",
    "required": ["name", "outcome"],
    "properties": {
        "name": _TEXT,
        "action": {"type": "string", "description": "on, off, reboot or status of a fence agent; empty for others."},
        "outcome": {"type": "string", "enum": [each.value for each in Outcome]},
        "tried": {**_COUNT, "description": "So many times."},
        "job": {"type": "string", "description": "The Job that runs it, in the namespace pp-hostd."},
        "message": _TEXT,
    },
}
_PARTS: Json = {
    "node": {"type": "string", "minLength": 1, "maxLength": 253, "description": "The Node that is fenced."},
    "step": {"type": "string", "enum": [each.value for each in Step], "default": Step.ISOLATION.value},
    "status": {
        "type": "string",
        "enum": [each.value for each in Status],
        "default": Status.NEW.value,
        "description": "How far the step has come. All of this is written by the leader.",
    },
    "retries": {**_COUNT, "description": "So many times methods of this step were tried again."},
    "restarts": {**_COUNT, "description": "So many times the whole flow began again."},
    "reason": {"type": "string", "description": "Why the node is fenced, and what the flow waits for."},
    "cause": {
        "type": "object",
        "description": "The threshold that has triggered the flow; empty if a person made the object.",
        "properties": dict.fromkeys(("configuration", "condition", "status"), _TEXT),
    },
    "stepStartedAt": {"type": "string", "format": "date-time"},
    "id": {**_COUNT, "description": "On the taint of the Node, and on its marker while its workloads are freed."},
    "boot": {"type": "string", "description": "The boot of the host that is fenced."},
    "methods": {"type": "array", "maxItems": MOST_METHODS, "items": _METHOD},
    "jobs": {"type": "array", "maxItems": MOST_JOBS, "items": _TEXT},
    "cleaned": {"type": "boolean", "description": "Whether the workloads of the node were freed."},
    "refuted": {
        "type": "array",
        "maxItems": MOST_METHODS,
        "items": _TEXT,
        "description": "Methods that called the host dead, which was heard since. They are not believed any more.",
    },
    "conditions": CONDITIONS,
}
_COLUMNS: list[Json] = [
    {"name": "Node", "type": "string", "jsonPath": ".node"},
    {"name": "Step", "type": "string", "jsonPath": ".step"},
    {"name": "Status", "type": "string", "jsonPath": ".status"},
    {"name": "Restarts", "type": "integer", "jsonPath": ".restarts"},
    {"name": "Freed", "type": "boolean", "jsonPath": ".cleaned"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    {"name": "Reason", "type": "string", "jsonPath": ".reason", "priority": 1},
]


def fence_definition() -> Json:
    """`status` is a word, as the proposal has it, and so no part of its own: one write is one transition."""
    rule = {
        "rule": f"self.metadata.name == '{PREFIX}' + self.node",
        "message": f"the name of a NodeFence is {PREFIX} and the name of its node: there is one for a node at most",
    }
    made = definition(NODE_FENCES, _PARTS, _COLUMNS, required=["node"], **{"x-kubernetes-validations": [rule]})
    made["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, see pp-hostd"}
    made["spec"]["names"]["shortNames"] = ["fence"]
    del made["spec"]["versions"][0]["subresources"]
    return made
