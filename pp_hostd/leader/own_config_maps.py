"""What the leader keeps of the ConfigMaps in its own namespace: roster, orders, enrolment, budget, backups. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.leader.caches import Cache, Machines, Nodes
from pp_hostd.model.backup import Backup, parse_stored_backup
from pp_hostd.model.budget import parse_budget
from pp_hostd.model.control import Control, parse_control
from pp_hostd.model.keys import BUDGET, CONTROL, ENROLLED, ROSTER, backup_name
from pp_hostd.model.observed import BackupSeen, BudgetSeen, ClustersSeen, Observed, RosterSeen
from pp_hostd.model.record import NAME, OPAQUE, Fields, Unreadable, read
from pp_hostd.model.roster import parse_roster

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
    """What all of them show now; its mappings are alive, so it is for use at once."""
    return Observed(
        nodes=nodes.seen,
        machines=machines.seen,
        requests=tuple(machines.requests),
        marked=tuple(nodes.marked),
        backups=ours.backups,
        roster=ours.roster,
        control=ours.control,
        enrolled=ours.enrolled,
        budget=ours.budget,
        clusters=clusters,
        claims=machines.claims,
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
