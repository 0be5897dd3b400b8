"""The interfaces of remedies and requesters to the rest of the leader: what each reads, may do, plans and explains."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Callable

from pp_hostd.kube.resources import Resource
from pp_hostd.leader.caches import Cache, Watch
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Term
from pp_hostd.leader.plan.valves import Valves
from pp_hostd.leader.plan.view import Evidence, Target, View
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Kind, LeaderStep, Look, StepNews
from pp_hostd.model.leader_status import LeaderStatus
from pp_hostd.model.machine_details import Claim
from pp_hostd.model.observed import MachineSeen, NodeSeen, Observed
from pp_hostd.model.settings import Settings

RBAC_GROUP = "rbac.authorization.k8s.io"
READ = "get list watch"


def rule(kind: Resource, verbs: str, *names: str) -> Json:
    rule: Json = {"apiGroups": [kind.group], "resources": [kind.plural], "verbs": verbs.split()}
    return {**rule, "resourceNames": list(names)} if names else rule


def sub_rule(kind: Resource, subresource: str = "status", verb: str = "patch") -> Json:
    return {"apiGroups": [kind.group], "resources": [f"{kind.plural}/{subresource}"], "verbs": [verb]}


@dataclass
class Reading:
    """The watches of one kind of objects. `part` is what they show now: the plan finds it in Observed by its type.
    `of_nodes`, `of_machines`, `of_clusters` and `of_config_maps` are caches that the leader's own watches fill, too."""

    kind: Kind
    watches: tuple[Watch, ...]
    part: Callable[[], object]
    of_nodes: tuple[Cache[Any], ...] = ()
    of_machines: tuple[Cache[Any], ...] = ()
    of_clusters: tuple[Cache[Any], ...] = ()
    of_config_maps: tuple[Cache[Any], ...] = ()


class Remedy(ABC):
    """`name` is the value of the annotation pp-hostd.io/flow and of `install --flows`."""

    name: str
    needs_machines = True
    """Whether it works only where Nodes do not stand for themselves."""
    first_steps: tuple[type[LeaderStep], ...] = ()
    """Those by which a remediation begins that no step before them has counted."""

    # The objects that it reads, and its rights.

    def reading(self, settings: Settings) -> Reading | None:
        """Returns the watches of the objects that it reads beside Nodes, machines and our ConfigMaps; None if none."""

    def rights(self, machines: Resource) -> list[Json]:
        """The rules that RBAC grants to the leader for it."""
        return []

    def rights_at_home(self) -> list[Json]:
        """Those in our own namespace."""
        return []

    def objections(self, kind: Resource, api_object: Json) -> Iterator[str]:
        """Why pp-hostd can't be uninstalled as long as one of the objects that it reads is so."""
        yield from ()

    def why_off(self, settings: Settings) -> str:
        """Why nobody is remedied so; empty if it is on."""
        return ""

    # The nodes and machines that it is for.

    @abstractmethod
    def within_reach(self, settings: Settings, observed: Observed) -> Collection[str]:
        """The nodes, by name, and machines without one, by key, about which it can do something."""

    def at_work_on(self, observed: Observed) -> Collection[str]:
        """The nodes, by name, and machines without one, by key, that marks of its own tell to be worked on."""
        return ()

    def is_down(self, observed: Observed, seen: NodeSeen) -> bool:
        """Whether the host of this Node is certainly not up, whoever switched it off."""
        return False

    def begins_again(self, settings: Settings, seen: MachineSeen) -> bool:
        """Whether it tells by itself a request that is made before its host is back from one that is new (rule 16)."""
        return False

    def serves_without_node(self, settings: Settings, observed: Observed, machine: str) -> bool:
        """Whether it can do something about a machine that has no Node."""
        return False

    def left_behind(self, observed: Observed, known: Iterable[Target]) -> Iterator[Target]:
        """Yields a target for each object that still bears its mark, and that none of the `known` targets leads to."""
        yield from ()

    # Which remedy has a node, of all that there are.

    @abstractmethod
    def has_begun(self, view: View) -> bool:
        """Whether this node is its to finish."""

    @abstractmethod
    def suits(self, view: View) -> bool:
        """Whether the leader takes it where nobody names one, and none before it suits."""

    def unfit(self, view: View) -> tuple[str, str]:
        """A reason and a sentence, if a remediation object that wants it has failed already; else both empty."""
        return "", ""

    # Its actions.

    @abstractmethod
    def next_action(self, view: View, valves: Valves) -> NextAction | None:
        """Returns the next action for this node. None if this remedy has nothing to do."""

    def relieves(self, view: View, valves: Valves, next_action: NextAction) -> NextAction | None:
        """Returns an action in place of this one, if the other remedy that planned this one is stuck. Else None."""

    def has_marked(self, view: View) -> bool:
        """Whether its mark stands in the cluster, so that a remediation has begun."""
        return False

    def has_freed(self, view: View) -> bool:
        """Whether it has begun to free the node's workloads: then it goes on to its end, which gives the Node back."""
        return False

    # Its knowledge of a node.

    def look(self, view: View) -> Look | None:
        """Returns the read that it adds to every inspection of this node. None if it adds none."""

    def evidence(self, view: View) -> Evidence | str | None:
        """Returns the proof that the host is dead; a sentence, if an inspection must still confirm it. None if none."""

    def after_view(self, view: View) -> NodeMemory:
        """Returns the memory of the node after a look at the cluster."""
        return view.memory

    def after_news(self, settings: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
        """Returns the memory after news that are all of one type; `memory.inspection` is still the one before them."""
        return memory

    def awaited(self, view: View) -> str:
        """Returns the event that the node awaits, for a limited time since it may never come; empty if none."""
        return ""

    # Its sentences.

    def explained(self, view: View) -> list[str]:
        """Sentences of `pp-leader explain` about what it reads."""
        return []

    @abstractmethod
    def prospect(self, view: View) -> str:
        """Returns the leader's course if remediation of this node is requested, as words that follow "the leader"."""


class Requester(ABC):
    """`name` is the value of `install --flows` that grants its rights; empty if it needs none."""

    name = ""
    needs_machines = True
    """Whether it works only where Nodes do not stand for themselves."""

    def reading(self, settings: Settings) -> Reading | None:
        """Returns the watches of the objects that it reads beside Nodes, machines and our ConfigMaps; None if none."""

    def rights(self, machines: Resource) -> list[Json]:
        """The rules that RBAC grants to the leader for it."""
        return []

    def rights_at_home(self) -> list[Json]:
        """Those in our own namespace."""
        return []

    def objections(self, kind: Resource, api_object: Json) -> Iterator[str]:
        """Why pp-hostd can't be uninstalled as long as one of the objects that it reads is so."""
        yield from ()

    def definitions(self, machines: Resource) -> list[Json]:
        """The CustomResourceDefinitions that it brings along where machines are of this kind."""
        return []

    def roles(self, machines: Resource, granted: bool) -> list[Json]:
        """Returns the ClusterRoles that others need to request by it where machines are of this kind. If it is not
        `granted`, they have no rules: an install takes the rights of others away by them."""
        return []

    def requested(self, observed: Observed) -> Collection[str]:
        """The machines, by key, whose remediation is requested."""
        return ()

    def unreachable(self, observed: Observed) -> Collection[str]:
        """The nodes, by name, that nobody reaches, as far as it has found out."""
        return ()

    def next_actions(
        self,
        settings: Settings,
        observed: Observed,
        term: Term,
        next_actions: Sequence[NextAction],
        remedies: Sequence[Remedy],
        now: float,
    ) -> Iterator[tuple[NextAction | None, NodeMemory]]:
        """Yields the next action for each of its own objects, and its memory. `next_actions` are the machines'."""
        yield from ()

    def after_news(self, settings: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
        """Returns the memory of one of its own objects after news that are all of one type."""
        return memory

    def has_made(self, claim: Claim) -> bool:
        """Whether a machine that bears this claim is requested by it alone, so that nobody else takes that back."""
        return False

    def about(self, observed: Observed, next_action: NextAction) -> Iterator[tuple[Resource, str, str, str]]:
        """The object of its own that Events about this action name: its kind, namespace, name and uid."""
        yield from ()

    def explained(self, observed: Observed, node: str, at: datetime, leader: LeaderStatus | None) -> list[str]:
        """Sentences of `pp-leader explain` about this node, by what it reads and by the wall clock. `leader` is the
        status of the active leader; None if nobody leads."""
        return []
