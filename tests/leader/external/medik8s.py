"""Objects as medik8s' NodeHealthCheck makes them of a template: named after a Node, in the template's namespace."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]
NODE_NAME = "remediation.medik8s.io/node-name"
CHECK: Json = {
    "apiVersion": "remediation.medik8s.io/v1alpha1",
    "kind": "NodeHealthCheck",
    "name": "workers",
    "uid": "0c6d1a3e-9d3f-4d5b-8f0e-2f1c7a3b9e11",
    "controller": False,
}
TEMPLATE: Json = {
    "apiVersion": "pp-hostd.io/v1",
    "kind": "PoisonPillRemediationTemplate",
    "metadata": {"name": "reset", "namespace": "medik8s"},
    "spec": {"template": {"spec": {"retryLimit": 1, "timeoutSeconds": 300}}},
}


def remediation_of(node: str, template: Json = TEMPLATE, machine: Json | None = None) -> Json:
    """The object. `machine` is the Node's Machine of OpenShift, which becomes an owner too if it is in the template's
    namespace; None if there is none."""
    namespace, owners = template["metadata"]["namespace"], [CHECK]
    if machine is not None and machine["metadata"]["namespace"] == namespace:
        named = {key: machine["metadata"][key] for key in ("name", "uid")}
        owners.append({"apiVersion": "machine.openshift.io/v1beta1", "kind": "Machine", **named, "controller": False})
    metadata = {
        "name": node,
        "namespace": namespace,
        "labels": {"app.kubernetes.io/part-of": "node-healthcheck-controller"},
        "annotations": {
            NODE_NAME: node,
            "remediation.medik8s.io/template-name": template["metadata"]["name"],
        },
        "ownerReferences": owners,
    }
    kind = template["kind"].removesuffix("Template")
    return {
        "apiVersion": template["apiVersion"],
        "kind": kind,
        "metadata": metadata,
        "spec": dict(template["spec"]["template"]["spec"]),
    }
