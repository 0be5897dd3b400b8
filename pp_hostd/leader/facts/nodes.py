"""The facts of Nodes that health checks and thresholds judge by: labels, conditions and age."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

from pp_hostd.frozen import frozen
from pp_hostd.leader.caches import Cache
from pp_hostd.model.moment import parse_moment
from pp_hostd.model.record import NAME, OPAQUE, Fields, Unreadable, read

Facts = TypeVar("Facts")
READY = "Ready"
MAX_WORDS = 10_000
"""Names of labels and conditions, of which thousands of Nodes have the same."""


class NodeCondition(NamedTuple):
    """`since_wallclock` is when it became so, in seconds of the wall clock; infinite where nobody says when, so that it
    never gets old."""

    type: str
    status: str
    since_wallclock: float
    reason: str


@frozen
class NodeFacts:
    """A Node without what changes with every heartbeat: the same value means that no judgement can have changed."""

    name: str
    uid: str
    created_wallclock: float
    labels: Mapping[str, str]
    conditions: tuple[NodeCondition, ...]
    deleting: bool = False
    """Somebody has deleted it, and a finalizer keeps it."""

    def condition(self, of_type: str) -> NodeCondition | None:
        return next((each for each in self.conditions if each.type == of_type), None)


class FactsCache(Cache[Facts]):
    """Objects that another cache of the leader holds, too, and reports if they are unreadable. `changes` counts the
    changes of facts. An object whose facts stay the same, stays the same value."""

    def __init__(self, called: str) -> None:
        super().__init__(called)
        self.seen: dict[str, Facts] = {}
        self.changes = 0

    def _fault(self, found: Facts | Unreadable | None) -> str:
        return ""

    def _take(self, name: str, found: Facts | None) -> None:
        if self.seen.get(name) == found:
            return
        self.changes += 1
        if found is None:
            del self.seen[name]
        else:
            self.seen[name] = found


class NodeFactsCache(FactsCache[NodeFacts]):
    """All Nodes, by name."""

    def __init__(self) -> None:
        super().__init__("Node")
        self._words: dict[str, str] = {}

    def _find(self, api_object: object) -> NodeFacts | Unreadable:
        if len(self._words) > MAX_WORDS:
            self._words.clear()
        return parse_node_facts(api_object, self._words)


def parse_node_facts(api_object: object, words: dict[str, str]) -> NodeFacts | Unreadable:
    """`words` are those that other Nodes have used: they share them."""
    return read("the Node", lambda source: _facts(Fields(source), words), api_object)


def _facts(node: Fields, words: dict[str, str]) -> NodeFacts:
    metadata = node.section("metadata")
    labels = {words.setdefault(key, key): value for key, value in metadata.texts("labels").items()}
    found = (_condition(each, words) for each in node.section("status").elements("conditions"))
    return NodeFacts(
        name=metadata.text("name", NAME),
        uid=metadata.text("uid", OPAQUE),
        created_wallclock=wallclock_of(metadata.anything("creationTimestamp")),
        labels=labels,
        conditions=tuple(sorted(each for each in found if each is not None)),
        deleting=metadata.anything("deletionTimestamp") is not None,
    )


def _condition(condition: object, words: dict[str, str]) -> NodeCondition | None:
    """None if it is none that can be read: then it says nothing about the Node."""
    if not isinstance(condition, dict):
        return None
    texts = [condition.get(key) for key in ("type", "status", "reason")]
    of_type, status, reason = (words.setdefault(text, text) if isinstance(text, str) else "" for text in texts)
    if not of_type or not status:
        return None
    return NodeCondition(of_type, status, wallclock_of(condition.get("lastTransitionTime")), reason)


def wallclock_of(moment: object) -> float:
    """In seconds; infinite if it is none that can be read."""
    found = parse_moment(moment) if isinstance(moment, str) else None
    return float("inf") if found is None else found.timestamp()
