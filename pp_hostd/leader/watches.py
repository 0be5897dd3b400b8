"""All that a leader watches, and what its watches have shown. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Union

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import CLUSTERS, CONFIG_MAPS, MACHINES, NODES
from pp_hostd.leader.caches import Cache, Clusters, Fault, Machines, Nodes, Watch
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.leader.steps.port import CLUSTER, CONFIG_MAP, MACHINE, NODE, Kind
from pp_hostd.model.backup import Backup, parse_stored_backup
from pp_hostd.model.budget import parse_budget
from pp_hostd.model.control import Control, parse_control
from pp_hostd.model.keys import BUDGET, CONTROL, ENROLLED, LEADER, NAMESPACE, ROSTER, backup_name
from pp_hostd.model.observed import BackupSeen, BudgetSeen, ClustersSeen, Observed, RosterSeen
from pp_hostd.model.record import NAME, OPAQUE, Fields, Unreadable, read
from pp_hostd.model.roster import parse_roster
from pp_hostd.model.settings import Settings

_BACKUP = backup_name("")
NO_PARTS: Mapping[type, object] = {}
NO_CLUSTERS = ClustersSeen()


@frozen
class Enrolled:
    """Names of nodes; `refused` counts the keys that are none."""

    names: frozenset[str]
    refused: int


Content = Union[RosterSeen, BackupSeen, BudgetSeen, Control, Enrolled]


class OwnConfigMaps(Cache[Content]):
    """`backups` are by the name of their node."""

    def __init__(self) -> None:
        super().__init__("ConfigMap")
        self.roster: RosterSeen | None = None
        self.control = parse_control(None)
        self.enrolled: frozenset[str] = frozenset()
        self.budget: BudgetSeen | None = None
        self.backups: dict[str, BackupSeen] = {}

    def _find(self, api_object: object) -> Content | Unreadable | None:
        return read("the ConfigMap", lambda source: _content(Fields(source)), api_object)

    def _take(self, name: str, found: Content | None) -> None:
        if name == ROSTER:
            self.roster = found if isinstance(found, RosterSeen) else None
            self.revision += 1
        elif name == CONTROL:
            self.control = found if isinstance(found, Control) else parse_control(None)
        elif name == ENROLLED:
            self.enrolled = found.names if isinstance(found, Enrolled) else frozenset()
            self.revision += 1
        elif name == BUDGET:
            self.budget = found if isinstance(found, BudgetSeen) else None
        elif isinstance(found, BackupSeen):
            self.backups[name[len(_BACKUP) :]] = found
        else:
            self.backups.pop(name[len(_BACKUP) :], None)

    def _fault(self, found: Content | Unreadable | None) -> str:
        """Also what is wrong inside of those that the plan gets to see as they are."""
        if isinstance(found, Enrolled):
            return f"{found.refused} of its keys are no names of nodes" if found.refused else ""
        parts: tuple[object, ...] = (found,)
        if isinstance(found, RosterSeen):
            parts = (found.roster,)
        elif isinstance(found, BackupSeen):
            parts = (found.backup,)
        elif isinstance(found, BudgetSeen):
            parts = (found.budget,)
        elif isinstance(found, Control):
            parts = (found.paused, found.maintenance, found.grant)
        return "; ".join(str(part) for part in parts if isinstance(part, Unreadable))


def observed(
    nodes: Nodes,
    machines: Machines,
    ours: OwnConfigMaps,
    clusters: ClustersSeen = NO_CLUSTERS,
    parts: Mapping[type, object] = NO_PARTS,
) -> Observed:
    """Returns all that these caches show now; its mappings are alive, so it is for use at once."""
    return Observed(
        nodes=nodes.seen,
        machines=machines.seen,
        requests=tuple(machines.requests),
        marked=tuple(nodes.marked),
        not_ready=nodes.not_ready.keys(),
        backups=ours.backups,
        roster=ours.roster,
        control=ours.control,
        enrolled=ours.enrolled,
        budget=ours.budget,
        clusters=clusters,
        claims=machines.claims,
        machines_revision=machines.revision,
        parts=parts,
    )


def _content(config_map: Fields) -> Content | None:
    metadata = config_map.section("metadata")
    name = metadata.text("name", NAME)
    if name == CONTROL:
        return parse_control(config_map.anything("data"))  # also of garbage: an order that can't be read still counts
    if name == ENROLLED:
        return _enrolled(config_map.section("data"))
    if name not in (ROSTER, BUDGET) and not name.startswith(_BACKUP):
        return None
    version, data = metadata.text("resourceVersion", OPAQUE), config_map.section("data")
    if name == ROSTER:
        return RosterSeen(parse_roster(data.anything(ROSTER)), version)
    if name == BUDGET:
        return BudgetSeen(parse_budget(data.anything(BUDGET)), version)
    return BackupSeen(_backup(name[len(_BACKUP) :], data), version)


def _enrolled(data: Fields) -> Enrolled:
    keys = data.without()
    names = frozenset(key for key in keys if NAME.pattern.fullmatch(key))
    return Enrolled(names, len(keys) - len(names))


def _backup(node: str, data: Fields) -> Backup | Unreadable:
    backup = parse_stored_backup(data.without())
    if isinstance(backup, Backup) and backup.name != node:
        return Unreadable("the backup", f"it is of Node {backup.name}")
    return backup


MAX_TOLD = 10
"""So many troubles are told at once."""


class Watches:
    """The watches of one leader. `machines` is the setting of that name."""

    def __init__(self, machines: str, settings: Settings, registry: Registry = REGISTRY) -> None:
        self._nodes, self._machines, self._config_maps = Nodes(machines), Machines(), OwnConfigMaps()
        self._clusters = Clusters()
        flows = (each for each in registry.all if machines != "node" or not each.needs_machines)
        self._readings = tuple(filter(None, (each.reading(settings) for each in flows)))
        more = [cache for reading in self._readings for cache in reading.of_nodes]
        of_machines = [cache for reading in self._readings for cache in reading.of_machines]
        of_clusters = [cache for reading in self._readings for cache in reading.of_clusters]
        self._clusters_watch = Watch(CLUSTERS, (self._clusters, *of_clusters))
        # The leader's own status changes often, and is no news to the leader.
        ours = (self._config_maps, *(cache for reading in self._readings for cache in reading.of_config_maps))
        self.watches = [Watch((CONFIG_MAPS,), ours, NAMESPACE, f"metadata.name!={LEADER}")]
        if machines == "node":
            self.watches.append(Watch((NODES,), (self._nodes, self._machines, *more)))
        else:
            self.watches.append(Watch((NODES,), (self._nodes, *more)))
            self.watches.append(Watch(MACHINES[machines], (self._machines, *of_machines)))
        self._needed = tuple(self.watches)
        self.watches += [watch for reading in self._readings for watch in reading.watches]
        self.watches += [self._clusters_watch] if machines == "cluster-api" else []
        self._caches: dict[Kind, tuple[Cache[Any], ...]] = {
            NODE: (self._nodes,),
            MACHINE: (self._machines,),
            CONFIG_MAP: ours,
            CLUSTER: (self._clusters,),
        }
        for reading in self._readings:
            self._caches[reading.kind] = tuple(cache for watch in reading.watches for cache in watch.caches)

    @property
    def observed(self) -> Observed:
        """All that the watches show now; its mappings are alive, so it is for use at once."""
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
        """Of Nodes (by name) and of machines (by key), those that were first."""
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
