"""What a remedy is to the rest of the leader: a way to make sure that a host is dead, and to bring it back.

A remedy is a folder here and one line in REMEDIES. Whatever it does not say of itself is as written here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator

from pp_hostd.kube.resources import Resource
from pp_hostd.leader.node_memory import NextAction, NodeMemory
from pp_hostd.leader.plan.targets import Target
from pp_hostd.leader.plan.valves import Valves
from pp_hostd.leader.plan.view import Evidence, View
from pp_hostd.leader.reading import Reading
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import LeaderStep, Look, StepNews
from pp_hostd.model.observed import MachineSeen, Observed
from pp_hostd.model.settings import Settings


class Remedy(ABC):
    """`name` is the value of the annotation pp-hostd.io/flow and of `install --flows`."""

    name: str
    needs_machines = True
    """Whether it works only where Nodes do not stand for themselves."""
    first_steps: tuple[type[LeaderStep], ...] = ()
    """Those by which a remediation begins that no step before them has counted."""

    # What it reads, and what it may do.

    def reading(self, settings: Settings) -> Reading | None:
        """What it reads beside Nodes, machines and our ConfigMaps; None if nothing."""

    def rights(self, machines: Resource) -> list[Json]:
        """The rules that RBAC grants to the leader for it."""
        return []

    def objections(self, kind: Resource, api_object: Json) -> Iterator[str]:
        """Why pp-hostd can't be uninstalled as long as one of the objects that it reads is so."""
        yield from ()

    def why_off(self, settings: Settings) -> str:
        """Why nobody is remedied so; empty if it is on."""
        return ""

    # Whom it is for.

    @abstractmethod
    def within_reach(self, settings: Settings, observed: Observed) -> Collection[str]:
        """The nodes, by name, and machines without one, by key, about which it can do something."""

    def at_work_on(self, observed: Observed) -> Collection[str]:
        """The nodes, by name, and machines without one, by key, that marks of its own tell to be worked on."""
        return ()

    def begins_again(self, settings: Settings, seen: MachineSeen) -> bool:
        """Whether it tells by itself a request that is made before its host is back from one that is new (rule 16)."""
        return False

    def serves_without_node(self, settings: Settings, observed: Observed, machine: str) -> bool:
        """Whether it can do something about a machine that has no Node."""
        return False

    def left_behind(self, observed: Observed, known: Iterable[Target]) -> Iterator[Target]:
        """What it has left somewhere, and none of these targets leads to."""
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

    # What it does.

    @abstractmethod
    def next_action(self, view: View, valves: Valves) -> NextAction | None:
        """What is next for this node. None if this remedy has nothing to do."""

    def relieves(self, view: View, valves: Valves, next_action: NextAction) -> NextAction | None:
        """What it does where another remedy, whose next action this is, does not get on. None if nothing."""

    def has_marked(self, view: View) -> bool:
        """Whether its mark stands in the cluster, so that a remediation has begun."""
        return False

    def has_freed(self, view: View) -> bool:
        """Whether it has begun to free the node's workloads: then it goes on to its end, which gives the Node back."""
        return False

    # What it knows.

    def look(self, view: View) -> Look | None:
        """What it wants every inspection of this node to read. None if nothing."""

    def evidence(self, view: View) -> Evidence | str | None:
        """What proves that the host is dead; a sentence, if an inspection must still confirm that. None if nothing."""

    def after_view(self, view: View) -> NodeMemory:
        """What is remembered of the node after a look at the cluster."""
        return view.memory

    def after_news(self, settings: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
        """What is remembered after news that are all of one type; `memory.inspection` is still the one before them."""
        return memory

    def awaited(self, view: View) -> str:
        """What may never come, so that something is done about it after a while; empty if nothing."""
        return ""

    # What it says.

    def explained(self, view: View) -> list[str]:
        """Sentences of `pp-leader explain` about what it reads."""
        return []

    @abstractmethod
    def prospect(self, view: View) -> str:
        """What the leader does if remediation of this node is requested, after "the leader"."""
