"""The metrics of the health checks that a leader carries out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Union

from pp_hostd.leader.requests.health_checks.check import REMEDIATION_ALLOWED, HealthCheck, HealthSeen
from pp_hostd.leader.requests.health_checks.steps import HasRemediated, HasStopped
from pp_hostd.leader.requests.machine_health_checks.check import MachineHealthCheck
from pp_hostd.leader.requests.machine_health_checks.facts import MachineHealthSeen
from pp_hostd.leader.requests.machine_health_checks.plan import standstill
from pp_hostd.leader.steps.port import StepNews
from pp_hostd.model.observed import Observed
from pp_hostd.service.metric import Metric

AnyCheck = Union[HealthCheck, MachineHealthCheck]


class HealthMetrics:
    """Counts the remediations and short circuits of one term, by the keys of checks. All other figures come from the
    status of each check."""

    def __init__(self) -> None:
        self._remediations: Counter[str] = Counter()
        self._short_circuits: Counter[str] = Counter()

    def heard(self, news: StepNews) -> None:
        if isinstance(news, HasRemediated):
            self._remediations[news.check] += 1
        elif isinstance(news, HasStopped):
            self._short_circuits[news.check] += 1

    def metrics(self, observed: Observed) -> Iterator[Metric]:
        checks = list(_carried_out(observed))
        counts = [
            ({**_labels(each), "state": state}, count)
            for each in checks
            for state, count in (("expected", each.status.expected), ("healthy", each.status.healthy))
        ]
        told = "Nodes or Machines that health checks select, and healthy ones."
        yield Metric("pp_leader_health_check_nodes", told, "gauge", counts)
        told = "1 while a health check has nobody remediated: too many are unhealthy, or it is paused or unreadable."
        blocked = [(_labels(each), int(_is_blocked(each, observed))) for each in checks]
        yield Metric("pp_leader_health_check_blocked", told, "gauge", blocked)
        told = "Remediations in this term that a health check has requested, or left to a Machine's owner."
        yield self._counter("pp_leader_health_check_remediations_total", told, checks, self._remediations)
        told = "How often in this term a health check stopped since too many were unhealthy."
        yield self._counter("pp_leader_health_check_short_circuits_total", told, checks, self._short_circuits)

    @staticmethod
    def _counter(name: str, told: str, checks: list[AnyCheck], counted: Counter[str]) -> Metric:
        counts = [(_labels(each), counted[each.key]) for each in checks]
        return Metric(name, told, "counter", counts)


def _carried_out(observed: Observed) -> Iterator[AnyCheck]:
    for _, check in sorted(observed.part(HealthSeen).checks.items()):
        yield check
    for _, of_machines in sorted(observed.part(MachineHealthSeen).checks.items()):
        if not of_machines.writer and of_machines.status.expected >= 0:
            yield of_machines


def _labels(check: AnyCheck) -> dict[str, str]:
    kind, _, path = check.key.partition(" ")
    namespace, _, name = path.rpartition("/")
    return {"kind": kind, "namespace": namespace, "check": name}


def _is_blocked(check: AnyCheck, observed: Observed) -> bool:
    if isinstance(check, HealthCheck):
        return any((kind, said) == (REMEDIATION_ALLOWED, "False") for kind, said, *_ in check.status.conditions)
    said = (each.said(REMEDIATION_ALLOWED) for each in check.lists)
    return standstill(check, observed) is not None or any(each is not None and each[0] == "False" for each in said)
