"""The host `x` with a BMC and a storage switch beside it; the truth is whether its workloads run, and can write."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pp_hostd.fencing.call import AgentCall, AgentReply
from pp_hostd.kube.resources import NODE_FENCES, NODE_REMEDY_CONFIGURATIONS
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.leader.remedies.node_fence.automaton import begun_again
from pp_hostd.leader.remedies.node_fence.fence import NodeFence, fence_name, parse_fence, rendered
from pp_hostd.leader.remedies.node_fence.seen import DumpsSeen
from pp_hostd.model.observed import NodeSeen, Observed
from pp_hostd.model.reachability import Finding
from pp_hostd.model.record import Unreadable
from tests.leader.virtual_host import HOST, World

IPMI = {"agent_name": "fence_ipmilan", "ip": "192.0.2.7", "username": "admin", "password_secret": "bmc/password"}
SAN = {"agent_name": "fence_brocade", "ip": "192.0.2.9", "storage": "san"}
RENEWAL_SECONDS = 10.0
MOMENT = "2026-03-01T12:00:00Z"


def properties(**values: str) -> str:
    return "\n".join(f"{key}={value}" for key, value in values.items())


class FenceWorld(World):
    """`power` is the truth about its host, `port` that of the storage switch. Modes of the BMC: "obeys", "lies" (an off
    is accepted and never done), "silent", "wrong plug" (another host's power), "slow"."""

    def __init__(self, registry: Registry = REGISTRY, machines: str = "node") -> None:
        self.power, self.port, self.mode = True, True, "obeys"
        self.other_power = True
        self.dumps: dict[str, float] = {}
        self.calls: list[tuple[str, str]] = []
        self.kubelet, self.renewed_at = True, 0.0
        super().__init__(machines, registry=registry)
        for name in (HOST, *self.peers):
            self.report(name, "True")
        self.state(None)  # no agent: the promise of a host without one binds nobody
        self.api.put("secrets", "pp-hostd/bmc", {"metadata": {"name": "bmc"}, "data": {"password": "aHVudGVyMg=="}})

    # The host

    def live(self) -> None:
        """A host without an agent lives for as long as it has power."""
        self.running = self.power and self.boot == self.booted
        if self.power and self.back_at is not None and self.now >= self.back_at:
            self.back_at = None
            self.come_back()
        if self.power:
            self.renew()

    def renew(self) -> None:
        """Its kubelet does, from time to time."""
        if self.kubelet and self.now >= self.renewed_at + self.renewal_seconds:
            self.renewed_at = self.now
            self.leases[HOST] = f"renewed at {self.now}"

    def finding(self, host: str, _by: str) -> Finding:
        return self.reached if host == HOST else True

    renewal_seconds = RENEWAL_SECONDS

    def renews_slowly(self, duration_seconds: int) -> None:
        """All kubelets have a Lease of this duration."""
        self.renewal_seconds = duration_seconds / 4
        self._steps_api.lease_more = {"leaseDurationSeconds": duration_seconds}

    reached = True
    """Whether others reach it."""
    booted = 1
    """The boot in which its workloads were started."""
    boot_seconds = 40.0
    back_at: float | None = None

    def report(self, name: str, ready: str, **conditions: str) -> None:
        known = {"Ready": ready, **conditions}
        found = [{"type": key, "status": value} for key, value in known.items()]
        boot = f"boot-{self.boot if name == HOST else 1}"
        self.api.patch("nodes", name, {"status": {"conditions": found, "nodeInfo": {"bootID": boot}}})

    def cut_off(self) -> None:
        """Its network is gone: it runs on, and its kubelet is silent."""
        self.kubelet = self.reached = False
        self.report(HOST, "Unknown")

    def switch(self, on: bool) -> None:
        if self.power and not on:
            self.power = False
            self.kubelet = False
        elif on and not self.power:
            self.power, self.boot = True, self.boot + 1
            self.back_at = self.now + self.boot_seconds

    def come_back(self) -> None:
        """Its kubelet reports the boot that runs."""
        self.kubelet = True
        self.report(HOST, "True")

    watch_is_late = False
    """Whether the leader sees the Nodes as they were when this began."""
    _nodes: Mapping[str, NodeSeen] | None = None

    def observed(self) -> Observed:
        found = super().observed()
        if not self.watch_is_late or self._nodes is None:
            self._nodes = dict(found.nodes)
        found = replace(found, nodes=self._nodes)
        return replace(found, parts={**found.parts, DumpsSeen: DumpsSeen(self.dumps)})

    def crash(self) -> None:
        """Its kernel is dead, and the one that saves the dump says so."""
        self.power = self.kubelet = False
        self.dumps = {"10.0.0.1": self.now}

    def ends_pods(self, node: str) -> bool:
        return node == HOST and self.kubelet and self.power

    def protect(self, sentence: str) -> None:
        """A disruption budget objects to evictions; empty: no more."""
        self._steps_api.budget = sentence

    # Its devices

    storage_answers = True

    async def connects(self, _address: str, _port: int) -> bool:
        return self.storage_answers

    async def run_agent(self, call: AgentCall) -> AgentReply:
        given = dict(call.parameters)
        action = given["action"]
        self.calls.append((call.agent, action))
        if self.mode == "silent":
            return AgentReply(1, "Connection timed out", "")
        if call.agent == "fence_ipmilan":
            assert given["password"] == "hunter2"
            return self._ipmi(action)
        if action != "status":
            self.port = action == "on"
        return AgentReply((0 if self.port else 2) if action == "status" else 0, "", "")

    def _ipmi(self, action: str) -> AgentReply:
        if self.mode == "wrong plug":
            if action != "status":
                self.other_power = action == "on"
            return AgentReply((0 if self.other_power else 2) if action == "status" else 0, "", "")
        if action == "status":
            return AgentReply(0 if self.power else 2, "", "")
        if self.mode != "lies":
            self.switch(action == "on")
        self.live()
        return AgentReply(0, "", "")

    # Its configuration

    def configure(self, isolation: str = "", power: str = "", recovery: str = "", **methods: dict[str, str]) -> None:
        lists = properties(isolation=isolation, power_management=power, recovery=recovery)
        described = {f"fence-method-{name.replace('_', '-')}": properties(**each) for name, each in methods.items()}
        self.config_map(f"fence-config-{HOST}", {"config.properties": lists, **described})

    def configure_cluster(self, **values: str) -> None:
        self.config_map("fence-cluster-config", {"config.properties": properties(**values)})

    def by_ipmi(self) -> None:
        self.configure("mark-unschedulable", "ipmi", "mark-schedulable", ipmi={**IPMI, "action": "reboot"})

    def fence(self, **more: Any) -> None:
        """As a threshold, or a person, makes it."""
        body = {"metadata": {"name": fence_name(HOST)}, "node": HOST, "step": "Isolation", "status": "New", **more}
        self.api.put(NODE_FENCES.plural, fence_name(HOST), body)

    def edit(self, **changes: Any) -> None:
        self.api.patch(NODE_FENCES.plural, fence_name(HOST), changes)

    def retry(self) -> None:
        """As the command writes it."""
        fence, body = self.found(), self.api.get(NODE_FENCES.plural, fence_name(HOST))
        assert fence is not None and body is not None
        self.edit(**rendered(begun_again(fence.progress, "begun again by anna"), body, MOMENT, MOMENT))

    # Facts

    def found(self) -> NodeFence | None:
        body = self.api.get(NODE_FENCES.plural, fence_name(HOST))
        fence = None if body is None else parse_fence(body)
        assert not isinstance(fence, Unreadable), fence
        return fence

    def is_at(self, step: str, status: str) -> bool:
        fence = self.found()
        return fence is not None and (fence.progress.step.value, fence.progress.status.value) == (step, status)

    def free(self) -> bool:
        return not self.pods[HOST]

    # Jobs, whose controller is somebody else

    def jobs(self) -> list[dict[str, Any]]:
        return list(self.api.objects.get("jobs", {}).values())

    def end_job(self, condition: str = "Complete") -> None:
        """The newest Job ends so."""
        name = list(self.api.objects["jobs"])[-1]
        self.api.patch("jobs", name, {"status": {"conditions": [{"type": condition, "status": "True"}]}})

    def threshold(self, condition: str, status: str, **spec: Any) -> None:
        """A NodeRemedyConfiguration with this threshold, and the NodeFence that it has caused."""
        configs = spec.pop("remedyConfigs", [])
        found = {"nodeConditionType": condition, "nodeConditionStatus": status, "nodeConditionPeriod": "5s", **spec}
        body = {
            "metadata": {"name": "workers"},
            "spec": {"nodeSelector": {}, "thresholdConfigs": [found], "remedyConfigs": configs},
        }
        self.api.put(NODE_REMEDY_CONFIGURATIONS.plural, "workers", body)
        self.fence(cause={"configuration": "workers", "condition": condition, "status": status})
