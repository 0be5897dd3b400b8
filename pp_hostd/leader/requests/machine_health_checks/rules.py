"""The spec of a MachineHealthCheck, of three spellings, as one value: whom it selects, when one is unhealthy, how many.

No webhook of ours sees these objects before they are stored. So everything that can't be read means that nobody is
remediated, also a value that the controller of that API would take and then fail on.
"""

from __future__ import annotations

from typing import Callable

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.facts.limits import MOST_SECONDS, Limit, parse_duration, parse_limit
from pp_hostd.leader.facts.selector import Requirement, Selector, parse_selector
from pp_hostd.leader.requests.health_checks.check import TemplateReference, UnhealthyCondition
from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.model.keys import CLUSTER_NAME
from pp_hostd.model.record import NAME, Fields, Refused

STARTUP_SECONDS = 600.0
LEAST_STARTUP_SECONDS = 30.0
"""Of Cluster API's; none at all switches it off."""
DEFAULT_MOST = "100%"
STRATEGY, EXTERNAL_BAREMETAL = "machine.openshift.io/remediation-strategy", "external-baremetal"
_STATUSES = ("True", "False", "Unknown")
NEVER_JUDGED = ("Ready", "Available", "HealthCheckSucceeded", "OwnerRemediated", "ExternallyRemediated")
"""Conditions of Machines that follow from others, or from health checks themselves."""
_TEMPLATE = "Template"


@frozen
class Rules:
    """Its spec. `cluster` is the name of the Cluster, empty where there is none. `template` is None where Machines are
    left to their owners or deleted; `external` then requests by an annotation instead (OpenShift)."""

    selector: Selector
    cluster: str
    conditions: tuple[UnhealthyCondition, ...]
    machine_conditions: tuple[UnhealthyCondition, ...]
    limit: Limit
    startup_seconds: float
    template: TemplateReference | None
    external: bool = False


def parse_rules(health_check: Fields, spelling: Spelling) -> Rules:
    metadata, spec = health_check.section("metadata"), health_check.section("spec")
    namespace = metadata.text("namespace", NAME)
    if spelling is Spelling.OPENSHIFT:
        return _openshift(metadata, spec, namespace)
    cluster = spec.text("clusterName", NAME)
    selector = parse_selector(spec.section("selector"))
    if not selector.requirements:
        raise Refused("selector is empty")
    selector = Selector((*selector.requirements, Requirement(CLUSTER_NAME, "In", (cluster,))))
    rules = _v1beta2(spec, namespace) if spelling is Spelling.V1BETA2 else _v1beta1(spec, namespace)
    if rules.limit.within is None and _is_number_as_text(spec):
        raise Refused("the number of unhealthy Machines is a text without a percent sign")
    if 0 < rules.startup_seconds < LEAST_STARTUP_SECONDS:
        raise Refused(f"the start-up timeout is {rules.startup_seconds:g} s, not 0 or at least 30 s")
    return replace(rules, selector=selector, cluster=cluster)


def _is_number_as_text(spec: Fields) -> bool:
    """OpenShift takes it for a number, Cluster API can't parse it."""
    trigger = spec.section("remediation").section("triggerIf")
    found = (spec.anything("maxUnhealthy"), trigger.anything("unhealthyLessThanOrEqualTo"))
    return any(isinstance(each, str) and not each.endswith("%") for each in found)


def _openshift(metadata: Fields, spec: Fields, namespace: str) -> Rules:
    """An empty selector selects all of the namespace."""
    rules = _v1beta1(spec, namespace)
    if not rules.conditions:
        raise Refused("unhealthyConditions is empty")
    selector = parse_selector(spec.section("selector"))
    external = metadata.section("annotations").anything(STRATEGY) == EXTERNAL_BAREMETAL
    return replace(rules, selector=selector, external=external)


def _v1beta1(spec: Fields, namespace: str) -> Rules:
    """OpenShift's and Cluster API's first, with the word that the proposal has for the template."""
    template = next((key for key in ("remediationTemplate", "externalRemediationTemplate") if spec.anything(key)), "")
    startup = spec.anything("nodeStartupTimeout")
    return Rules(
        selector=Selector(),
        cluster="",
        conditions=_conditions(spec, "unhealthyConditions", _timeout),
        machine_conditions=_machine_conditions(spec, _timeout),
        limit=_limit(spec.anything("maxUnhealthy"), spec.anything("unhealthyRange"), "maxUnhealthy", "unhealthyRange"),
        startup_seconds=STARTUP_SECONDS if startup is None else parse_duration(startup, "nodeStartupTimeout"),
        template=_template(spec.section(template), template, namespace) if template else None,
    )


def _v1beta2(spec: Fields, namespace: str) -> Rules:
    checks, remediation = spec.section("checks"), spec.section("remediation")
    trigger, reference = remediation.section("triggerIf"), remediation.section("templateRef")
    most, within = trigger.anything("unhealthyLessThanOrEqualTo"), trigger.anything("unhealthyInRange")
    startup = "nodeStartupTimeoutSeconds"
    return Rules(
        selector=Selector(),
        cluster="",
        conditions=_conditions(checks, "unhealthyNodeConditions", _timeout_seconds),
        machine_conditions=_machine_conditions(checks, _timeout_seconds),
        limit=_limit(most, within, "remediation.triggerIf.unhealthyLessThanOrEqualTo", "unhealthyInRange"),
        startup_seconds=STARTUP_SECONDS
        if checks.anything(startup) is None
        else checks.seconds(startup, 0, MOST_SECONDS),
        template=_template(reference, "remediation.templateRef", namespace) if reference.without() else None,
    )


_Timeout = Callable[[Fields, str], float]


def _timeout(condition: Fields, of_type: str) -> float:
    return parse_duration(condition.anything("timeout"), f"{of_type}'s timeout")


def _timeout_seconds(condition: Fields, _of_type: str) -> float:
    return condition.seconds("timeoutSeconds", 0, MOST_SECONDS)


def _conditions(within: Fields, key: str, timeout: _Timeout) -> tuple[UnhealthyCondition, ...]:
    found = []
    for element in within.elements(key):
        fields = Fields(element, f"an element of {key}")
        of_type, status = fields.anything("type"), fields.anything("status")
        if not isinstance(of_type, str) or not of_type:
            raise Refused(f"an element of {key} has no type")
        if status not in _STATUSES:
            raise Refused(f"the status of {of_type[:60]} is {str(status)[:40]!r}, not one of {', '.join(_STATUSES)}")
        found.append(UnhealthyCondition(of_type, str(status), timeout(fields, of_type[:60])))
    return tuple(found)


def _machine_conditions(within: Fields, timeout: _Timeout) -> tuple[UnhealthyCondition, ...]:
    found = _conditions(within, "unhealthyMachineConditions", timeout)
    for each in found:
        if each.type in NEVER_JUDGED:
            raise Refused(f"unhealthyMachineConditions has {each.type}, which must not be one of them")
    return found


def _limit(most: object, within: object, *names: str) -> Limit:
    return parse_limit(DEFAULT_MOST if most is None else most, within, (names[0], names[1]))


def _template(reference: Fields, name: str, namespace: str) -> TemplateReference:
    api_version, kind = reference.anything("apiVersion"), reference.anything("kind")
    group, _, version = str(api_version).rpartition("/")
    if not group or not NAME.pattern.fullmatch(group) or not NAME.pattern.fullmatch(version):
        raise Refused(f"{name}.apiVersion is {str(api_version)[:60]!r}, not a group/version")
    if not isinstance(kind, str) or not kind[: -len(_TEMPLATE)].isalnum() or not kind.endswith(_TEMPLATE):
        raise Refused(f"{name}.kind is {str(kind)[:60]!r}, not a kind that ends in {_TEMPLATE}")
    elsewhere = reference.anything("namespace")
    if elsewhere not in (None, "", namespace):
        raise Refused(f"{name}.namespace is {str(elsewhere)[:60]!r}, not that of the health check, {namespace}")
    return TemplateReference(group, version, kind, namespace, reference.text("name", NAME))
