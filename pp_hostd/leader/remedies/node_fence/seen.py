"""All that the remedy reads beside Nodes and machines: NodeFences, ConfigMaps, providers of Nodes, kdump messages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.leader.facts.nodes import FactsCache
from pp_hostd.leader.remedies.node_fence.config_maps import ClusterConfig, ConfigMapsSeen
from pp_hostd.leader.remedies.node_fence.fence import NodeFence
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import Fields, Unreadable, read


@frozen
class FencesSeen:
    """The NodeFences by the name of their node, and the Nodes' spec.providerID by name."""

    fences: Mapping[str, NodeFence] = field(default_factory=dict)
    config_maps: ConfigMapsSeen = ConfigMapsSeen()
    providers: Mapping[str, str] = field(default_factory=dict)


@frozen
class DumpsSeen:
    """When the last message of a kernel that saves its dump came from each address, by the leader's clock."""

    heard: Mapping[str, float] = field(default_factory=dict)


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


def wants_dumps(observed: Observed) -> bool:
    """Whether the leader listens for kernels that have crashed: for as long as a node is fenced."""
    seen = observed.part(FencesSeen)
    config = seen.config_maps.cluster
    return bool(seen.fences) and isinstance(config, ClusterConfig) and config.kdump
