"""The agent of a host that stands for many: it asks all peers that are alike in one go, and what it does is counted."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Protocol

from pp_hostd.agent.witness import Statement
from pp_hostd.embedded.history import Event
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.keys import ROSTER
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord
from pp_hostd.model.verdict import State, Verdict
from pp_hostd.sim.agent import Agent
from pp_hostd.sim.api import Json
from pp_hostd.sim.scale import sizes
from pp_hostd.sim.scale.jury import jury

ROUND_TRIP_SECONDS = 0.006
ANSWER_SECONDS = 2 * ROUND_TRIP_SECONDS
"""Of a peer whose own read is answered, or refused, at once."""


class Many(Protocol):
    """What a representative needs of the crowd."""

    with_jury: bool

    def requests(self, host: str, size: int) -> None: ...
    def hears(self, host: str, size: int) -> None: ...
    def messages(self, host: str, count: int, size: int) -> None: ...
    def in_reach(self, host: str, peers: tuple[str, ...]) -> tuple[str, ...]: ...
    def testimony(self, host: str, subject: str, uid: str, peers: int) -> Statement: ...
    def is_well(self, host: str, well: bool) -> None: ...


class Representative(Agent):
    """Nothing of how it senses, judges and acts is changed, but for how questions travel."""

    def __init__(self, crowd: Many, *of_agent: Any) -> None:
        self._crowd = crowd
        self._juries: dict[int, tuple[str, ...]] = {}
        super().__init__(*of_agent)

    def rosters(self) -> Mapping[int, tuple[str, ...]]:
        rosters = super().rosters()
        if not self._crowd.with_jury:
            return rosters
        for version in set(rosters).difference(self._juries):
            self._juries[version] = jury(version, self._host.name, rosters[version])
        return self._juries

    def ask(self, peers: tuple[str, ...], uid: str) -> None:
        """One round. All peers that it reaches give the same answer at the same time; of the others it hears nothing,
        and they are silent when the round is over."""
        name, crowd, began_at = self._host.name, self._crowd, self.clock()
        self.truth.asks()
        answering = crowd.in_reach(name, peers)
        silent = sorted(set(peers).difference(answering))
        if answering:
            crowd.messages(name, len(answering), sizes.PEER_QUESTION)
            statement = partial(crowd.testimony, name, self.subject, uid, len(answering))
            self.later(ANSWER_SECONDS, lambda: self._answered(answering, began_at, statement()))
        if silent:
            crowd.messages(name, len(silent), sizes.UNANSWERED)
            self.later(self.settings.peers.round_seconds, lambda: self._silent(silent, began_at))

    def _answered(self, peers: tuple[str, ...], began_at: float, said: Statement) -> None:
        self._crowd.messages(self._host.name, len(peers), sizes.PEER_ANSWER)
        if said.health is Health.HEALTHY:
            self.truth.proven(began_at)
        answer = Answer(said.health, said.id, said.token, "", "", self._host.name, self.subject, said.lifted_id)
        for peer in peers:
            self.tell(PeerAnswered(peer, began_at, self.clock(), answer))

    def _silent(self, peers: list[str], began_at: float) -> None:
        for peer in peers:
            self.tell(PeerAnswered(peer, began_at, self.clock(), None, "silent"))

    # What is counted.

    def read(self) -> None:
        self._crowd.requests(self._host.name, sizes.read(self.settings))
        super().read()

    def look(self) -> None:
        self._crowd.requests(self._host.name, sizes.LOOK)
        super().look()

    def store(self, record: AgentRecord, node: Node) -> None:
        self._crowd.requests(self._host.name, sizes.STORE)
        super().store(record, node)

    def show(self, verdict: Verdict) -> None:
        super().show(verdict)
        self._crowd.is_well(self._host.name, verdict.state is State.HEALTHY)

    def _roster_listed(self, items: list[Json]) -> None:
        super()._roster_listed(items)
        self._follow(sum(map(_roster_bytes, items)))

    def _condemned_listed(self, items: list[Json]) -> None:
        super()._condemned_listed(items)
        self._follow(len(items) * sizes.machine(self.settings))

    def _follow(self, listed_bytes: int) -> None:
        """A list, and a watch that goes on from it."""
        self._crowd.requests(self._host.name, sizes.API_HEADS + listed_bytes)
        self._crowd.requests(self._host.name, sizes.WATCH)

    def _condemned_changed(self, event: Event) -> None:
        super()._condemned_changed(event)
        self._crowd.hears(self._host.name, sizes.machine(self.settings))

    def _roster_changed(self, event: Event) -> None:
        super()._roster_changed(event)
        self._crowd.hears(self._host.name, _roster_bytes(event.object()))


def _roster_bytes(config_map: Json) -> int:
    return len(config_map["data"][ROSTER])
