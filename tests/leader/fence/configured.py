"""A virtual cluster with NodeRemedyConfigurations, in which nobody carries NodeFences out."""

from __future__ import annotations

from typing import Any

from pp_hostd.kube.resources import NODE_FENCES
from pp_hostd.leader.caches import Watch
from pp_hostd.leader.interfaces import Reading, Requester
from pp_hostd.leader.node_memory import NodeMemory
from pp_hostd.leader.registry import Registry
from pp_hostd.leader.remedies.node_fence.configuration import Configuration, parse_configuration
from pp_hostd.leader.remedies.node_fence.fence import FENCE, NodeFences
from pp_hostd.leader.remedies.node_fence.memory import after_news
from pp_hostd.leader.remedies.node_fence.seen import FencesSeen
from pp_hostd.leader.remedies.poison_pill import POISON_PILL
from pp_hostd.leader.requests.annotations import ANNOTATIONS
from pp_hostd.leader.requests.thresholds import THRESHOLDS
from pp_hostd.leader.steps.port import StepNews
from pp_hostd.model.keys import PAUSED_NODE
from pp_hostd.model.settings import Settings
from tests.leader.health.checked import CheckedWorld

Json = dict[str, Any]
KIND, FENCES = "noderemedyconfigurations", "nodefences"
NOT_READY = {"nodeConditionType": "Ready", "nodeConditionStatus": False, "nodeConditionPeriod": "60s"}
SPEC: Json = {"thresholdConfigs": [NOT_READY]}


class FenceReader(Requester):
    """Only reads NodeFences, as the remedy does that carries them out."""

    needs_machines = False

    def reading(self, _: Settings) -> Reading:
        fences = NodeFences()
        watch = Watch((NODE_FENCES,), (fences,), unused=True)
        return Reading(FENCE, (watch,), lambda: FencesSeen(fences.seen))

    def after_news(self, _: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
        return after_news(memory, news)


REGISTRY = Registry((POISON_PILL,), (ANNOTATIONS, THRESHOLDS, FenceReader()))


class ConfiguredWorld(CheckedWorld):
    """Five Nodes, all Ready at first."""

    def __init__(self, machines: str = "node", **more: Any) -> None:
        super().__init__(machines, registry=REGISTRY, **more)

    def configure(self, name: str = "all", **spec: Any) -> None:
        self.api.put(KIND, name, {"metadata": {"name": name, "generation": 1}, "spec": {**SPEC, **spec}})

    def pause_configuration(self, name: str = "all") -> None:
        self.api.patch(KIND, name, {"metadata": {"annotations": {PAUSED_NODE: ""}}})

    def fences(self) -> list[Json]:
        return [each for _, each in sorted(self.api.objects[FENCES].items())]

    def fenced(self) -> list[str]:
        return [each["node"] for each in self.fences()]

    def configuration(self, name: str = "all") -> Configuration:
        found = parse_configuration(self.api.get(KIND, name))
        assert isinstance(found, Configuration), found
        return found

    def condition(self, of_type: str = "FencingAllowed", name: str = "all") -> tuple[str, str]:
        """Its status and reason."""
        found = (each for each in self.configuration(name).status.conditions if each[0] == of_type)
        return next(((status, reason) for _, status, reason, _ in found), ("", ""))
