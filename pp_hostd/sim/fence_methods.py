"""The ConfigMaps of a simulated cluster that fences its hosts: each host's methods, and the times of all flows."""

from __future__ import annotations

from pp_hostd.kube.resources import CONFIG_MAPS, NODE_REMEDY_CONFIGURATIONS, VOLUME_CLAIMS, VOLUMES
from pp_hostd.leader.remedies.node_fence.config_maps import CLUSTER, CONFIG, METHOD, PROPERTIES
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.sim.api import Api, Json
from pp_hostd.sim.leader_port import PODS_IN, claim_of

IPMI, SWITCH, NETWORK = "fence_ipmilan", "fence_brocade", "fence_ifmib"
STORAGE = "san"
DEFAULT, REBOOT, OFF_ON, STORED, STORED_ALONE, UNPLUGGED, WRONG_PLUG = METHODS = (
    "default",
    "reboot",
    "off and on",
    "storage",
    "storage alone",
    "network",
    "wrong plug",
)
"""Default: no ConfigMap, so the host is restarted by another remedy. Storage: its port is switched off before its
power, or it alone. Network: a port that fences nothing goes first. Wrong plug: the plug is that of the next host."""
TIMES = {
    "grace_timeout": "5s",
    "boot_timeout": "70s",
    "step_retries": "1",
    "giveup_retries": "2",
    "max_at_once": "2",
    "kdump": "true",
    "kdump_timeout": "20s",
}
AGENT_SECONDS = 8
_LISTS = {
    REBOOT: ("mark-unschedulable", "ipmi", "mark-schedulable"),
    OFF_ON: ("mark-unschedulable", "ipmi-off ipmi-on", "mark-schedulable"),
    STORED: ("san-off", "ipmi", "san-on mark-schedulable"),
    STORED_ALONE: ("mark-unschedulable san-off", "", "san-on mark-schedulable"),
    UNPLUGGED: ("net-off", "ipmi", "net-on mark-schedulable"),
    WRONG_PLUG: ("mark-unschedulable", "ipmi", "mark-schedulable"),
}
_METHODS = {
    "ipmi": (IPMI, "reboot"),
    "ipmi-off": (IPMI, "off"),
    "ipmi-on": (IPMI, "on"),
    "san-off": (SWITCH, "off"),
    "san-on": (SWITCH, "on"),
    "net-off": (NETWORK, "off"),
    "net-on": (NETWORK, "on"),
}


SPEC: Json = {
    "thresholdConfigs": [
        {"nodeConditionType": "Ready", "nodeConditionStatus": "Unknown", "nodeConditionPeriod": "6s"},
    ]
}
"""Of the NodeRemedyConfiguration, whose period is about as long as the controller's patience."""


def has_storage(methods: str) -> bool:
    return methods in (STORED, STORED_ALONE)


def fill_fences(api: Api, names: list[str]) -> None:
    """The ConfigMaps, and the volume of each host whose storage can be cut off."""
    _store(api, CLUSTER, {PROPERTIES: _properties(TIMES)})
    if api.cluster.thresholds:
        api.create(NODE_REMEDY_CONFIGURATIONS, "", {"metadata": {"name": "all"}, "spec": SPEC})
    for number, (name, methods) in enumerate(zip(names, api.cluster.fenced)):
        if methods != DEFAULT:
            plug = names[(number + 1) % len(names)] if methods == WRONG_PLUG else name
            _store(api, f"{CONFIG}{name}", config(methods, plug))
        if has_storage(methods):
            claim = claim_of(name)
            body = {"metadata": {"name": claim}, "spec": {"volumeName": claim}}
            api.create(VOLUME_CLAIMS, PODS_IN, body)
            api.create(VOLUMES, "", {"metadata": {"name": claim}, "spec": {"storageClassName": STORAGE}})


def config(methods: str, plug: str) -> dict[str, str]:
    """The data of a host's ConfigMap."""
    isolation, power, recovery = _LISTS[methods]
    lists = {"isolation": isolation, "power_management": power, "recovery": recovery}
    described = {}
    for name, (agent, action) in _METHODS.items():
        given = {"agent_name": agent, "action": action, "plug": plug, "timeout_seconds": str(AGENT_SECONDS)}
        described[f"{METHOD}{name}"] = _properties({**given, **({"storage": STORAGE} if agent == SWITCH else {})})
    return {PROPERTIES: _properties(lists), **described}


def _properties(values: dict[str, str]) -> str:
    return "\n".join(f"{key}={value}" for key, value in values.items())


def _store(api: Api, name: str, data: Json) -> None:
    api.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": name}, "data": data})
