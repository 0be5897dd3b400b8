"""A cluster whose one host has a BMC and no agent: real API, leader, helper, packaged fence agents and BMCs."""

from __future__ import annotations

import asyncio
import contextlib
from base64 import b64encode
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from pp_hostd.fencing.call import AgentReply, is_done
from pp_hostd.fencing.client import run_agent
from pp_hostd.kube.resources import (
    CONFIG_MAPS,
    KUBELET_LEASES,
    LEASES,
    NAMESPACES,
    NODE_FENCES,
    NODE_REMEDY_CONFIGURATIONS,
    NODES,
    PODS,
    SECRETS,
)
from pp_hostd.model.keys import NAMESPACE
from tests.bmc.rig import NODE, PLACE, SETTINGS, Json, Rig
from tests.bmc.simulator import PASSWORD
from tests.fencing.bmcs import Bmc, Ipmi
from tests.fencing.helpers import Helpers
from tests.fencing.values import a_call
from tests.harness.eventually import eventually
from tests.leader.access.people import pp_leader

FENCE = f"node-fence-{NODE}"
UNKNOWN = {"nodeConditionType": "Ready", "nodeConditionStatus": "Unknown", "nodeConditionPeriod": "1s"}


class FenceSite(Rig):
    """`begin` is how to get one. The test itself is the kubelet: `report` is its word. Agents are those of the host, or
    those in `agents`."""

    settings: Mapping[str, Any] = {**SETTINGS, "api.machines": "node", "power.cycle": False}

    @classmethod
    @contextlib.contextmanager
    def begin(cls, directory: Path, *agents: Path) -> Iterator[FenceSite]:
        with Helpers.listening(directory / "sock", *agents) as helpers:
            cls.environment = (f"PP_LEADER_FENCE_SOCKET={helpers.path}",)
            with cls.on([]) as site:
                assert isinstance(site, FenceSite)
                yield site

    def _build(self) -> None:
        self.create(NAMESPACES, {"metadata": {"name": PLACE}})
        self.give(self.bmc_of_host())
        self.install()
        self.configure({"power_management": "bmc"})
        self.remedy(UNKNOWN)
        self.create(NODES, {"metadata": {"name": NODE}})
        self.create(LEASES, {"metadata": {"name": NODE}, "spec": {"holderIdentity": NODE}}, KUBELET_LEASES)
        self.report("True", "boot-1")
        self.add_pod("web-0")
        self.start_leader()

    def install(self) -> None:
        install = ["install", "--kubeconfig", str(self.cluster.kubeconfig()), "--machines", "node"]
        done = pp_leader(*install, "--flows", "node-fence")
        assert done.returncode == 0, done.stderr

    def bmc_of_host(self) -> Bmc:
        return Ipmi(self.supervisor)

    def give(self, bmc: Bmc) -> None:
        """To the host."""
        self.bmc = bmc
        bmc.start()

    def configure(self, lists: Mapping[str, str], **methods: str) -> None:
        """The host's methods: these lists beside the default ones, `bmc`, and these others."""
        secret = {"password": b64encode(PASSWORD.encode()).decode()}
        self.create(SECRETS, {"metadata": {"name": "bmc"}, "data": secret}, NAMESPACE)
        access = {**self.bmc.access, "agent_name": self.bmc.agent, "password_secret": "bmc/password"}
        del access["password"]
        self.create_map("fence-method-template-bmc", {"config.properties": properties(access)})
        self.create_map("fence-cluster-config", {"config.properties": "grace_timeout=1s\n"})
        described = {"bmc": "template=fence-method-template-bmc\naction=reboot\n", **methods}
        data = {f"fence-method-{name.replace('_', '-')}": text for name, text in described.items()}
        self.create_map(f"fence-config-{NODE}", {"config.properties": properties(lists), **data})

    def remedy(self, threshold: Json, *remedies: Json) -> None:
        """From when on Nodes are fenced, and the remedies that run as Jobs."""
        spec = {"thresholdConfigs": [threshold], "remedyConfigs": list(remedies)}
        self.create(NODE_REMEDY_CONFIGURATIONS, {"metadata": {"name": "all"}, "spec": spec})

    def create_map(self, name: str, data: dict[str, str]) -> None:
        self.create(CONFIG_MAPS, {"metadata": {"name": name}, "data": data}, NAMESPACE)

    def report(self, ready: str, boot: str, node: str = NODE) -> None:
        """The kubelet's word, or the node controller's."""
        since = "2026-01-01T00:00:00Z"
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": since, "lastHeartbeatTime": since}
        info = dict.fromkeys(_INFO.split(), "")
        change = {"conditions": [condition], "nodeInfo": {**info, "bootID": boot}}
        self.patch(NODES, node, {"status": change}, subresource="status")

    def renew(self) -> None:
        """The kubelet's Lease, as a kubelet does that is back."""
        renewed = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        self.patch(LEASES, NODE, {"spec": {"renewTime": renewed}}, KUBELET_LEASES)

    def is_over(self) -> bool:
        """Whether its flow is final, while its kubelet lives."""
        self.renew()
        return self.fence().get("status") == "Final"

    def fence(self) -> dict[str, Any]:
        """The NodeFence; empty if there is none."""
        return self.find(NODE_FENCES, FENCE) or {}

    def has_pod(self) -> bool:
        return self.find(PODS, "web-0", PLACE) is not None

    def switch_on(self) -> None:
        """By its BMC, as soon as that answers."""
        eventually(lambda: is_done(self.act("on")), "the host is on", 60)

    def act(self, action: str) -> AgentReply:
        """Has the agent of its BMC do this."""
        call = a_call(self.bmc.access, self.bmc.agent, action)
        return asyncio.run(run_agent(self.environment[0].partition("=")[2], call))


def properties(values: Mapping[str, str]) -> str:
    return "".join(f"{key}={value}\n" for key, value in values.items())


_INFO = """
machineID systemUUID kernelVersion osImage containerRuntimeVersion kubeletVersion kubeProxyVersion operatingSystem
architecture
"""
