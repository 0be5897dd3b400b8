"""All that a leader watches, and what its watches have shown: Nodes, machines, our ConfigMaps, and what remedies and
requesters read. No I/O: the leader's observer and the simulator follow these watches, each on its own API.

What is seen here is news, and no proof: before the leader frees anything it reads again (rule 12).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pp_hostd.kube.resources import CLUSTERS, CONFIG_MAPS, MACHINES, NODES
from pp_hostd.leader.caches import Cache, Clusters, Fault, Machines, Nodes, Watch
from pp_hostd.leader.own_config_maps import OwnConfigMaps, observed
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.leader.steps.port import CLUSTER, CONFIG_MAP, MACHINE, NODE, Kind
from pp_hostd.model.keys import LEADER, NAMESPACE
from pp_hostd.model.observed import ClustersSeen, Observed
from pp_hostd.model.settings import Settings

MAX_TOLD = 10
"""So many troubles are told at once."""


class Watches:
    """The watches of one leader. `machines` is the setting of that name."""

    def __init__(self, machines: str, settings: Settings, registry: Registry = REGISTRY) -> None:
        self._nodes, self._machines, self._config_maps = Nodes(machines), Machines(), OwnConfigMaps()
        self._clusters = Clusters()
        self._clusters_watch = Watch(CLUSTERS, (self._clusters,))
        # What the leader says of itself changes often, and is no news to it.
        self.watches = [Watch((CONFIG_MAPS,), (self._config_maps,), NAMESPACE, f"metadata.name!={LEADER}")]
        if machines == "node":
            self.watches.append(Watch((NODES,), (self._nodes, self._machines)))
        else:
            self.watches += [Watch((NODES,), (self._nodes,)), Watch(MACHINES[machines], (self._machines,))]
        self._needed = tuple(self.watches)
        flows = (each for each in registry.all if machines != "node" or not each.needs_machines)
        self._readings = tuple(filter(None, (each.reading(settings) for each in flows)))
        self.watches += [watch for reading in self._readings for watch in reading.watches]
        self.watches += [self._clusters_watch] if machines == "cluster-api" else []
        self._caches: dict[Kind, tuple[Cache[Any], ...]] = {
            NODE: (self._nodes,),
            MACHINE: (self._machines,),
            CONFIG_MAP: (self._config_maps,),
            CLUSTER: (self._clusters,),
        }
        for reading in self._readings:
            self._caches[reading.kind] = tuple(cache for watch in reading.watches for cache in watch.caches)

    @property
    def observed(self) -> Observed:
        """What is seen now; its mappings are alive, so it is for use at once."""
        followed = self._clusters_watch  # one that breaks off goes on without loss: what was seen still counts
        clusters = ClustersSeen(self._clusters.pauses, "" if followed.listed else followed.late)
        parts = [reading.part() for reading in self._readings]
        found = {type(part): part for part in parts}
        return observed(self._nodes, self._machines, self._config_maps, clusters, found)

    @property
    def ready(self) -> bool:
        """Whether everything was listed once but what not every cluster has, nor shows to every leader."""
        return all(each.listed for each in self._needed)

    @property
    def revision_of_nodes(self) -> int:
        """Grows whenever the roster may have to be another one."""
        return self._nodes.revision + self._machines.revision + self._config_maps.revision

    @property
    def faults(self) -> tuple[Mapping[str, Fault], Mapping[str, Fault]]:
        """Of Nodes (by name) and of machines (by subject), those that were first."""
        return self._nodes.faults, self._machines.faults

    @property
    def trouble(self) -> str:
        """Why something is seen late, or can't be read; nothing if all is well."""
        troubles = [each.late for each in self.watches if each.late]
        troubles += [trouble for caches in self._caches.values() for cache in caches for trouble in cache.troubles()]
        more = [f"and {len(troubles) - MAX_TOLD} more"] if len(troubles) > MAX_TOLD else []
        return "; ".join(troubles[:MAX_TOLD] + more)

    def version(self, kind: Kind, name: str) -> str | None:
        """In which it was last seen; None: it is not there."""
        versions = (cache.versions.get(name) for cache in self._caches[kind])
        return next((version for version in versions if version is not None), None)
