"""The methods of a step: a fence agent's call, a Job, or one that is built in. Pure; it runs nothing.

A method proves something only if it is known to cut power or storage, or says so itself (`fences`). All others, a
cordon or a switched-off network port among them, free nothing.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.leader.remedies.node_fence.config_maps import (
    CLUSTER,
    MARK_SCHEDULABLE,
    MARK_UNSCHEDULABLE,
    RESTART_INSTANCE,
    TEMPLATE,
    ClusterConfig,
    ConfigMapsSeen,
    FenceConfig,
    Parameters,
)
from pp_hostd.leader.remedies.node_fence.configuration import Fences, RemedyConfig, RemedyRules, Threshold
from pp_hostd.leader.remedies.node_fence.fence import MOST_METHODS, Step
from pp_hostd.model.record import Form, Refused, Unreadable, matching, read

ON, OFF, REBOOT, STATUS = "on", "off", "reboot", "status"
TIMEOUT_SECONDS, MOST_TIMEOUT_SECONDS = 120, 600
_AGENT = Form("the name of a fence agent", re.compile("fence_[a-z0-9_]{1,60}"))
OURS = frozenset({"template", "agent_name", "action", "fences", "storage", "timeout_seconds"})
_POWER = """
amt amt_ws apc apc_snmp aws azure_arm bladecenter cisco_ucs drac drac5 eaton_snmp eaton_ssh emerson eps gce hds_cb
hpblade ibmblade idrac ilo ilo2 ilo3 ilo3_ssh ilo4 ilo4_ssh ilo5 ilo5_ssh ilo_moonshot ilo_mp ilo_ssh imm intelmodular
ipdu ipmilan ipmilanplus kubevirt ldom lpar netio openstack pve raritan raritan_px3 redfish rhevm rsa rsb tripplite_snmp
virt wti xenapi xvm zvmip
"""
POWER_AGENTS = frozenset(f"fence_{name}" for name in _POWER.split())
STORAGE_AGENTS = frozenset(f"fence_{name}" for name in ("brocade", "cisco_mds", "mpath", "sanbox2", "scsi"))
_LIES = frozenset({"missing_as_off", "network_fencing", "record_only"})
_OLD_NAMES = {"ipaddr": "ip", "login": "username", "passwd": "password", "port": "plug"}
"""Of parameters, which agents take as well."""
NETWORK_AGENTS = frozenset({"fence_ifmib"})


class BuiltIn(enum.Enum):
    """The methods that the leader itself has."""

    MARK_UNSCHEDULABLE = MARK_UNSCHEDULABLE
    MARK_SCHEDULABLE = MARK_SCHEDULABLE
    RESTART_INSTANCE = RESTART_INSTANCE
    """The BareMetalHost if there is one, else the poison pill."""
    POWER_CYCLE = "power-cycle"
    POISON_PILL = "poison-pill"
    CLEAN_PODS = "clean-pods"
    TAINT = "taint"
    """Cordons, and has Kubernetes evict the pods that tolerate no such taint."""
    DRAIN = "drain"
    KDUMP = "kdump"
    """Waits for a kernel that saves its dump."""
    CONFIRM = "confirm"
    """Waits until a person confirms that the host is dead."""


@frozen
class SecretReference:
    """A parameter whose value is in a Secret of our namespace."""

    parameter: str
    name: str
    key: str


@frozen
class AgentMethod:
    """One action of a fence agent. `storage` names the StorageClasses or CSI drivers that it cuts off."""

    name: str
    action: str
    agent: str
    parameters: Parameters
    secrets: tuple[SecretReference, ...]
    fences: Fences
    storage: tuple[str, ...]
    seconds: float


@frozen
class JobMethod:
    """A remedy that runs as a Job, or a fence agent's action that does."""

    name: str
    config: RemedyConfig
    action: str = ""

    @property
    def fences(self) -> Fences:
        return self.config.fences

    @property
    def storage(self) -> tuple[str, ...]:
        return self.config.storage


@frozen
class BuiltInMethod:
    """One that the leader itself has. It proves nothing by itself."""

    built_in: BuiltIn
    action: str = ""
    fences: Fences = Fences.NONE
    storage: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.built_in.value


Method = Union[AgentMethod, JobMethod, BuiltInMethod]


def methods_of(
    step: Step,
    node: str,
    provider: str,
    config_maps: ConfigMapsSeen,
    rules: RemedyRules | None,
    cause: Threshold | None,
) -> tuple[Method, ...] | Unreadable:
    """The methods of this step, in order. `cause` is the threshold that has triggered the flow: its ladder, if it has
    one, goes before the node's own lists. `provider` is the Node's spec.providerID."""
    return read(f"{step.value} of {node}", lambda _: _methods(step, node, provider, config_maps, rules, cause), None)


def _methods(
    step: Step,
    node: str,
    provider: str,
    config_maps: ConfigMapsSeen,
    rules: RemedyRules | None,
    cause: Threshold | None,
) -> tuple[Method, ...]:
    jobs = {} if rules is None else {each.name: each for each in rules.remedies}
    config = config_maps.of_node(node)
    if isinstance(config, Unreadable):
        raise Refused(str(config))
    found: list[Method] = []
    for name in names_of(step, config, cause):
        if name in config.methods:
            found += _agent_methods(name, dict(config.methods[name]), node, provider, config_maps.templates)
        elif name in jobs:
            found.append(JobMethod(name, jobs[name]))
        else:
            found.append(_built_in(name))
    cluster = config_maps.cluster
    if BuiltInMethod(BuiltIn.KDUMP) in found and isinstance(cluster, ClusterConfig) and not cluster.kdump:
        raise Refused(f"method {BuiltIn.KDUMP.value} needs kdump=true in ConfigMap {CLUSTER}")
    if len(found) > MOST_METHODS:
        raise Refused(f"it has {len(found)} methods (a reboot is two), and {MOST_METHODS} are allowed")
    return tuple(found)


def names_of(step: Step, config: FenceConfig, cause: Threshold | None) -> tuple[str, ...]:
    """The names of the methods of this step, in order: those of the ladder if there is one, else the node's own."""
    if cause is None or not cause.remedies:
        return config.steps[step]
    if step is Step.ISOLATION:
        return tuple(each.name for each in cause.remedies)
    return (cause.recovery,) if step is Step.RECOVERY and cause.recovery else ()


def _built_in(name: str) -> BuiltInMethod:
    for each in BuiltIn:
        if each.value == name:
            return BuiltInMethod(each)
    known = ", ".join(each.value for each in BuiltIn)
    raise Refused(
        f"there is no method {name}: it is none of {known}, no remedyConfig of the configuration, and fence-config has "
        f"no fence-method-{name}"
    )


def _agent_methods(
    name: str,
    own: dict[str, str],
    node: str,
    provider: str,
    templates: Mapping[str, Parameters | Unreadable],
) -> list[AgentMethod]:
    """A reboot is an off and an on, so that workloads can be freed between the two."""
    template = own.get("template", "")
    shared = templates.get(template[len(TEMPLATE) :] if template.startswith(TEMPLATE) else template) if template else ()
    if shared is None:
        raise Refused(f"method {name} refers to the template {template}, and there is no such ConfigMap")
    if isinstance(shared, Unreadable):
        raise Refused(f"the template {template} of method {name}: {shared}")
    said = set(map(_meant, own))
    merged = {**{key: value for key, value in dict(shared).items() if _meant(key) not in said}, **own}
    agent = matching(merged.get("agent_name"), _AGENT, f"agent_name of method {name}")
    action = merged.get("action", OFF)
    if action not in (ON, OFF, REBOOT, STATUS):
        raise Refused(f"the action of method {name} is {action[:40]!r}, not one of {ON}, {OFF}, {REBOOT}, {STATUS}")
    secrets = tuple(_secret(name, key, value) for key, value in merged.items() if key.endswith("_secret"))
    given = {key: value for key, value in merged.items() if key not in OURS and not key.endswith("_secret")}
    parameters = {**_of_provider(agent, provider, node), **given}
    names = (*given, *(each.parameter for each in secrets))
    lies = sorted(_LIES.intersection(key.lower().replace("-", "_") for key in names))
    if lies:
        raise Refused(
            f"method {name} sets {lies[0]}, by which an agent may say off of a host that may be on. Remove it"
        )
    fences, storage = _fences(name, agent, merged), tuple(filter(None, re.split("[ ,]+", merged.get("storage", ""))))
    if fences is Fences.STORAGE and not storage and action in (OFF, REBOOT):
        raise Refused(f"method {name} fences storage: storage= must name the StorageClasses or CSI drivers it cuts off")
    seconds = _seconds(name, merged.get("timeout_seconds", str(TIMEOUT_SECONDS)))
    return [
        AgentMethod(name, each, agent, tuple(sorted(parameters.items())), secrets, fences, storage, seconds)
        for each in ((OFF, ON) if action == REBOOT else (action,))
    ]


def _meant(key: str) -> str:
    """The parameter that is meant, whether its value is there or in a Secret, and by its new name."""
    name = key.lower().replace("-", "_")
    name = name[: -len("_secret")] if name.endswith("_secret") else name
    return _OLD_NAMES.get(name, name)


def _fences(name: str, agent: str, merged: dict[str, str]) -> Fences:
    """The evidence that its `off` gives. Of an agent that is known nobody can say another one."""
    known = Fences.POWER if agent in POWER_AGENTS else Fences.STORAGE if agent in STORAGE_AGENTS else None
    known = Fences.NONE if agent in NETWORK_AGENTS else known
    said = merged.get("fences")
    if said is None:
        return known or Fences.NONE
    found = next((each for each in Fences if each.value == said), None)
    if found is None:
        raise Refused(
            f"fences of method {name} is {said[:40]!r}, not one of {', '.join(each.value for each in Fences)}"
        )
    if known is not None and found not in (known, Fences.NONE):
        raise Refused(f"method {name} says that it fences {said}, and {agent} fences {known.value}")
    return found


def _secret(method: str, key: str, value: str) -> SecretReference:
    name, separator, within = value.partition("/")
    if not separator or not name or not within:
        raise Refused(f"{key} of method {method} is not the name of a Secret, a slash, and a key of it")
    return SecretReference(key[: -len("_secret")], name, within)


def _seconds(name: str, text: str) -> float:
    if not text.isdecimal() or not 1 <= int(text[:9]) <= MOST_TIMEOUT_SECONDS:
        raise Refused(f"timeout_seconds of method {name} is not a whole number from 1 to {MOST_TIMEOUT_SECONDS}")
    return float(text)


def _of_provider(agent: str, provider: str, node: str) -> dict[str, str]:
    """The instance of a cloud that the Node's providerID names, as this agent wants it. Empty if it names none."""
    scheme, _, rest = provider.partition("://")
    parts = [part for part in rest.split("/") if part]
    if not parts:
        return {}
    if agent == "fence_aws" and scheme == "aws":
        return {"plug": parts[-1]}
    if agent == "fence_gce" and scheme == "gce" and len(parts) == 3:
        return {"project": parts[0], "zone": parts[1], "plug": parts[2]}
    if agent == "fence_openstack" and scheme == "openstack":
        return {"plug": parts[-1]}
    if agent == "fence_azure_arm" and scheme == "azure":
        named = {key.lower(): value for key, value in zip(parts[::2], parts[1::2])}
        wanted = {"plug": "virtualmachines", "resourceGroup": "resourcegroups", "subscriptionId": "subscriptions"}
        return {key: named[word] for key, word in wanted.items() if word in named}
    return {"plug": node} if agent == "fence_vmware_rest" and scheme == "vsphere" else {}
