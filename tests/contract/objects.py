"""A small valid object of every kind that pp-hostd touches, and short names for what the cases read in them."""

from __future__ import annotations

from typing import Any

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import (
    BARE_METAL_HOSTS,
    CAPI_CLUSTERS,
    CAPI_HEALTH_CHECKS,
    CAPI_MACHINES,
    CONFIG_MAPS,
    EVENTS,
    JOBS,
    LEASES,
    METAL3_REMEDIATION_TEMPLATES,
    METAL3_REMEDIATIONS,
    NODE_HEALTH_CHECKS,
    NODE_REMEDY_CONFIGURATIONS,
    NODES,
    OPENSHIFT_HEALTH_CHECKS,
    OPENSHIFT_MACHINES,
    PODS,
    POISON_PILL_REMEDIATIONS,
    PROPOSED_REMEDIATIONS,
    VOLUME_ATTACHMENTS,
    Resource,
)

CONTAINERS = [{"name": "main", "image": "registry.example/main"}]
REBOOT = {"strategy": {"type": "Reboot", "retryLimit": 1}}

CONTENT: dict[Resource, Json] = {
    NODES: {"spec": {"providerID": "metal3://host-1"}},
    PODS: {"spec": {"containers": CONTAINERS}},
    CONFIG_MAPS: {"data": {"roster": "1"}},
    LEASES: {"spec": {"holderIdentity": "one", "leaseDurationSeconds": 40}},
    EVENTS: {"reason": "Condemned", "message": "its workloads will be freed", "type": "Warning"},
    JOBS: {"spec": {"parallelism": 1, "template": {"spec": {"containers": CONTAINERS, "restartPolicy": "Never"}}}},
    VOLUME_ATTACHMENTS: {
        "spec": {"attacher": "csi.example", "nodeName": "worker-1", "source": {"persistentVolumeName": "volume-1"}}
    },
    OPENSHIFT_MACHINES: {"spec": {"providerID": "baremetalhost:///metal/host-1"}},
    OPENSHIFT_HEALTH_CHECKS: {"spec": {"maxUnhealthy": "40%"}},
    CAPI_MACHINES: {"spec": {"clusterName": "prod", "providerID": "metal3://host-1"}},
    CAPI_CLUSTERS: {"spec": {"paused": False}},
    CAPI_HEALTH_CHECKS: {"spec": {"clusterName": "prod", "maxUnhealthy": "40%"}},
    BARE_METAL_HOSTS: {"spec": {"online": True}},
    METAL3_REMEDIATIONS: {"spec": REBOOT},
    METAL3_REMEDIATION_TEMPLATES: {"spec": {"template": {"spec": REBOOT}}},
    PROPOSED_REMEDIATIONS: {"spec": {"strategy": "escalate", "deleteAfterRetries": 1}},
    NODE_HEALTH_CHECKS: {
        "spec": {"selector": {}, "unreachableSeconds": 2, "maxUnhealthy": "40%", "nodeStartupTimeout": "10m"}
    },
    NODE_REMEDY_CONFIGURATIONS: {
        "spec": {
            "nodeSelector": "type=compute",
            "thresholdConfigs": [
                {"nodeConditionType": "Ready", "nodeConditionStatus": False, "nodeConditionPeriod": "5s"}
            ],
        }
    },
    POISON_PILL_REMEDIATIONS: {"spec": {"retryLimit": 1, "timeoutSeconds": 600}},
}

KINDS = list(CONTENT)
BUILTIN_GROUPS = {"", "batch", "coordination.k8s.io", "storage.k8s.io"}
CUSTOM_KINDS = [kind for kind in KINDS if kind.group not in BUILTIN_GROUPS and kind.namespaced]


def label(kind: Resource) -> str:
    """How a kind is called in the names of the cases."""
    return f"{kind.plural}.{kind.group}" if kind in CUSTOM_KINDS else kind.plural


def sample(kind: Resource, name: str, *, namespace: str | None = None, **metadata: Any) -> Json:
    """A new object of that kind. Only an Event must know its namespace beforehand."""
    body = {**CONTENT[kind], "metadata": {"name": name, **metadata}}
    if kind is EVENTS:
        body["involvedObject"] = {"kind": "Machine", "name": "worker-1", "namespace": namespace}
    return body


def config_map(name: str, **metadata: Any) -> Json:
    return sample(CONFIG_MAPS, name, **metadata)


def pod(name: str, **spec: Any) -> Json:
    return {"metadata": {"name": name}, "spec": {"containers": CONTAINERS, **spec}}


def annotate(**annotations: str | None) -> Json:
    """A merge-patch that sets these annotations, and removes those that are None."""
    return {"metadata": {"annotations": annotations}}


def name_of(obj: Json) -> str:
    return str(obj["metadata"]["name"])


def names_of(items: list[Json]) -> list[str]:
    return [name_of(item) for item in items]


def uid_of(obj: Json) -> str:
    return str(obj["metadata"]["uid"])


def version_of(obj: Json) -> str:
    return str(obj["metadata"]["resourceVersion"])


def annotations_of(obj: Json) -> dict[str, str]:
    return dict(obj["metadata"].get("annotations", {}))
