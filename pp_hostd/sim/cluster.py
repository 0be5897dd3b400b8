"""The cluster that a bad day comes to: its machines, how workloads are freed, and which kubelets no gate holds."""

from __future__ import annotations

from pp_hostd.frozen import frozen, replace
from pp_hostd.kube.resources import MACHINES, NODES, Resource
from pp_hostd.leader.requests.remediation_objects.remediation import METAL3, POISON_PILL
from pp_hostd.model.gate_kind import AUTO, GateFacts, gate_kind, hindrance
from pp_hostd.model.promise import GateKind
from pp_hostd.model.settings import Settings

MACHINES_IN = "machines"
OFF_TIMEOUT_SECONDS = 20.0
"""Unlike the default: bad days are short."""


@frozen
class Cluster:
    """`machines` is the setting of that name, `strategy` that of the leaders; empty is what the settings say. `tainted`
    are the hosts with a `taint` gate. The kubelets of `api_on` start the API servers; if empty, those are elsewhere."""

    machines: str = "openshift"
    strategy: str = ""
    tainted: tuple[str, ...] = ()
    api_on: tuple[str, ...] = ()
    arm_pairs: bool = True
    """Unlike the default: what nobody relies on needs no bad day."""
    resets_per_hour: str = "1000"
    """Unlike the default: on most bad days nobody waits for an hour to end."""
    power_cycles: bool = False
    """Whether its machines stand on BareMetalHosts, which the leader has switched off and on."""
    fallback: bool = False
    requested_by: str = ""
    """The kind of the objects by which a health check requests remediation; if empty, by the annotation."""

    health_checks: bool = False
    """Whether it has a NodeHealthCheck of ours, and agents that probe each other."""
    fenced: tuple[str, ...] = ()
    """By which methods each of its hosts is fenced, in their order; see sim/fence_methods.py. Empty: nobody fences."""
    thresholds: bool = False
    """Whether it has a NodeRemedyConfiguration, by which the leader makes NodeFences, too."""
    agentless: tuple[str, ...] = ()
    """The hosts on which no agent runs."""
    unenrolled: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"machines: {self.machines}", f"strategy: {self.strategy}" if self.strategy else ""]
        parts.append(f"taint gate: {', '.join(self.tainted)}" if self.tainted else "")
        parts.append(f"API on: {', '.join(self.api_on)}" if self.api_on else "")
        parts.append(f"power cycles{', with fallback' if self.fallback else ''}" if self.power_cycles else "")
        parts.append(f"requested by: {self.requested_by}" if self.requested_by else "")
        parts.append("health checks" if self.health_checks else "")
        parts.append(f"fenced by: {', '.join(self.fenced)}" if self.fenced else "")
        parts.append("thresholds" if self.thresholds else "")
        parts.append(f"no agent: {', '.join(self.agentless)}" if self.agentless else "")
        parts.append(f"not enrolled: {', '.join(self.unenrolled)}" if self.unenrolled else "")
        return "; ".join(filter(None, parts))

    @property
    def kind(self) -> Resource:
        return self.served(MACHINES[self.machines])

    def served(self, versions: tuple[Resource, ...]) -> Resource:
        """The one version that it serves of a kind."""
        return versions[-1]

    @property
    def machines_are_nodes(self) -> bool:
        return self.kind is NODES

    def machine_key(self, node: str) -> str:
        return node if self.machines_are_nodes else f"{MACHINES_IN}/{node}"

    def place(self, node: str) -> tuple[Resource, str, str]:
        """Kind, namespace and name of a node's machine."""
        return self.kind, "" if self.machines_are_nodes else MACHINES_IN, node

    def naming(self, node: str) -> dict[str, str]:
        """The annotations by which a Node names its machine."""
        if self.machines == "openshift":
            return {"machine.openshift.io/machine": self.machine_key(node)}
        if self.machines == "cluster-api":
            return {"cluster.x-k8s.io/cluster-namespace": MACHINES_IN, "cluster.x-k8s.io/machine": node}
        return {}

    def gate(self, node: str) -> GateKind:
        """As each agent finds it on its host."""
        if node in self.tainted or node in self.agentless:
            return GateKind.TAINT
        return gate_kind(AUTO, hindrance(GateFacts("kube-apiserver.yaml" if node in self.api_on else "")))

    def settings(self, given: Settings, node: str = "") -> Settings:
        """Those of this cluster, or of one of its hosts."""
        return replace(
            given,
            api=replace(given.api, machines=self.machines),
            agent=replace(given.agent, gate=self.gate(node).value, arm_pairs=self.arm_pairs),
            leader=replace(
                given.leader,
                strategy=self.strategy or given.leader.strategy,
                resets_per_hour=self.resets_per_hour,
            ),
            remediations=replace(
                given.remediations,
                poison_pill=self.requested_by == POISON_PILL.name,
                metal3=self.requested_by == METAL3.name,
            ),
            power=replace(
                given.power, cycle=self.power_cycles, fallback=self.fallback, off_timeout_seconds=OFF_TIMEOUT_SECONDS
            ),
        )


PLAIN = Cluster()
