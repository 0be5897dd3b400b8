"""Steps of thresholds: the NodeFence that begins a flow, and the status of a NodeRemedyConfiguration."""

from __future__ import annotations

from functools import partial

from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import NODE_FENCES, NODE_REMEDY_CONFIGURATIONS, NODES
from pp_hostd.leader.remedies.node_fence.configuration import (
    CONDITIONS,
    CONFIGURATION,
    Configuration,
    ConfigurationStatus,
    Threshold,
)
from pp_hostd.leader.remedies.node_fence.fence import Status, Step, fence_name
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Noticed, Port
from pp_hostd.leader.steps.status import rendered_conditions, write_status

THRESHOLD_REACHED = "ThresholdReached"
"""The Event of a NodeFence that a threshold has brought about."""
SELECTED_TWICE = "SelectedTwice"
"""The Event of a Node that two configurations select, and that neither has fenced therefore."""


@frozen
class CreateFence:
    """Create the NodeFence of a Node that has reached a threshold. One that is there is the same flow."""

    configuration: Configuration
    node: str
    node_uid: str
    threshold: Threshold

    async def run(self, port: Port) -> str:
        try:
            await port.send(lambda: port.api.create(NODE_FENCES, self._body()))
        except ApiError as error:
            if error.reason != "AlreadyExists":
                raise
            return ""
        key, fence = self.configuration.key, fence_name(self.node)
        said = f"{key} has Node {self.node} fenced ({NODE_FENCES.kind} {fence}): it has had {self.threshold}"
        _noticed(port, self.configuration, THRESHOLD_REACHED, said)
        port.tell(Noticed(port.key, NODES, None, self.node, self.node_uid, THRESHOLD_REACHED, said, warning=True))
        return ""

    def _body(self) -> Json:
        threshold = self.threshold
        return {
            "metadata": {"name": fence_name(self.node)},
            "node": self.node,
            "step": Step.ISOLATION.value,
            "status": Status.NEW.value,
            "reason": f"it has had {threshold} ({self.configuration.key})",
            "cause": {
                "configuration": self.configuration.name,
                "condition": threshold.condition,
                "status": threshold.status,
            },
        }


@frozen
class SetStatus:
    """The status of a configuration. `notices` are the Events that report its conditions: reason, sentence, whether it
    is a warning. `overlapping` are the Nodes whose Events report that others select them, too: name, uid, sentence."""

    configuration: Configuration
    status: ConfigurationStatus
    notices: tuple[tuple[str, str, bool], ...] = ()
    overlapping: tuple[tuple[str, str, str], ...] = ()

    async def run(self, port: Port) -> str:
        about, patch = self.configuration, partial(rendered, self.status)
        told = await write_status(port, NODE_REMEDY_CONFIGURATIONS, CONFIGURATION, about, patch)
        for reason, sentence, warning in self.notices:
            _noticed(port, about, reason, sentence, warning=warning)
        for name, uid, sentence in self.overlapping:
            port.tell(Noticed(port.key, NODES, None, name, uid, SELECTED_TWICE, sentence, warning=True))
        return told


def _noticed(port: Port, about: Configuration, reason: str, sentence: str, *, warning: bool = True) -> None:
    kind = NODE_REMEDY_CONFIGURATIONS
    port.tell(Noticed(port.key, kind, None, about.name, about.uid, reason, sentence, warning))


def rendered(status: ConfigurationStatus, stored: Json, moment: str) -> Json:
    """The merge patch."""
    before = (stored.get("status") or {}).get("conditions")
    return {
        "status": {
            "observedGeneration": status.generation,
            "selectedNodes": status.selected,
            "matchingNodes": status.matching,
            "overlappingNodes": list(status.overlapping),
            "conditions": rendered_conditions(status.conditions, CONDITIONS, before, moment),
        }
    }
