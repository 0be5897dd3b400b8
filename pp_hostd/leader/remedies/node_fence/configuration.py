"""A NodeRemedyConfiguration as the leader reads it: which Nodes, from which condition on, and what is done for them.

Reading is generous: the short forms of the proposal that this kind comes from count like the long ones.
"""

from __future__ import annotations

import enum
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Callable, TypeVar

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import NODE_REMEDY_CONFIGURATIONS
from pp_hostd.leader.caches import Cache
from pp_hostd.leader.facts.limits import parse_duration
from pp_hostd.leader.facts.nodes import NodeFacts
from pp_hostd.leader.facts.selector import Requirement, Selector, parse_selector
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Kind
from pp_hostd.leader.steps.status import stored_conditions
from pp_hostd.model.keys import PAUSED_NODE
from pp_hostd.model.record import NAME, OPAQUE, PROSE, Fields, Refused, Unreadable, matching, read

CONFIGURATION = Kind(NODE_REMEDY_CONFIGURATIONS.kind)
STATUSES = ("True", "False", "Unknown")
MOST_THRESHOLDS = 20
MOST_REMEDIES = 20
"""So many remedies a ladder has at most, and so many remedyConfigs there are."""
MOST_STORAGE = 20
DEFAULT_TIMEOUT_SECONDS = 600
MOST_TIMEOUT_SECONDS = 86400
CONDITIONS = FENCING_ALLOWED, OVERLAPPING = "FencingAllowed", "Overlapping"
Part = TypeVar("Part")


class Fences(enum.Enum):
    """The part of a node that a remedy cuts off once it has succeeded: none, some storage, or all of it."""

    NONE = "none"
    STORAGE = "storage"
    POWER = "power"


@frozen
class LadderRemedy:
    """One rung of a ladder. The next one runs if the node is not well so long after it. `clean` wants the node's
    workloads freed, as far as the remedy fences them."""

    name: str
    period_seconds: float = 0.0
    clean: bool = False


@frozen
class Threshold:
    """A Node that has had this condition for at least so long is fenced. Without `remedies` its own fence
    configuration is carried out: isolation, power management, recovery. `recovery` is empty if there is none."""

    condition: str
    status: str
    period_seconds: float
    remedies: tuple[LadderRemedy, ...] = ()
    recovery: str = ""

    def __str__(self) -> str:
        return f"{self.condition}={self.status} for at least {self.period_seconds:.10g} s"


@frozen
class RemedyConfig:
    """A remedy that runs as a pod. `pod` is its template as JSON text, always in the same order. `storage` are the
    names of the StorageClasses or CSI drivers that it cuts the node off from."""

    name: str
    pod: str
    timeout_seconds: int = DEFAULT_TIMEOUT_SECONDS
    fences: Fences = Fences.NONE
    storage: tuple[str, ...] = ()


@frozen
class RemedyRules:
    """Its spec. A remedy that `remedies` do not name is a method of the node's fence configuration, or built in."""

    selector: Selector
    thresholds: tuple[Threshold, ...]
    remedies: tuple[RemedyConfig, ...] = ()


@frozen
class ConfigurationStatus:
    """Its status as it is stored: how many Nodes it selects, how many of them have reached a threshold, the first of
    those that others select, too, and status, reason and message of its conditions by type."""

    generation: int = 0
    selected: int = 0
    matching: int = 0
    overlapping: tuple[str, ...] = ()
    conditions: tuple[tuple[str, str, str, str], ...] = ()


@frozen
class Configuration:
    """`paused` says by whose wish it stands still; empty if it does not."""

    name: str
    uid: str
    resource_version: str
    generation: int
    rules: RemedyRules | Unreadable
    status: ConfigurationStatus = ConfigurationStatus()
    paused: str = ""

    @property
    def key(self) -> str:
        """How it is called, everywhere."""
        return f"{NODE_REMEDY_CONFIGURATIONS.kind} {self.name}"


@frozen
class ConfigurationsSeen:
    """The configurations by name, and the Nodes that they select from. `changes` grows with every change of either."""

    configurations: Mapping[str, Configuration] = field(default_factory=dict)
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)
    changes: int = 0


class ConfigurationsCache(Cache[Configuration]):
    """By name. A status of our own that changes nothing else is no change to judge by."""

    def __init__(self) -> None:
        super().__init__(NODE_REMEDY_CONFIGURATIONS.kind)
        self.seen: dict[str, Configuration] = {}
        self.changes = 0

    def _find(self, api_object: object) -> Configuration | Unreadable:
        return parse_configuration(api_object)

    def _take(self, name: str, found: Configuration | None) -> None:
        before = self.seen.pop(name, None)
        if found is not None:
            self.seen[name] = found
        self.changes += before is None or found is None or _judged_by(before) != _judged_by(found)


def _judged_by(configuration: Configuration) -> object:
    return configuration.uid, configuration.rules, configuration.paused


def parse_configuration(api_object: object) -> Configuration | Unreadable:
    what = f"the {NODE_REMEDY_CONFIGURATIONS.kind}"
    return read(what, lambda source: _configuration(Fields(source)), api_object)


def _configuration(fields: Fields) -> Configuration:
    metadata = fields.section("metadata")
    generation = metadata.anything("generation")
    paused = PAUSED_NODE in metadata.section("annotations")
    return Configuration(
        name=metadata.text("name", NAME),
        uid=metadata.text("uid", OPAQUE),
        resource_version=metadata.text("resourceVersion", OPAQUE),
        generation=generation if isinstance(generation, int) else 0,
        rules=read("its spec", _rules, fields),
        status=_status(fields),
        paused=f"the annotation {PAUSED_NODE}" if paused else "",
    )


def _rules(configuration: Fields) -> RemedyRules:
    spec = configuration.section("spec")
    thresholds = tuple(_each(spec, "thresholdConfigs", _threshold, MOST_THRESHOLDS))
    if not thresholds:
        raise Refused("thresholdConfigs is empty: no Node would ever be fenced")
    _unique("thresholdConfigs", [f"{each.condition}={each.status}" for each in thresholds])
    remedies = tuple(_each(spec, "remedyConfigs", _remedy_config, MOST_REMEDIES))
    _unique("remedyConfigs", [each.name for each in remedies])
    return RemedyRules(_selector(spec.anything("nodeSelector")), thresholds, remedies)


def _each(fields: Fields, key: str, build: Callable[[Fields], Part], most: int) -> Iterator[Part]:
    """Yields what `build` makes of each element. A refusal names the element."""
    elements = list(fields.elements(key))
    if len(elements) > most:
        raise Refused(f"{key} has {len(elements)} elements, and {most} are the most")
    for number, element in enumerate(elements):
        yield _within(f"{key}[{number}]", build, element)


def _within(name: str, build: Callable[[Fields], Part], value: object) -> Part:
    try:
        return build(Fields(value))
    except Refused as refused:
        raise Refused(f"{name}: {refused}") from None


def _unique(key: str, names: list[str]) -> None:
    twice = next((name for name in names if names.count(name) > 1), "")
    if twice:
        raise Refused(f"two elements of {key} are about {twice[:60]}, and one is allowed")


# Which Nodes.

_LABEL = "[A-Za-z0-9](?:[-._/A-Za-z0-9]{0,251}[A-Za-z0-9])?"
_EQUATION = re.compile(rf"\s*({_LABEL})\s*==?\s*((?:{_LABEL})?)\s*")


def _selector(value: object) -> Selector:
    """As Kubernetes has it, or a text like type=compute,zone=a. Without one all Nodes are selected."""
    if value is None:
        return Selector()
    if isinstance(value, str):
        equations = [_EQUATION.fullmatch(each) for each in value.split(",")]
        if None in equations:
            told = "not labels like type=compute,zone=a. To select all Nodes: leave nodeSelector out"
            raise Refused(f"nodeSelector is {value[:60]!a}, {told}")
        return Selector(tuple(Requirement(each[1], "In", (each[2],)) for each in equations if each))
    fields = Fields(value, "nodeSelector")
    for stray in fields.without("matchLabels", "matchExpressions"):
        told = "and only matchLabels and matchExpressions are allowed, or a text like type=compute"
        raise Refused(f"nodeSelector has {str(stray)[:60]!a}, {told}")
    return parse_selector(fields)


# From which condition on, and what then.

_OF_THRESHOLD = ("nodeConditionType", "nodeConditionStatus", "nodeConditionPeriod", "recovery")
_SPELLINGS = {"clean-resourece": "clean-resource"}
"""The proposal's own, which people have copied."""


def _threshold(fields: Fields) -> Threshold:
    condition, status = fields.anything("nodeConditionType"), fields.anything("nodeConditionStatus")
    if not isinstance(condition, str) or not 0 < len(condition) <= 316:
        raise Refused(f"nodeConditionType is {_brief(condition)}, not the type of a condition of Nodes, such as Ready")
    told = str(status).capitalize() if isinstance(status, (bool, str)) else ""
    if told not in STATUSES:
        raise Refused(f"nodeConditionStatus is {_brief(status)}, not one of {', '.join(STATUSES)}")
    remedies = _ladder(fields)
    recovery = ""
    if fields.anything("recovery") is not None:
        recovery = _within("recovery", lambda entry: entry.text("name", NAME), _entry(fields, "recovery", ("name",)))
    if recovery and not remedies:
        raise Refused("recovery is set without remedy1: without remedies the node's fence configuration names recovery")
    period_seconds = parse_duration(fields.anything("nodeConditionPeriod"), "nodeConditionPeriod")
    return Threshold(condition, told, period_seconds, remedies, recovery)


def _ladder(fields: Fields) -> tuple[LadderRemedy, ...]:
    given = [key for key, value in fields.without(*_OF_THRESHOLD).items() if value is not None]
    wanted = [f"remedy{number + 1}" for number in range(min(len(given), MOST_REMEDIES))]
    for stray in sorted(set(map(str, given)).difference(wanted)):
        others = ", ".join(_OF_THRESHOLD)
        told = f"beside {others} only remedy1 to remedy{MOST_REMEDIES} are allowed, in order and without a gap"
        raise Refused(f"it has {stray[:60]!a}: {told}")
    entries = [_entry(fields, key, ("name", "period", "clean-resource")) for key in wanted]
    for key, entry in zip(wanted[:-1], entries):
        if entry.get("period") is None:
            raise Refused(f"{key} has no period, and another remedy follows: say how long {key} has to help, like 3m")
    return tuple(_within(key, _rung, entry) for key, entry in zip(wanted, entries))


def _entry(fields: Fields, key: str, allowed: tuple[str, ...]) -> Json:
    """The entry of a ladder: a map, or a list of maps."""
    value = fields.anything(key)
    entry: Json = {}
    for part in value if isinstance(value, list) else [value]:
        for given, content in Fields(part, key).without().items():
            spelled = _SPELLINGS.get(given, given)
            if spelled not in allowed:
                raise Refused(f"{key} has {str(given)[:60]!a}, and only {', '.join(allowed)} are allowed")
            if spelled in entry:
                raise Refused(f"{key} has {spelled} twice")
            entry[spelled] = content
    return entry


def _rung(entry: Fields) -> LadderRemedy:
    period, clean = entry.anything("period"), entry.anything("clean-resource")
    if not isinstance(clean, (bool, type(None))):
        raise Refused(f"clean-resource is {_brief(clean)}, not true or false")
    seconds = 0.0 if period is None else parse_duration(period, "period")
    return LadderRemedy(entry.text("name", NAME), seconds, bool(clean))


# The pods of remedies.


def _remedy_config(fields: Fields) -> RemedyConfig:
    fences = fields.choice("fences", Fences) if fields.anything("fences") is not None else Fences.NONE
    storage = tuple(matching(each, NAME, "an element of storage") for each in fields.elements("storage"))
    if len(storage) > MOST_STORAGE:
        raise Refused(f"storage has {len(storage)} elements, and {MOST_STORAGE} are the most")
    if bool(storage) != (fences is Fences.STORAGE):
        told = "storage names StorageClasses or CSI drivers: it is needed for fences: storage, and allowed for it alone"
        raise Refused(told)
    timeout, seconds = "timeoutSeconds", DEFAULT_TIMEOUT_SECONDS
    if fields.anything(timeout) is not None:
        seconds = fields.count(timeout, MOST_TIMEOUT_SECONDS)
    return RemedyConfig(
        name=fields.text("name", NAME),
        pod=_within("podTemplate", _pod, fields.anything("podTemplate")),
        timeout_seconds=seconds,
        fences=fences,
        storage=storage,
    )


def _pod(template: Fields) -> str:
    spec = template.section("spec")
    changed = {"containers": [_container(Fields(each, "a container")) for each in spec.elements("containers")]}
    if not changed["containers"]:
        raise Refused("spec.containers is empty: a remedy runs in a container")
    if "initContainers" in spec:
        changed["initContainers"] = [
            _container(Fields(each, "a container")) for each in spec.elements("initContainers")
        ]
    whole = {**template.without(), "spec": {**spec.without(), **changed}}
    try:
        return json.dumps(whole, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise Refused("it holds something that JSON has no form for, or is nested too deeply") from None


def _container(container: Fields) -> Json:
    """Names in `env` are of Secrets and those in `configmaps` of ConfigMaps, all of whose keys become variables."""
    container.text("name", NAME), container.text("image", PROSE)
    env = list(container.elements("env"))
    secrets = [matching(each, NAME, "a Secret in env") for each in env if isinstance(each, str)]
    maps = [matching(each, NAME, "an element of configmaps") for each in container.elements("configmaps")]
    variables = [each for each in env if not isinstance(each, str)]
    sources = [
        *container.elements("envFrom"),
        *({"secretRef": {"name": each}} for each in secrets),
        *({"configMapRef": {"name": each}} for each in maps),
    ]
    made = container.without("env", "envFrom", "configmaps")
    return {**made, **({"env": variables} if variables else {}), **({"envFrom": sources} if sources else {})}


# Its status.


def _status(configuration: Fields) -> ConfigurationStatus:
    """A status that somebody else has garbled counts as none: the leader writes it again."""
    try:
        status = configuration.section("status")
        return ConfigurationStatus(
            generation=_number(status, "observedGeneration"),
            selected=_number(status, "selectedNodes"),
            matching=_number(status, "matchingNodes"),
            overlapping=tuple(map(str, status.elements("overlappingNodes"))),
            conditions=stored_conditions(status, CONDITIONS),
        )
    except Refused:
        return ConfigurationStatus()


def _number(fields: Fields, key: str) -> int:
    value = fields.anything(key)
    return value if isinstance(value, int) else -1


def _brief(value: object) -> str:
    return "missing" if value is None else ascii(str(value)[:40])
