"""A story of five nodes: what happens to them, and what can be asked about it."""

from __future__ import annotations

from pp_hostd.kube.resources import NODES
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import Armed
from pp_hostd.model.settings import Settings
from pp_hostd.sim.cluster import PLAIN, Cluster
from pp_hostd.sim.play import Play
from pp_hostd.sim.schedule import HEALED_AT, Schedule, Trouble
from pp_hostd.sim.world import World

X = ("node-5",)
FREED = (Trouble(15.0, "cut off", X, 50.0), Trouble(16.0, "request", X))
"""Node 5 is freed, and comes back when it has a way again."""


class Story:
    """Of five nodes, until so many seconds."""

    def __init__(
        self, *troubles: Trouble, until: float = 180.0, cluster: Cluster = PLAIN, healed_at: float = HEALED_AT
    ) -> None:
        self.told: list[tuple[float, str, str]] = []
        schedule = Schedule(1, 5, troubles, healed_at, cluster=cluster)
        self.world = World(Settings(), 5, 1, lambda *told: self.told.append((self.world.time.now, *told)), cluster)
        Play(self.world, schedule)
        self.world.begin()
        self.world.time.run(until)

    def said(self, who: str, words: str, after: float = 0.0) -> list[float]:
        return [at for at, name, what in self.told if name == who and words in what and at > after]

    def said_by_all(self, words: str) -> list[float]:
        """By whichever leader, or by anybody else."""
        return [at for at, _, what in self.told if words in what]

    @property
    def node(self) -> Node:
        found = self.world.api.found(parse_node, NODES, "", *X)
        assert isinstance(found, Node)
        return found

    @property
    def promise(self) -> Armed:
        assert isinstance(self.node.agent, Armed)
        return self.node.agent
