"""The workload of the site: a StatefulSet whose pods each have a volume that one node at a time may use."""

from __future__ import annotations

import json
from typing import Any

from pp_hostd.kube.resources import PODS, VOLUME_ATTACHMENTS, Resource
from tests.harness.bed.contents import Contents
from tests.scenarios.endtoend.attacher import DRIVER

Json = dict[str, Any]
NAME, PLACE = "web", "default"
STATEFUL_SETS = Resource("apps", "v1", "StatefulSet", "statefulsets")
VOLUMES = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
CSI_DRIVERS = Resource("storage.k8s.io", "v1", "CSIDriver", "csidrivers", namespaced=False)


class Workload:
    """Pods web-0, web-1, ..., each on a node of its own."""

    def __init__(self, contents: Contents, pods: int) -> None:
        self._contents = contents
        self.pods = [f"{NAME}-{number}" for number in range(pods)]
        contents.create(CSI_DRIVERS, {"metadata": {"name": DRIVER}, "spec": {"attachRequired": True}})
        for pod in self.pods:
            contents.create(VOLUMES, _volume(pod))
        contents.create(STATEFUL_SETS, _stateful_set(pods), PLACE)

    def node_of(self, pod: str) -> str:
        """Where this pod runs, with its volume; nothing while it does not. kwok goes by names: what it says late of a
        pod that is gone can make one "Running" that is on no node yet."""
        found = self._contents.find(PODS, pod, PLACE)
        if found is None or "deletionTimestamp" in found["metadata"] or found["status"].get("phase") != "Running":
            return ""
        node = str(found["spec"].get("nodeName", ""))
        return node if node == self.attached_to(pod) else ""

    def attached_to(self, pod: str) -> str:
        """The node that may use this pod's volume."""
        for attachment in self._contents.items(VOLUME_ATTACHMENTS):
            if attachment["spec"]["source"]["persistentVolumeName"] == pod and attachment["status"].get("attached"):
                return str(attachment["spec"]["nodeName"])
        return ""

    def state(self) -> str:
        """Returns the pods and the VolumeAttachments as JSON, for a person who wonders why the pods do not run."""
        pods = [(each["metadata"], each["spec"].get("nodeName"), each["status"]) for each in self._contents.items(PODS)]
        attachments = [
            (each["metadata"], each["spec"], each.get("status")) for each in self._contents.items(VOLUME_ATTACHMENTS)
        ]
        return json.dumps({"pods": pods, "attachments": attachments}, indent=1)


def _volume(pod: str) -> Json:
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "csi": {"driver": DRIVER, "volumeHandle": pod},
        "claimRef": {"namespace": PLACE, "name": f"data-{pod}"},
    }
    return {"metadata": {"name": pod}, "spec": spec}


def _stateful_set(pods: int) -> Json:
    labels = {"app": NAME}
    apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    container = {"name": NAME, "image": NAME, "volumeMounts": [{"name": "data", "mountPath": "/data"}]}
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    spec = {
        "replicas": pods,
        "podManagementPolicy": "Parallel",
        "selector": {"matchLabels": labels},
        "serviceName": NAME,
        "template": {"metadata": {"labels": labels}, "spec": {"affinity": affinity, "containers": [container]}},
        "volumeClaimTemplates": [claim],
    }
    return {"metadata": {"name": NAME}, "spec": spec}
