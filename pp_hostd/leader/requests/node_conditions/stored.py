"""The conditions of ours that Nodes have now, and which Nodes have changed since a plan last looked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from pp_hostd.leader.caches import Cache
from pp_hostd.leader.steps.nodes import Condition
from pp_hostd.leader.steps.port import Kind
from pp_hostd.model.keys import PREFIX
from pp_hostd.model.record import Fields, Unreadable, read

CONDITION = Kind("condition of a Node")
Conditions = Mapping[str, Condition]
"""By type."""


@dataclass
class ConditionsSeen:
    """The conditions of each Node, by its name. `changed` gives the number of each Node's last change; the names are in
    the order of these numbers, and `changes` is the largest of them. All of it is alive: it is for use at once."""

    of_nodes: dict[str, Conditions] = field(default_factory=dict)
    changed: dict[str, int] = field(default_factory=dict)
    changes: int = 0

    def changed_since(self, number: int) -> Iterator[str]:
        """The names of the Nodes that have changed after this number, whatever has changed; the latest is first."""
        for name in reversed(self.changed):
            if self.changed[name] <= number:
                return
            yield name


class OwnConditions(Cache[Conditions]):
    """All Nodes, by name."""

    def __init__(self) -> None:
        super().__init__("Node")
        self.conditions = ConditionsSeen()

    def _find(self, api_object: object) -> Conditions | Unreadable:
        return read("the Node", lambda source: _own(Fields(source)), api_object)

    def _fault(self, found: Conditions | Unreadable | None) -> str:
        return ""  # the leader's own cache of Nodes tells it

    def _take(self, name: str, found: Conditions | None) -> None:
        seen = self.conditions
        seen.changed.pop(name, None)
        seen.of_nodes.pop(name, None)
        if found is None:
            return
        seen.changes += 1
        seen.changed[name] = seen.changes
        if found:
            seen.of_nodes[name] = found


def _own(node: Fields) -> Conditions:
    listed = (each for each in node.section("status").elements("conditions") if isinstance(each, dict))
    found = (Condition.of(each) for each in listed if str(each.get("type")).startswith(PREFIX))
    return {each.type: each for each in found}
