"""All that a plan looks at: the nodes that need work, and for one of them the cluster, the memory and the time."""

from __future__ import annotations

from collections.abc import Collection
from typing import Callable, NamedTuple

from pp_hostd.frozen import frozen
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Stage, Term
from pp_hostd.leader.steps.port import LeaderStep, Look
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.machine import Machine, machine_of_node
from pp_hostd.model.machine_details import Claim
from pp_hostd.model.observed import BackupSeen, MachineSeen, NodeSeen, Observed, RosterSeen, is_early
from pp_hostd.model.promise import Armed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Member
from pp_hostd.model.settings import Settings


class Electorates:
    """Thousands of nodes in a roster, and many hosts that promised the same version of it."""

    def __init__(self, roster: RosterSeen | None) -> None:
        self._roster = roster
        self._known: dict[int, Electorate | Unreadable] = {}
        self._names: dict[int, tuple[str, ...]] = {}
        self._members: dict[tuple[int, str], Member | None] = {}

    def of(self, promise: Armed) -> Electorate | Unreadable:
        """Of the version that was promised, not of the newest."""
        version = promise.roster_version
        if version not in self._known:
            self._known[version] = self._as_of(version)
        return self._known[version]

    def names(self, electorate: Electorate) -> tuple[str, ...]:
        if electorate.version not in self._names:
            self._names[electorate.version] = electorate.names
        return self._names[electorate.version]

    def member(self, electorate: Electorate, name: str) -> Member | None:
        key = electorate.version, name
        if key not in self._members:
            self._members[key] = electorate.member(name)
        return self._members[key]

    def _as_of(self, version: int) -> Electorate | Unreadable:
        if self._roster is None:
            return Unreadable("the roster", "there is none yet")
        roster = self._roster.roster
        return roster if isinstance(roster, Unreadable) else roster.as_of(version)


class Target(NamedTuple):
    """A Node and its machine, each empty where nothing tells it; `left` names what a remedy has left behind, where
    neither leads to it."""

    node: str
    machine: str
    left: str = ""

    @property
    def key(self) -> str:
        """Under which its memory is kept."""
        return self.node or self.machine or self.left


def targets(
    observed: Observed,
    machines: str,
    requested: Collection[str],
    serves_without_node: Callable[[str], bool],
) -> tuple[set[Target], list[Target]]:
    """All that needs work; then machines without a Node, or with one of another's. `machines` is the setting
    of that name; `serves_without_node` tells whether some remedy can do something about a machine without a Node."""
    found = {name: _machine_of(observed, name, machines) for name in (*observed.backups, *observed.marked)}
    alone: set[Target] = set()
    doubtful: list[Target] = []
    for key in sorted(set(requested).intersection(observed.machines)):
        name = observed.machines[key].machine.node or ""
        seen = observed.nodes.get(name)
        named = seen is None or seen.machine_key == key
        if name and named and found.get(name, "") in ("", key):
            found[name] = key
        elif not name and serves_without_node(key):
            alone.add(Target("", key))
        elif not isinstance(observed.machines[key].machine.condemnation, NotRequested):
            doubtful.append(Target(name, key))
    return {Target(name, key) for name, key in found.items()} | alone, doubtful


def _machine_of(observed: Observed, name: str, machines: str) -> str:
    """The machine that the Node names, or that it named before it was deleted."""
    seen, stored = observed.nodes.get(name), observed.backups.get(name)
    if seen is not None:
        return "" if isinstance(seen.machine_key, Unreadable) else seen.machine_key
    if stored is None or isinstance(stored.backup, Unreadable):
        return ""
    machine_key = machine_of_node(stored.backup.node(), machines)
    return "" if isinstance(machine_key, Unreadable) else machine_key


@frozen
class Evidence:
    """Rule 11: from `act_at` on the host is dead, or nothing was started on it. Where not `held`, a kubelet may have
    started something by itself, and must have been silent for a while."""

    sentence: str
    act_at: float
    held: bool


@frozen
class View:
    """`name` is the Node's, `machine_key` the machine's; empty where nothing tells. `left` names what a remedy has left
    behind, where neither leads to it. `looks` are what a remedy has an inspection read beside the machine and its Node,
    `evidence` is what proves to it that the host is dead; a sentence, if an inspection must still confirm that."""

    settings: Settings
    observed: Observed
    electorates: Electorates
    term: Term
    memory: NodeMemory
    name: str
    machine_key: str
    now: float
    left: str = ""
    looks: tuple[Look, ...] = ()
    evidence: Evidence | str | None = None

    @classmethod
    def of_target(
        cls, settings: Settings, observed: Observed, electorates: Electorates, term: Term, target: Target, now: float
    ) -> View:
        memory = term.memories.get(target.key, NodeMemory())
        return cls(settings, observed, electorates, term, memory, target.node, target.machine, now, target.left)

    @property
    def seen(self) -> NodeSeen | None:
        return self.observed.nodes.get(self.name)

    @property
    def machine_seen(self) -> MachineSeen | None:
        return self.observed.machines.get(self.machine_key)

    @property
    def machine(self) -> Machine | None:
        return None if self.machine_seen is None else self.machine_seen.machine

    @property
    def backup_seen(self) -> BackupSeen | None:
        return self.observed.backups.get(self.name)

    @property
    def licence(self) -> BackupSeen | None:
        """The stored backup if it is, or may be, of a Node that a leader deletes: if that is missing, we deleted it."""
        stored = self.backup_seen
        return None if stored is None or is_early(stored) else stored

    @property
    def condemned(self) -> Condemned | None:
        """The condemnation that stands, whoever wrote it."""
        found = None if self.machine is None else self.machine.condemnation
        return found if isinstance(found, Condemned) else None

    @property
    def is_claimed(self) -> bool:
        """Whether a remediation object has it remedied, which requests again only after its own timeout."""
        claim = None if self.machine_seen is None else self.machine_seen.host.claim
        return isinstance(claim, Claim) and not claim.is_of_check

    def does(self, stage: Stage, step: LeaderStep, sentence: str) -> NextAction:
        """The step, unless one failed just now: then it is tried again in a moment, and the sentence says why."""
        if self.settings.leader.mode == "dry-run":
            return self.waits(stage, f"dry run; otherwise next: {sentence}")
        step_now = step if self.now >= self.memory.not_before_at else None
        if self.memory.keeps_failing:  # said once, and in the same words whether it is tried just now or not
            told, due_at = f"{sentence}, which keeps failing: {self.memory.trouble}", self.memory.not_before_at
            return NextAction(
                self.name, self.machine_key, stage, told, step_now, None if step_now else due_at, refused=True
            )
        if step_now is None:
            told = f"{sentence}; trying again soon: {self.memory.trouble}"
            return NextAction(self.name, self.machine_key, stage, told, due_at=self.memory.not_before_at)
        return NextAction(self.name, self.machine_key, stage, sentence, step)

    def waits(self, stage: Stage, sentence: str, due_at: float | None = None) -> NextAction:
        return NextAction(self.name, self.machine_key, stage, sentence, due_at=due_at)

    def refuses(self, sentence: str) -> NextAction:
        """It goes on when somebody has done something about it."""
        return NextAction(self.name, self.machine_key, Stage.HELD, sentence, refused=True)
