"""What a requester is to the rest of the leader: a way by which people or other controllers request remediation.

A requester is a folder or a file here and one line in REQUESTERS.
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Collection, Iterator, Sequence

from pp_hostd.kube.resources import Resource
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Term
from pp_hostd.leader.reading import Reading
from pp_hostd.leader.remedies.remedy import Remedy
from pp_hostd.leader.steps.api import Json
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings


class Requester(ABC):
    """`name` is the value of `install --flows` that grants its rights; empty if it needs none."""

    name = ""
    needs_machines = True
    """Whether it works only where Nodes do not stand for themselves."""

    def reading(self, settings: Settings) -> Reading | None:
        """What it reads beside Nodes, machines and our ConfigMaps; None if nothing."""

    def rights(self, machines: Resource) -> list[Json]:
        """The rules that RBAC grants to the leader for it."""
        return []

    def objections(self, kind: Resource, api_object: Json) -> Iterator[str]:
        """Why pp-hostd can't be uninstalled as long as one of the objects that it reads is so."""
        yield from ()

    def definitions(self) -> list[Json]:
        """The CustomResourceDefinitions that it brings along."""
        return []

    def roles(self, granted: bool) -> list[Json]:
        """What others need to request by it. Where it is not granted, an install takes their rights away by these."""
        return []

    def requested(self, observed: Observed) -> Collection[str]:
        """The machines, by key, whose remediation is requested."""
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
        """What is next for each of its own objects, and what is remembered of it. `next_actions` are the machines'."""
        yield from ()

    def about(self, observed: Observed, next_action: NextAction) -> Iterator[tuple[Resource, str, str, str]]:
        """The object of its own that Events about this action name: its kind, namespace, name and uid."""
        yield from ()
