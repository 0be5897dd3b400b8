"""Whom a plan looks at: nodes and machines that need work, and how they belong together."""

from __future__ import annotations

from collections.abc import Collection
from typing import Callable, NamedTuple

from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.machine import machine_of_node
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import Unreadable


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
        named = seen is None or seen.subject == key
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
        return "" if isinstance(seen.subject, Unreadable) else seen.subject
    if stored is None or isinstance(stored.backup, Unreadable):
        return ""
    subject = machine_of_node(stored.backup.node(), machines)
    return "" if isinstance(subject, Unreadable) else subject
