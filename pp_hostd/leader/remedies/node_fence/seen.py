"""All that the remedy reads beside Nodes and machines: NodeFences, their ConfigMaps, and the Nodes' providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.leader.facts.nodes import FactsCache
from pp_hostd.leader.remedies.node_fence.config_maps import ConfigMapsSeen
from pp_hostd.leader.remedies.node_fence.fence import NodeFence
from pp_hostd.model.record import Fields, Unreadable, read


@frozen
class FencesSeen:
    """The NodeFences by the name of their node, and the Nodes' spec.providerID by name."""

    fences: Mapping[str, NodeFence] = field(default_factory=dict)
    config_maps: ConfigMapsSeen = ConfigMapsSeen()
    providers: Mapping[str, str] = field(default_factory=dict)


class ProvidersCache(FactsCache[str]):
    """The spec.providerID of Nodes that have one, by name."""

    def __init__(self) -> None:
        super().__init__("Node")

    def _find(self, api_object: object) -> str | Unreadable | None:
        return read("its providerID", _provider, api_object)

    def _take(self, name: str, found: str | None) -> None:
        self.seen.pop(name, None)
        if found is not None:
            self.seen[name] = found


def _provider(node: object) -> str | None:
    found = Fields(node).section("spec").anything("providerID")
    return found[:500] if isinstance(found, str) and found else None
