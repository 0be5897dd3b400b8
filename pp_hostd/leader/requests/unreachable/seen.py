"""The suspicions of agents, and the hosts that are told to be unreachable, as the Nodes show them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.leader.caches import Cache
from pp_hostd.model.keys import SUSPECTS, UNREACHABLE
from pp_hostd.model.record import Fields, Unreadable, read
from pp_hostd.model.suspicion import Suspicion, parse_suspicion


@frozen
class Told:
    """A Node that says something: whom its agent suspects, and the status of its condition Unreachable."""

    suspects: tuple[str, ...]
    unreachable: str


@frozen
class SuspicionsSeen:
    """`suspects` are the names of hosts with those of the agents that suspect them; `unreachable` has the status of
    each Node's condition Unreachable that there is."""

    suspects: Mapping[str, frozenset[str]] = field(default_factory=dict)
    unreachable: Mapping[str, str] = field(default_factory=dict)


class SuspicionsCache(Cache[Told]):
    """Of nearly all Nodes it holds nothing."""

    def __init__(self) -> None:
        super().__init__("Node")
        self.told: dict[str, Told] = {}

    @property
    def seen(self) -> SuspicionsSeen:
        if not self.told:
            return _NOTHING
        suspects: dict[str, frozenset[str]] = {}
        for by, told in self.told.items():
            for name in told.suspects:
                suspects[name] = suspects.get(name, frozenset()) | {by}
        return SuspicionsSeen(
            suspects, {name: told.unreachable for name, told in self.told.items() if told.unreachable}
        )

    def _find(self, api_object: object) -> Told | Unreadable | None:
        return read("the Node", lambda source: _told(Fields(source)), api_object)

    def _fault(self, found: Told | Unreadable | None) -> str:
        return ""  # the leader's own cache of Nodes reports it

    def _take(self, name: str, found: Told | None) -> None:
        if found is None:
            self.told.pop(name, None)
        else:
            self.told[name] = found


_NOTHING = SuspicionsSeen()


def _told(node: Fields) -> Told | None:
    annotations = node.section("metadata").section("annotations")
    suspicion = parse_suspicion(annotations.anything(SUSPECTS)) if SUSPECTS in annotations else None
    conditions = (each for each in node.section("status").elements("conditions") if isinstance(each, dict))
    unreachable = next((str(each.get("status")) for each in conditions if each.get("type") == UNREACHABLE), "")
    suspects = suspicion.suspects if isinstance(suspicion, Suspicion) else ()
    return Told(suspects, unreachable) if suspects or unreachable else None
