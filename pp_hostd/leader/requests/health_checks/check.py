"""A health check as the leader reads it: our own NodeHealthCheck, its rules and its status."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import NODE_HEALTH_CHECKS, Resource
from pp_hostd.leader.caches import Cache
from pp_hostd.leader.facts.limits import Limit, parse_duration, parse_limit
from pp_hostd.leader.facts.nodes import NodeFacts
from pp_hostd.leader.facts.selector import Selector, parse_selector
from pp_hostd.leader.steps.port import Kind
from pp_hostd.leader.steps.status import stored_conditions
from pp_hostd.model.keys import PAUSED_NODE, UNREACHABLE
from pp_hostd.model.record import NAME, OPAQUE, Fields, Form, Refused, Unreadable, read

HEALTH_CHECK = Kind("NodeHealthCheck")
STARTUP_SECONDS = 600.0
DEFAULT_MOST = "40%"
MOST_UNREACHABLE_SECONDS = 3600
_STATUSES = ("True", "False", "Unknown")
_KIND = "Template"
CONDITIONS = REMEDIATION_ALLOWED, OVERLAPPING = "RemediationAllowed", "Overlapping"


@frozen
class UnhealthyCondition:
    """A Node that has had this condition for longer than this is unhealthy."""

    type: str
    status: str
    timeout_seconds: float

    def __str__(self) -> str:
        return f"{self.type}={self.status} for more than {self.timeout_seconds:.10g} s"


@frozen
class TemplateReference:
    """The template of remediation objects."""

    group: str
    version: str
    kind: str
    namespace: str
    name: str

    @property
    def templates(self) -> Resource:
        return Resource(self.group, self.version, self.kind, f"{self.kind.lower()}s")

    @property
    def objects(self) -> Resource:
        """The kind of what is made of it."""
        kind = self.kind[: -len(_KIND)]
        return Resource(self.group, self.version, kind, f"{kind.lower()}s")


@frozen
class Rules:
    """Its spec. `template` is None where the leader itself remediates."""

    selector: Selector
    conditions: tuple[UnhealthyCondition, ...]
    limit: Limit
    startup_seconds: float
    template: TemplateReference | None


@frozen
class Status:
    """Its status as it is stored. `made` are the nodes for which it made remediation objects, or was about to;
    `conditions` are status, reason and message by type."""

    generation: int = 0
    expected: int = 0
    healthy: int = 0
    allowed: int = 0
    unhealthy: tuple[tuple[str, str, str], ...] = ()
    """Of each unhealthy node its name, a reason and a sentence."""
    made: tuple[str, ...] = ()
    conditions: tuple[tuple[str, str, str, str], ...] = ()


@frozen
class HealthCheck:
    """`paused` says by whose wish it stands still; empty if it does not."""

    name: str
    uid: str
    resource_version: str
    generation: int
    rules: Rules | Unreadable
    status: Status
    paused: str = ""

    @property
    def key(self) -> str:
        """How it is called, everywhere."""
        return f"{NODE_HEALTH_CHECKS.kind} {self.name}"


@frozen
class HealthSeen:
    """The health checks by name, and the Nodes that they judge. `changes` grows with every change of either. Before all
    checks are `listed` nobody knows whether one is gone."""

    checks: Mapping[str, HealthCheck] = field(default_factory=dict)
    nodes: Mapping[str, NodeFacts] = field(default_factory=dict)
    changes: int = 0
    listed: bool = True


class HealthChecksCache(Cache[HealthCheck]):
    """By name. A status of our own that changes nothing else is no change to judge by."""

    def __init__(self) -> None:
        super().__init__(NODE_HEALTH_CHECKS.kind)
        self.seen: dict[str, HealthCheck] = {}
        self.changes = 0

    def _find(self, api_object: object) -> HealthCheck | Unreadable:
        return parse_health_check(api_object)

    def _take(self, name: str, found: HealthCheck | None) -> None:
        before = self.seen.pop(name, None)
        if found is not None:
            self.seen[name] = found
        self.changes += before is None or found is None or _judged_by(before) != _judged_by(found)


def _judged_by(check: HealthCheck) -> object:
    return check.uid, check.rules, check.paused


def parse_health_check(api_object: object) -> HealthCheck | Unreadable:
    return read(f"the {NODE_HEALTH_CHECKS.kind}", lambda source: _health_check(Fields(source)), api_object)


def _health_check(fields: Fields) -> HealthCheck:
    metadata = fields.section("metadata")
    generation = metadata.anything("generation")
    paused = PAUSED_NODE in metadata.section("annotations")
    return HealthCheck(
        name=metadata.text("name", NAME),
        uid=metadata.text("uid", OPAQUE),
        resource_version=metadata.text("resourceVersion", OPAQUE),
        generation=generation if isinstance(generation, int) else 0,
        rules=read("its spec", _rules, fields),
        status=_status(fields.section("status")),
        paused=f"the annotation {PAUSED_NODE}" if paused else "",
    )


def _rules(health_check: Fields) -> Rules:
    spec = health_check.section("spec")
    unreachable = _unreachable(spec)
    conditions = (*map(_unhealthy_condition, spec.elements("unhealthyConditions")), *unreachable)
    if not conditions:
        raise Refused("unhealthyConditions is empty and unreachableSeconds is not set: no Node would ever be unhealthy")
    if "selector" not in spec:
        raise Refused("selector is missing; an empty one selects all Nodes")
    startup, most = spec.anything("nodeStartupTimeout"), spec.anything("maxUnhealthy")
    if isinstance(most, int) and most < 0:
        raise Refused(f"maxUnhealthy is {most}, not a whole number or a part from 0% to 100%")
    return Rules(
        selector=parse_selector(spec.section("selector")),
        conditions=conditions,
        limit=parse_limit(DEFAULT_MOST if most is None else most, spec.anything("unhealthyRange")),
        startup_seconds=STARTUP_SECONDS if startup is None else parse_duration(startup, "nodeStartupTimeout"),
        template=_template(spec.section("remediationTemplate")) if "remediationTemplate" in spec else None,
    )


def _unreachable(spec: Fields) -> tuple[UnhealthyCondition, ...]:
    """unreachableSeconds is a condition like others, which the leader itself keeps on Nodes."""
    seconds = spec.anything("unreachableSeconds")
    if seconds is None:
        return ()
    if type(seconds) is not int or not 0 <= seconds <= MOST_UNREACHABLE_SECONDS:
        told = f"not a whole number of seconds from 0 to {MOST_UNREACHABLE_SECONDS}"
        raise Refused(f"unreachableSeconds is {str(seconds)[:40]}, {told}")
    return (UnhealthyCondition(UNREACHABLE, "True", float(seconds)),)


def _unhealthy_condition(element: object) -> UnhealthyCondition:
    fields = Fields(element, "an element of unhealthyConditions")
    of_type, status = fields.anything("type"), fields.anything("status")
    if not isinstance(of_type, str) or not of_type:
        raise Refused("an element of unhealthyConditions has no type")
    if status not in _STATUSES:
        raise Refused(f"the status of {of_type[:60]} is {str(status)[:40]!r}, not one of {', '.join(_STATUSES)}")
    return UnhealthyCondition(of_type, str(status), parse_duration(fields.anything("timeout"), f"{of_type}'s timeout"))


_TEMPLATE_KIND = Form(f"a kind that ends in {_KIND}", re.compile(f"[A-Z][A-Za-z0-9]{{0,60}}{_KIND}"))


def _template(reference: Fields) -> TemplateReference:
    api_version = reference.anything("apiVersion")
    group, _, version = str(api_version).rpartition("/")
    if not group or not NAME.pattern.fullmatch(group) or not NAME.pattern.fullmatch(version):
        raise Refused(f"remediationTemplate.apiVersion is {str(api_version)[:60]!r}, not a group/version")
    kind = reference.text("kind", _TEMPLATE_KIND)
    return TemplateReference(group, version, kind, reference.text("namespace", NAME), reference.text("name", NAME))


def _status(status: Fields) -> Status:
    """A status that somebody else has garbled counts as none: the leader writes it again."""
    try:
        nodes = [Fields(each) for each in status.elements("unhealthyNodes")]
        return Status(
            generation=_number(status, "observedGeneration"),
            expected=_number(status, "expectedNodes"),
            healthy=_number(status, "currentHealthy"),
            allowed=_number(status, "remediationsAllowed"),
            unhealthy=tuple((_text(each, "name"), _text(each, "reason"), _text(each, "message")) for each in nodes),
            made=tuple(map(str, status.elements("remediated"))),
            conditions=stored_conditions(status, CONDITIONS),
        )
    except Refused:
        return Status()


def _number(fields: Fields, key: str) -> int:
    value = fields.anything(key)
    return value if isinstance(value, int) else -1


def _text(fields: Fields, key: str) -> str:
    return str(fields.anything(key) or "")
