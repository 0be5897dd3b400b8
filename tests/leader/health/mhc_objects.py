"""MachineHealthChecks in the spellings of all APIs, as people write them."""

from __future__ import annotations

from typing import Any

from pp_hostd.leader.requests.machine_health_checks.check import MachineHealthCheck, parse_machine_health_check
from pp_hostd.leader.requests.machine_health_checks.conditions import Spelling
from pp_hostd.leader.requests.machine_health_checks.rules import Rules
from pp_hostd.model.record import Unreadable

Json = dict[str, Any]
OPENSHIFT, V1BETA1, V1BETA2 = Spelling.OPENSHIFT, Spelling.V1BETA1, Spelling.V1BETA2
ALL = (OPENSHIFT, V1BETA1, V1BETA2)
CLUSTER_API = (V1BETA1, V1BETA2)
PLACE, CLUSTER = "machines", "prod"
TEMPLATE = {"apiVersion": "pp-hostd.io/v1", "kind": "PoisonPillRemediationTemplate", "name": "reset"}
SILENT = ("Ready", "Unknown", 300)


def conditions(spelling: Spelling, *wanted: tuple[str, str, int]) -> list[Json]:
    return [
        {"type": of_type, "status": status, "timeoutSeconds": seconds}
        if spelling is V1BETA2
        else {"type": of_type, "status": status, "timeout": f"{seconds}s"}
        for of_type, status, seconds in wanted
    ]


def spec_of(
    spelling: Spelling,
    *wanted: tuple[str, str, int],
    of_machines: tuple[tuple[str, str, int], ...] = (),
    most: object = None,
    within: str | None = None,
    startup: int | None = None,
    template: Json | None = None,
    selector: Json | None = None,
) -> Json:
    """The same wish in each spelling, without the fields that are None."""
    selector = {"matchLabels": {"pool": "a"}} if selector is None else selector
    given: Json = {"selector": selector}
    if spelling is not OPENSHIFT:
        given["clusterName"] = CLUSTER
    sick = conditions(spelling, *(wanted or (SILENT,)))
    of_machine = conditions(spelling, *of_machines) or None
    if spelling is V1BETA2:
        checks = {
            "unhealthyNodeConditions": sick,
            "unhealthyMachineConditions": of_machine,
            "nodeStartupTimeoutSeconds": startup,
        }
        trigger = {"unhealthyLessThanOrEqualTo": most, "unhealthyInRange": within}
        remediation = _without_none({"triggerIf": _without_none(trigger) or None, "templateRef": template})
        return _without_none({**given, "checks": _without_none(checks), "remediation": remediation or None})
    older = {
        "unhealthyConditions": sick,
        "unhealthyMachineConditions": of_machine,
        "maxUnhealthy": most,
        "unhealthyRange": within,
        "nodeStartupTimeout": None if startup is None else f"{startup}s",
        "remediationTemplate": template,
    }
    return {**given, **_without_none(older)}


def _without_none(fields: Json) -> Json:
    return {key: value for key, value in fields.items() if value is not None}


def health_check(spelling: Spelling, spec: Json | None = None, name: str = "workers", **metadata: Any) -> Json:
    """As the API would show it, without a status."""
    given = {"name": name, "namespace": PLACE, "generation": 1, **metadata}
    given.setdefault("creationTimestamp", "2026-01-01T00:00:00Z")
    body = {"apiVersion": spelling.value, "kind": "MachineHealthCheck", "metadata": given}
    return {**body, "spec": spec_of(spelling) if spec is None else spec}


def parsed(body: Json) -> MachineHealthCheck:
    metadata = {"uid": "check", "resourceVersion": "1", **body["metadata"]}
    found = parse_machine_health_check({**body, "metadata": metadata})
    assert isinstance(found, MachineHealthCheck), found
    return found


def rules_of(spelling: Spelling, spec: Json | None = None, **metadata: Any) -> Rules:
    found = parsed(health_check(spelling, spec, **metadata)).rules
    assert isinstance(found, Rules), found
    return found


def why_unreadable(spelling: Spelling, spec: Json) -> str:
    """Empty if it can be read."""
    found = parsed(health_check(spelling, spec)).rules
    return str(found) if isinstance(found, Unreadable) else ""
