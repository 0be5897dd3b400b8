"""A bad day by chance, from a seed."""

from __future__ import annotations

import random
from dataclasses import replace

from pp_hostd.sim.cluster import Cluster
from pp_hostd.sim.kinds import Day, any_trouble
from pp_hostd.sim.schedule import CALM_SECONDS, HEALED_AT, Schedule
from pp_hostd.sim.themes import THEMES

STRATEGIES = ("", "", "out-of-service", "resources")
MACHINES = ("openshift", "openshift", "node", "cluster-api")


def random_schedule(seed: int, most_nodes: int, least_nodes: int = 2, theme: str = "") -> Schedule:
    """A bad day has a theme (this one, or any), in which rules meet; then things happen that have nothing to do with
    it."""
    chance = random.Random(f"schedule {seed}")
    nodes = chance.randint(least_nodes, most_nodes)
    names = [f"node-{number}" for number in range(1, nodes + 1)]
    victim = chance.choice(names)
    begin = CALM_SECONDS + chance.random() * 8
    theme = theme or chance.choice(sorted(THEMES))
    day = Day(chance, names, victim, begin)
    troubles = list(THEMES[theme](day))
    troubles += [any_trouble(day) for _ in range(chance.randint(0, 6))]
    soon = [trouble if trouble.at < HEALED_AT else replace(trouble, at=HEALED_AT - 1) for trouble in troubles]
    in_order = tuple(sorted(soon, key=lambda trouble: trouble.at))
    return Schedule(seed, nodes, in_order, cluster=_cluster(day, theme))


def _cluster(day: Day, theme: str) -> Cluster:
    """Any one, but for what the theme is about."""
    chance = day.chance
    likely = 0.8 if theme == "tainted" else 0.15
    tainted = tuple(name for name in day.names if chance.random() < likely)
    strategies = STRATEGIES[2:] if theme == "marked" else STRATEGIES
    return Cluster(chance.choice(MACHINES), chance.choice(strategies), tainted)
