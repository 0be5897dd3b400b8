"""The ConfigMaps of fencing, in our namespace: a node's methods, templates of devices, and the cluster's own numbers.

`fence-config-NODE` has a node's three lists of methods and each method's parameters, `fence-method-template-NAME` what
all methods on one device share, `fence-cluster-config` the times and limits of all flows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import field
from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.leader.caches import Cache
from pp_hostd.leader.facts.limits import parse_duration
from pp_hostd.leader.remedies.node_fence.fence import MOST_METHODS, Step
from pp_hostd.model.endpoint import is_address
from pp_hostd.model.record import NAME, Fields, Form, Refused, Unreadable, matching, read

CONFIG, TEMPLATE, CLUSTER = "fence-config-", "fence-method-template-", "fence-cluster-config"
PROPERTIES, METHOD = "config.properties", "fence-method-"
MARK_UNSCHEDULABLE, RESTART_INSTANCE, MARK_SCHEDULABLE = "mark-unschedulable", "restart-instance", "mark-schedulable"
MOST_LINES, MOST_CHARACTERS = 200, 4000
MOST_NODES = 100000
_PACE = re.compile(r"\d{1,6}(\.\d{1,3})?")
_KEY = Form("the name of a parameter", re.compile("[A-Za-z][A-Za-z0-9_-]{0,60}"))
_METHOD_NAME = Form("the name of a method", re.compile("[a-z0-9](?:[-.a-z0-9]{0,61}[a-z0-9])?"))
_LISTS = {"isolation": Step.ISOLATION, "power_management": Step.POWER_MANAGEMENT, "recovery": Step.RECOVERY}
Parameters = tuple[tuple[str, str], ...]
HOST, JOB = "host", "job"


@frozen
class FenceConfig:
    """A node's methods: their names by step, and the parameters of those that the ConfigMap itself describes."""

    steps: Mapping[Step, tuple[str, ...]]
    methods: Mapping[str, Parameters] = field(default_factory=dict)


DEFAULT_CONFIG = FenceConfig(
    {
        Step.ISOLATION: (MARK_UNSCHEDULABLE,),
        Step.POWER_MANAGEMENT: (RESTART_INSTANCE,),
        Step.RECOVERY: (MARK_SCHEDULABLE,),
    }
)
"""Of a node that has no ConfigMap."""


@frozen
class ClusterConfig:
    """All numbers that hold for every flow."""

    grace_seconds: float = 300.0
    """Between the end of isolation and power management, for the node to become Ready by itself."""
    boot_seconds: float = 600.0
    """A host that was power-cycled has that long to become Ready."""
    step_retries: int = 2
    """A method that fails is tried again so many times in a step."""
    giveup_retries: int = 5
    """A flow that fails begins again so many times."""
    max_at_once: int = 1
    """So many nodes are fenced at the same time."""
    kdump: bool = False
    kdump_seconds: float = 0.0
    """Power management waits so long for the dump of a kernel that has crashed."""
    executor: str = HOST
    """Where fence agents run: beside the leader, or in Jobs."""
    agent_image: str = ""
    """The image of those Jobs."""
    drain_seconds: float = 120.0
    """A drain ends after that."""
    max_non_responsive: str = "40%"
    """While more Nodes than this are not Ready, or have reached a threshold, no flow begins."""
    deletions_per_second: float = math.inf
    """No more pods are freed in a second, whatever the leader's own setting allows."""
    storage_probe: tuple[str, int] | None = None
    """The address and the port of the storage; no flow begins while it does not answer."""


Content = Union[FenceConfig, Parameters, ClusterConfig]


@frozen
class _Kept:
    """One that can't be read is kept as it is, since a flow must not fall back to the default then."""

    content: Content | Unreadable


class FenceConfigMaps(Cache[_Kept]):
    """Those of nodes and of templates by name, and that of the cluster."""

    def __init__(self) -> None:
        super().__init__("ConfigMap")
        self.of_nodes: dict[str, FenceConfig | Unreadable] = {}
        self.templates: dict[str, Parameters | Unreadable] = {}
        self.cluster: ClusterConfig | Unreadable = ClusterConfig()

    def _find(self, api_object: object) -> _Kept | None:
        name = read("the name", lambda source: Fields(source).section("metadata").text("name", NAME), api_object)
        if isinstance(name, Unreadable) or not (name.startswith((CONFIG, TEMPLATE)) or name == CLUSTER):
            return None
        return _Kept(read("it", lambda source: _content(name, Fields(source).texts("data")), api_object))

    def _fault(self, found: _Kept | Unreadable | None) -> str:
        content = found.content if isinstance(found, _Kept) else None
        return f"{content}. Correct it: until then nothing is fenced by it" if isinstance(content, Unreadable) else ""

    def _take(self, name: str, found: _Kept | None) -> None:
        content = None if found is None else found.content
        if name == CLUSTER:
            self.cluster = content if isinstance(content, (ClusterConfig, Unreadable)) else ClusterConfig()
            return
        self.of_nodes.pop(name[len(CONFIG) :], None) if name.startswith(CONFIG) else None
        self.templates.pop(name[len(TEMPLATE) :], None) if name.startswith(TEMPLATE) else None
        if name.startswith(CONFIG) and isinstance(content, (FenceConfig, Unreadable)):
            self.of_nodes[name[len(CONFIG) :]] = content
        elif name.startswith(TEMPLATE) and isinstance(content, (tuple, Unreadable)):
            self.templates[name[len(TEMPLATE) :]] = content


@frozen
class ConfigMapsSeen:
    """As FenceConfigMaps holds them."""

    of_nodes: Mapping[str, FenceConfig | Unreadable] = field(default_factory=dict)
    templates: Mapping[str, Parameters | Unreadable] = field(default_factory=dict)
    cluster: ClusterConfig | Unreadable = ClusterConfig()

    @property
    def numbers(self) -> ClusterConfig:
        """Those of the cluster; the default ones if nobody can read them."""
        return ClusterConfig() if isinstance(self.cluster, Unreadable) else self.cluster

    def of_node(self, node: str) -> FenceConfig | Unreadable:
        return self.of_nodes.get(node, DEFAULT_CONFIG)


def _content(name: str, data: dict[str, str]) -> Content:
    if name == CLUSTER:
        return _cluster(dict(_properties(data, PROPERTIES)))
    if name.startswith(TEMPLATE):
        return _properties(data, PROPERTIES)
    return _fence_config(name[len(CONFIG) :], data)


def _fence_config(node: str, data: dict[str, str]) -> FenceConfig:
    properties = dict(_properties(data, PROPERTIES))
    about = properties.pop("node_name", node)
    if about != node:
        raise Refused(f"node_name is {about[:60]!r}, and by its name it is about {node}")
    unknown = sorted(properties.keys() - _LISTS.keys())
    if unknown:
        raise Refused(f"{unknown[0]} is none of node_name, {', '.join(_LISTS)}")
    lists = {step: _methods(key, properties.get(key)) for key, step in _LISTS.items()}
    steps = {step: DEFAULT_CONFIG.steps[step] if names is None else names for step, names in lists.items()}
    described = {key[len(METHOD) :]: _properties(data, key) for key in data if key.startswith(METHOD)}
    return FenceConfig(steps, described)


def _methods(key: str, value: str | None) -> tuple[str, ...] | None:
    """The names in a list, between spaces or commas; None if there is no list."""
    if value is None:
        return None
    names = tuple(matching(name, _METHOD_NAME, key) for name in re.split("[ ,]+", value) if name)
    if len(names) > MOST_METHODS:
        raise Refused(f"{key} has {len(names)} methods, and {MOST_METHODS} are allowed")
    return names


def _properties(data: dict[str, str], key: str) -> Parameters:
    """The lines `name=value` under this key. No key is an empty list."""
    found: dict[str, str] = {}
    lines = data.get(key, "").splitlines()
    if len(lines) > MOST_LINES:
        raise Refused(f"{key} has more than {MOST_LINES} lines")
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        name, separator, value = (part.strip() for part in text.partition("="))
        if not separator or not _KEY.pattern.fullmatch(name):
            raise Refused(f"line {number} of {key} is not name=value")
        if name in found:
            raise Refused(f"{key} sets {name} twice")
        if len(value) > MOST_CHARACTERS or not value.isprintable():
            raise Refused(f"the value of {name} in {key} is too long, or not one line of text")
        found[name] = value
    return tuple(found.items())


CLUSTER_KEYS = (
    "grace_timeout",
    "boot_timeout",
    "step_retries",
    "giveup_retries",
    "max_at_once",
    "kdump",
    "kdump_timeout",
    "executor",
    "agent_image",
    "drain_timeout",
    "max_non_responsive",
    "pods_per_second",
    "storage_probe",
)


def _cluster(properties: dict[str, str]) -> ClusterConfig:
    unknown = sorted(properties.keys() - set(CLUSTER_KEYS))
    if unknown:
        raise Refused(f"{unknown[0]} is none of {', '.join(CLUSTER_KEYS)}")
    default = ClusterConfig()

    def seconds(key: str, otherwise: float) -> float:
        return parse_duration(properties[key], key) if key in properties else otherwise

    def number(key: str, otherwise: int, least: int, most: int) -> int:
        text = properties.get(key, str(otherwise))
        if not text.isdecimal() or not least <= int(text[:9]) <= most:
            raise Refused(f"{key} is {text[:40]!r}, not a whole number from {least} to {most}")
        return int(text)

    def word(key: str, otherwise: str, *allowed: str) -> str:
        text = properties.get(key, otherwise)
        if text not in allowed:
            raise Refused(f"{key} is {text[:40]!r}, not one of {', '.join(allowed)}")
        return text

    executor, image = word("executor", HOST, HOST, JOB), properties.get("agent_image", "")
    if executor == JOB and not image:
        raise Refused("executor=job needs agent_image=, an image that has the fence agents and a shell")
    return ClusterConfig(
        grace_seconds=seconds("grace_timeout", default.grace_seconds),
        boot_seconds=seconds("boot_timeout", default.boot_seconds),
        step_retries=number("step_retries", default.step_retries, 0, 100),
        giveup_retries=number("giveup_retries", default.giveup_retries, 0, 100),
        max_at_once=number("max_at_once", default.max_at_once, 1, 1000),
        kdump=word("kdump", "false", "true", "false") == "true",
        kdump_seconds=seconds("kdump_timeout", default.kdump_seconds),
        executor=executor,
        agent_image=image,
        drain_seconds=seconds("drain_timeout", default.drain_seconds),
        max_non_responsive=_share(properties.get("max_non_responsive", default.max_non_responsive)),
        deletions_per_second=_pace(properties.get("pods_per_second", "")),
        storage_probe=_probe(properties.get("storage_probe", "")),
    )


def _share(text: str) -> str:
    number = text[:-1] if text.endswith("%") else text
    if not number.isdecimal() or int(number[:9]) > (100 if text.endswith("%") else MOST_NODES):
        raise Refused(f"max_non_responsive is {text[:40]!r}, not a share of all nodes like 40%, or a number of them")
    return text


def _pace(text: str) -> float:
    if not text:
        return math.inf
    if not _PACE.fullmatch(text) or not float(text):
        raise Refused(f"pods_per_second is {text[:40]!r}, not a number above 0, like 5 or 0.5")
    return float(text)


def _probe(text: str) -> tuple[str, int] | None:
    """An IPv6 address is in brackets. A name is refused: a look-up has no deadline."""
    if not text:
        return None
    address, _, port = text.rpartition(":")
    bare = address[1:-1] if address.startswith("[") and address.endswith("]") else address
    if not is_address(bare) or (":" in bare and bare == address) or not port.isdecimal() or not 0 < int(port) < 65536:
        raise Refused(f"storage_probe is {text[:80]!r}, not ADDRESS:PORT, like 192.0.2.50:3260")
    return bare, int(port)
