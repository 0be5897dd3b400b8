"""A virtual cluster whose Nodes stand for themselves, and in which medik8s' health check makes our objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pp_hostd.leader.requests.remediation_objects.remediation import (
    POISON_PILL,
    Phase,
    Remediation,
    parse_remediation,
)
from pp_hostd.model.keys import REQUESTED_BY
from pp_hostd.model.settings import Remediations, Settings
from tests.leader.external.medik8s import remediation_of
from tests.leader.virtual_host import HOST, World

KIND = POISON_PILL.name
KEY = f"medik8s/{HOST}"
SETTINGS = Settings(remediations=Remediations(poison_pill=True))


class NodeWorld(World):
    """A host that was reset comes back by itself, unless it is `gone`; one whose workloads run is Ready, unless it is
    `sick`."""

    def __init__(self, settings: Settings = SETTINGS) -> None:
        self.gone = self.sick = False
        super().__init__("node", settings)

    def make(self, name: str = HOST, **metadata: Any) -> None:
        body = remediation_of(HOST)
        body["metadata"].update({"name": name, **metadata})
        self.api.put(KIND, f"medik8s/{name}", body)

    def delete(self, key: str = KEY) -> None:
        found = self.api.get(KIND, key)
        if found is not None and found["metadata"].get("finalizers"):
            self.api.patch(KIND, key, {"metadata": {"deletionTimestamp": "2026-03-01T00:00:00Z"}})
        elif found is not None:
            self.api.put(KIND, key, None)

    def found(self, key: str = KEY) -> Remediation:
        found = parse_remediation(self.api.get(KIND, key), POISON_PILL)
        assert isinstance(found, Remediation), found
        return found

    def is_in(self, phase: Phase, key: str = KEY) -> bool:
        return self.found(key).phase is phase

    def is_let_go(self, key: str = KEY) -> bool:
        return not self.found(key).finalized

    def is_gone(self, key: str = KEY) -> bool:
        return self.api.get(KIND, key) is None

    def succeeded(self) -> bool:
        return self.is_in(Phase.WAITING) and self.found().reason == "Succeeded" and self.is_let_go()

    def condition(self) -> dict[str, Any]:
        (condition,) = (self.api.get(KIND, KEY) or {})["status"]["conditions"]
        return dict(condition)

    def told(self, key: str = KEY) -> str:
        of = f"{KIND} {key}"
        return "; ".join(each.sentence for each in self.driver.next_actions if each.of == of)

    def is_over(self) -> bool:
        """Nothing of any object is left, and the host runs its workloads."""
        node = self.api.get("nodes", HOST) or {"metadata": {}}
        unclaimed = REQUESTED_BY not in node["metadata"].get("annotations", {})
        return self.running and unclaimed and self.given_back() and not self.driver.next_actions

    def with_settings(self, **leader: Any) -> None:
        self.settings = replace(self.settings, leader=replace(self.settings.leader, **leader))
        self.a_term("a")

    def another_leader(self) -> None:
        """It knows what a list shows, and nothing else."""
        self.api.new_leader()
        self.a_term("b")

    def live(self) -> None:
        super().live()
        if not self.gone:
            self.comes_back()
        if self.api.get("nodes", HOST) is not None and (self.running or self.ready()):
            self.kubelet_reports(self.running and not self.sick)
