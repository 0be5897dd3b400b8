"""A virtual cluster with health checks: kubelets report, and fall silent as Kubernetes tells it."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from pp_hostd.leader.health_metrics import HealthMetrics
from pp_hostd.leader.requests.health_checks.check import HealthCheck, parse_health_check
from pp_hostd.leader.requests.health_checks.definitions import default_check
from pp_hostd.leader.steps.port import Noticed, StepNews
from pp_hostd.model.moment import render_moment
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST, PEERS, World

KIND = "nodehealthchecks"
FOREIGN = {"type": "example.com/Reviewed", "status": "True", "reason": "ByAnn", "observedGeneration": "3"}
"""A condition that somebody else keeps on an object whose status the leader writes."""
NAMES = (HOST, *PEERS)


class CheckedWorld(World):
    """All Nodes are Ready at first. `notices` are the Events that steps told; `metrics` have heard all of it."""

    def __init__(self, machines: str = "node", **more: Any) -> None:
        self.notices: list[Noticed] = []
        self.metrics = HealthMetrics()
        self.wallclock_ahead_seconds = int(SINCE.timestamp()) - 1000
        super().__init__(machines, **more)
        for name in NAMES:
            self.reports(name)

    def moment(self, seconds_ago: float = 0.0) -> str:
        return render_moment(datetime.fromtimestamp(self.wallclock_seconds() - seconds_ago, timezone.utc))

    def reports(self, name: str, status: str = "True", of_type: str = "Ready", seconds_ago: float = 0.0) -> None:
        """The Node has this condition, since then."""
        node = self.api.get("nodes", name)
        assert node is not None
        condition = {"type": of_type, "status": status, "lastTransitionTime": self.moment(seconds_ago)}
        others = [each for each in node["status"].get("conditions") or () if each["type"] != of_type]
        self.api.patch("nodes", name, {"status": {"conditions": [*others, condition]}})

    def label(self, name: str, **labels: str) -> None:
        self.api.patch("nodes", name, {"metadata": {"labels": labels}})

    def check(self, name: str = "workers", **spec: Any) -> None:
        made = default_check()
        metadata = {"name": name, "generation": 1}
        self.api.put(KIND, name, {**made, "metadata": metadata, "spec": {**made["spec"], **spec}})

    def stored(self, name: str = "workers") -> HealthCheck:
        found = parse_health_check(self.api.get(KIND, name))
        assert isinstance(found, HealthCheck), found
        return found

    def condition(self, of_type: str = "RemediationAllowed", name: str = "workers") -> tuple[str, str]:
        """Its status and reason."""
        found = (each for each in self.stored(name).status.conditions if each[0] == of_type)
        return next(((status, reason) for _, status, reason, _ in found), ("", ""))

    def add_condition(self, kind: str, name: str, condition: dict[str, str]) -> None:
        """Somebody else adds this condition to the status of that object."""
        found = self.api.get(kind, name)
        assert found is not None
        conditions = [*(found["status"].get("conditions") or ()), condition]
        self.api.patch(kind, name, {"status": {"conditions": conditions}})

    def conditions_of(self, kind: str, name: str) -> list[dict[str, str]]:
        found = self.api.get(kind, name)
        assert found is not None
        stored: list[dict[str, str]] = found["status"]["conditions"]
        return stored

    def reasons(self) -> list[str]:
        return [each.reason for each in self.notices]

    def take(self) -> list[StepNews]:
        taken = super().take()
        self.notices += [each for each in taken if isinstance(each, Noticed)]
        for each in taken:
            self.metrics.heard(each)
        return taken
