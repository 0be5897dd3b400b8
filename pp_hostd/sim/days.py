"""A bad day by chance, from a seed."""

from __future__ import annotations

import enum
import random

from pp_hostd.agent.shutdown import POWER_OFF_SECONDS
from pp_hostd.frozen import replace
from pp_hostd.leader.requests.remediation_objects.remediation import METAL3, POISON_PILL
from pp_hostd.sim.attack_themes import ATTACKS, attacked_cluster
from pp_hostd.sim.cluster import Cluster
from pp_hostd.sim.fence_methods import REBOOT, WRONG_PLUG
from pp_hostd.sim.fence_themes import FENCE_THEMES, some_methods
from pp_hostd.sim.play import hangs
from pp_hostd.sim.schedule import CALM_SECONDS, END_AT, HEALED_AT, Day, Schedule, Trouble, any_trouble
from pp_hostd.sim.themes import POWER_THEMES, THEMES

STRATEGIES = ("", "", "out-of-service", "resources")
MACHINES = ("openshift", "openshift", "node", "cluster-api")
ATTACKED_DAYS = 0.4
"""So many of all days have attacks, too."""
HANGING_SECONDS = 2 * POWER_OFF_SECONDS
"""A day on which a power-off hangs is longer: only the watchdog ends it."""

POWERED_DAYS = 0.25
"""So many of all days with Machines come to a cluster that power-cycles hosts."""
DAYS_BY_OBJECTS = 0.25
"""And on so many remediation objects request in place of annotations."""
CHECKED_DAYS = 0.25
"""And so many days come to a cluster with a health check of ours."""
POWERED_SECONDS = 60.0
"""Such a day is longer: a host is switched off, and boots."""

FENCED_DAYS = 0.2
"""And on so many days hosts are fenced by NodeFences."""
THRESHOLD_DAYS = 0.4
"""On so many of those the leader itself makes NodeFences, too."""
FENCED_SECONDS = 60.0
"""All is healed so much later on such a day: a Node is called Unknown only after a while."""
FENCED_END_SECONDS = 240.0
AGENTLESS, AGENTLESS_VICTIMS = 0.2, 0.6
"""So many hosts have no agent then: one that is cut off does not reset itself."""

RESTORED_SECONDS = 120.0
"""And so is one with an etcd restore: the leaders begin only when every host has looked at its Node."""


class Flows(enum.Enum):
    """On which days the cluster has more than agents and annotations; days of a theme about that have it anyway."""

    NEVER = enum.auto()
    SOMETIMES = enum.auto()
    """Power cycles, remediation objects, health checks and node fences: each on some days, by chance."""
    FENCED = enum.auto()
    """The same, and each day has a NodeHealthCheck and node fences."""


def random_schedule(
    seed: int, most_nodes: int, least_nodes: int = 2, theme: str = "", *, flows: Flows = Flows.SOMETIMES
) -> Schedule:
    """A bad day has a theme (this one, or any), in which rules meet; then things happen that have nothing to do with
    it, and on some days attacks."""
    chance = random.Random(f"schedule {seed}")
    nodes = chance.randint(least_nodes, most_nodes)
    names = [f"node-{number}" for number in range(1, nodes + 1)]
    victim = chance.choice(names)
    begin = CALM_SECONDS + chance.random() * 8
    wanted = theme
    theme = theme if theme in THEMES else chance.choice(sorted(THEMES))
    day = Day(chance, names, victim, begin)
    troubles = list(THEMES[theme](day))
    troubles += [any_trouble(day) for _ in range(chance.randint(0, 6))]
    schedule = Schedule(seed, nodes, _in_time(troubles), cluster=_cluster(day, theme))
    attacked = _attacked(schedule, replace(day, chance=random.Random(f"attacks {seed}")))
    if wanted not in POWER_THEMES and wanted not in FENCE_THEMES and (wanted or flows is Flows.NEVER):
        return attacked
    powered = _powered(attacked, replace(day, chance=random.Random(f"power {seed}")), wanted)
    by_objects = _by_objects(powered, random.Random(f"objects {seed}"))
    always = flows is Flows.FENCED
    checked = _checked(by_objects, random.Random(f"checks {seed}"), always)
    if wanted in POWER_THEMES:
        return checked
    return _fenced(checked, replace(day, chance=random.Random(f"fences {seed}")), wanted, always)


def _in_time(troubles: list[Trouble], healed_at: float = HEALED_AT) -> tuple[Trouble, ...]:
    """In order, and each before all is healed."""
    soon = [trouble if trouble.at < healed_at else replace(trouble, at=healed_at - 1) for trouble in troubles]
    return tuple(sorted(soon, key=lambda trouble: trouble.at))


def _attacked(schedule: Schedule, day: Day) -> Schedule:
    """The attacks have dice of their own, so that the other troubles are the same with and without them."""
    chance = day.chance
    if chance.random() >= ATTACKED_DAYS:
        return schedule
    attacks = [chance.choice(sorted(ATTACKS)) for _ in range(chance.randint(1, 2))]
    troubles = [trouble for attack in attacks for trouble in ATTACKS[attack](day)]
    soon = [replace(trouble, seconds=min(trouble.seconds, max(0.0, HEALED_AT - trouble.at))) for trouble in troubles]
    later_seconds = RESTORED_SECONDS * ("restore" in attacks) + HANGING_SECONDS * any(map(hangs, soon))
    return replace(
        schedule,
        troubles=_in_time([*schedule.troubles, *soon]),
        end_at=END_AT + later_seconds,
        cluster=attacked_cluster(day, attacks, schedule.cluster),
    )


def _powered(schedule: Schedule, day: Day, theme: str) -> Schedule:
    """The same day in a cluster whose hosts are power-cycled, with a theme of those. This has dice of its own, too."""
    chance, cluster = day.chance, schedule.cluster
    wanted = theme in POWER_THEMES
    if cluster.machines_are_nodes or (chance.random() >= POWERED_DAYS and not wanted):
        return schedule
    troubles = POWER_THEMES[theme if wanted else chance.choice(sorted(POWER_THEMES))](day)
    return replace(
        schedule,
        troubles=_in_time([*schedule.troubles, *troubles]),
        end_at=schedule.end_at + POWERED_SECONDS,
        cluster=replace(cluster, power_cycles=True, fallback=chance.random() < 0.5),
    )


def _by_objects(schedule: Schedule, chance: random.Random) -> Schedule:
    """The same day, on which a health check makes remediation objects in place of annotations."""
    cluster = schedule.cluster
    if chance.random() >= DAYS_BY_OBJECTS:
        return schedule
    kind = METAL3 if cluster.power_cycles else POISON_PILL
    return replace(schedule, cluster=replace(cluster, requested_by=kind.name))


def _checked(schedule: Schedule, chance: random.Random, always: bool) -> Schedule:
    """The same day in a cluster that has a health check of ours, beside whoever else requests."""
    if chance.random() >= CHECKED_DAYS and not always:
        return schedule
    return replace(schedule, cluster=replace(schedule.cluster, health_checks=True))


def _fenced(schedule: Schedule, day: Day, theme: str, always: bool) -> Schedule:
    """The same day in a cluster whose hosts are fenced, with a theme of that."""
    chance = day.chance
    if chance.random() >= FENCED_DAYS and theme not in FENCE_THEMES and not always:
        return schedule
    theme = theme if theme in FENCE_THEMES else chance.choice(sorted(FENCE_THEMES))
    troubles = FENCE_THEMES[theme](day)
    healed_at = schedule.healed_at + FENCED_SECONDS
    methods = some_methods(day, theme)
    if schedule.cluster.api_on:  # nobody could switch that host on again
        methods = tuple(REBOOT if each == WRONG_PLUG else each for each in methods)
    likely = {**dict.fromkeys(day.names, AGENTLESS), day.victim: AGENTLESS_VICTIMS}
    agentless = tuple(name for name in day.names if chance.random() < likely[name])
    unenrolled = tuple(name for name in agentless if chance.random() < 0.7)
    thresholds = random.Random(f"thresholds {schedule.seed}").random() < THRESHOLD_DAYS
    return replace(
        schedule,
        troubles=_in_time([*schedule.troubles, *troubles], healed_at),
        healed_at=healed_at,
        end_at=schedule.end_at + FENCED_END_SECONDS,
        cluster=replace(
            schedule.cluster, fenced=methods, thresholds=thresholds, agentless=agentless, unenrolled=unenrolled
        ),
    )


def _cluster(day: Day, theme: str) -> Cluster:
    """Any one, but for what the theme is about."""
    chance = day.chance
    likely = 0.8 if theme == "tainted" else 0.15
    tainted = tuple(name for name in day.names if chance.random() < likely)
    strategies = STRATEGIES[2:] if theme == "marked" else STRATEGIES
    return Cluster(chance.choice(MACHINES), chance.choice(strategies), tainted)
