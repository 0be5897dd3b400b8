"""The kinds of objects that pp-hostd touches, and the paths under which the API serves them."""

from __future__ import annotations

from functools import lru_cache, partial
from urllib.parse import quote

from pp_hostd.frozen import frozen, replace

_quoted = lru_cache(maxsize=64)(partial(quote, safe=""))  # an agent asks for the same few objects as long as it lives


@frozen
class Resource:
    """One kind as the API serves it: group, version, plural name, and whether it lives in a namespace."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool = True

    def __hash__(self) -> int:
        """Few kinds share their plural: to hash all fields would only take longer."""
        return hash(self.plural)

    @property
    def api_version(self) -> str:
        """`v1`, `coordination.k8s.io/v1`: what objects of this kind carry as apiVersion."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str | None = None, name: str | None = None, subresource: str | None = None) -> str:
        """The request path of the collection, of one object, or of its subresource. Names are quoted."""
        parts = ["apis", self.group, self.version] if self.group else ["api", self.version]
        if namespace is not None:
            parts += ["namespaces", namespace]
        parts.append(self.plural)
        parts += [part for part in (name, subresource) if part is not None]
        return "/" + "/".join(map(_quoted, parts))

    def describe(self, namespace: str | None = None, name: str | None = None) -> str:
        """`Node worker-1`, `Lease kube-node-lease/worker-1`: how sentences name an object."""
        if name is None:
            return f"{self.plural} in {namespace}" if namespace else self.plural
        return f"{self.kind} {namespace}/{name}" if namespace else f"{self.kind} {name}"


NODES = Resource("", "v1", "Node", "nodes", namespaced=False)
NAMESPACES = Resource("", "v1", "Namespace", "namespaces", namespaced=False)
PODS = Resource("", "v1", "Pod", "pods")
CONFIG_MAPS = Resource("", "v1", "ConfigMap", "configmaps")
SERVICE_ACCOUNTS = Resource("", "v1", "ServiceAccount", "serviceaccounts")
SECRETS = Resource("", "v1", "Secret", "secrets")
EVENTS = Resource("", "v1", "Event", "events")
KUBELET_LEASES = "kube-node-lease"
"""The namespace where every kubelet renews a Lease of its node's name."""
LEASES = Resource("coordination.k8s.io", "v1", "Lease", "leases")
JOBS = Resource("batch", "v1", "Job", "jobs")
VOLUME_CLAIMS = Resource("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
VOLUMES = Resource("", "v1", "PersistentVolume", "persistentvolumes", namespaced=False)
VOLUME_ATTACHMENTS = Resource("storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", namespaced=False)
OPENSHIFT_MACHINES = Resource("machine.openshift.io", "v1beta1", "Machine", "machines")
OPENSHIFT_HEALTH_CHECKS = Resource("machine.openshift.io", "v1beta1", "MachineHealthCheck", "machinehealthchecks")
CAPI_MACHINES = Resource("cluster.x-k8s.io", "v1beta1", "Machine", "machines")
CAPI_CLUSTERS = Resource("cluster.x-k8s.io", "v1beta1", "Cluster", "clusters")
CAPI_HEALTH_CHECKS = Resource("cluster.x-k8s.io", "v1beta1", "MachineHealthCheck", "machinehealthchecks")
BARE_METAL_HOSTS = Resource("metal3.io", "v1alpha1", "BareMetalHost", "baremetalhosts")
METAL3_REMEDIATIONS = Resource("infrastructure.cluster.x-k8s.io", "v1beta1", "Metal3Remediation", "metal3remediations")
PROPOSED_REMEDIATIONS = Resource("remediation.metal3.io", "v1alpha1", "Metal3Remediation", "metal3remediations")
NODE_HEALTH_CHECKS = Resource("pp-hostd.io", "v1", "NodeHealthCheck", "nodehealthchecks", namespaced=False)
NODE_FENCES = Resource("ha.k8s.io", "v1", "NodeFence", "nodefences", namespaced=False)
NODE_REMEDY_CONFIGURATIONS = Resource(
    "pp-hostd.io", "v1alpha1", "NodeRemedyConfiguration", "noderemedyconfigurations", namespaced=False
)
POISON_PILL_REMEDIATIONS = Resource("pp-hostd.io", "v1", "PoisonPillRemediation", "poisonpillremediations")
METAL3_REMEDIATION_TEMPLATES = Resource(
    "infrastructure.cluster.x-k8s.io", "v1beta1", "Metal3RemediationTemplate", "metal3remediationtemplates"
)


def template_of(kind: Resource) -> Resource:
    """The kind of the templates from which health checks make objects of this kind."""
    template = f"{kind.kind}Template"
    return replace(kind, kind=template, plural=f"{template.lower()}s")


POISON_PILL_REMEDIATION_TEMPLATES = template_of(POISON_PILL_REMEDIATIONS)
REMEDIATIONS = {
    "PoisonPillRemediation": (POISON_PILL_REMEDIATIONS,),
    "Metal3Remediation": (replace(METAL3_REMEDIATIONS, version="v1beta2"), METAL3_REMEDIATIONS),
    "Metal3Remediation of remediation.metal3.io": (PROPOSED_REMEDIATIONS,),
}
"""Remediation objects, by the name of their kind: every version that a cluster may serve, the newest first."""
MACHINES = {
    "openshift": (OPENSHIFT_MACHINES,),
    "cluster-api": (replace(CAPI_MACHINES, version="v1beta2"), CAPI_MACHINES),
    "node": (NODES,),
}
"""The resource of machines, by the setting api.machines: every version that a cluster may serve, the newest first."""
CLUSTERS = (replace(CAPI_CLUSTERS, version="v1beta2"), CAPI_CLUSTERS)
"""To which Cluster API's Machines belong: every version that a cluster may serve, the newest first."""
MACHINE_HEALTH_CHECKS = {
    "openshift": (OPENSHIFT_HEALTH_CHECKS,),
    "cluster-api": (replace(CAPI_HEALTH_CHECKS, version="v1beta2"), CAPI_HEALTH_CHECKS),
}
"""Others' health checks, by the setting api.machines: every version that a cluster may serve, the newest first."""
