"""Questions to peers in the simulated world, each answered once: by the peer, or by the end of the round."""

from __future__ import annotations

from functools import partial
from typing import Callable, Protocol

from pp_hostd.agent.driver import News
from pp_hostd.leader.steps.port import Acknowledged, NotAcknowledged, StepNews
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.roster import Member
from pp_hostd.model.settings import Settings
from pp_hostd.sim.api import Client
from pp_hostd.sim.time import Clock
from pp_hostd.sim.truth import Truth

Answered = Callable[[Answer], None]
Question = tuple[str, str, str]
"""The node that asks, the machine that it asks about, and the uid of that machine."""
AskPeer = Callable[[str, Question, Answered], None]


class Asker(Protocol):
    """The agent that asks."""

    settings: Settings
    clock: Clock
    truth: Truth

    def tell(self, news: News) -> None: ...
    def later(self, seconds: float, action: Callable[[], None]) -> None: ...


def ask(asker: Asker, ask_peer: AskPeer, peer: str, question: Question) -> None:
    """Send it; whatever comes of it first is told to the asker."""
    began_at, over = asker.clock(), False

    def end(answer: Answer | None) -> None:
        nonlocal over
        if over:
            return
        over = True
        if answer is not None and answer.health is Health.HEALTHY:
            asker.truth.proven(began_at)
        asker.tell(PeerAnswered(peer, began_at, asker.clock(), answer, "" if answer is not None else "silent"))

    ask_peer(peer, question, end)
    asker.later(asker.settings.peers.round_seconds, lambda: end(None))


class Asking:
    """One round of questions to peers; over when each was answered or let its time pass."""

    def __init__(
        self,
        client: Client,
        ask_peer: AskPeer,
        round_seconds: float,
        node: str,
        machine_key: str,
        uid: str,
        peers: tuple[Member, ...],
        tell: Callable[[StepNews], None],
        over: Callable[[], None],
    ) -> None:
        self._node, self._tell, self._over = node, tell, over
        self._waiting = {peer.name for peer in peers}
        self._asked_at = client.process.clock()
        question = (client.host, machine_key, uid)
        for peer in peers:
            ask_peer(peer.name, question, partial(self._answered, peer.name))
        client.process.later(round_seconds, self._end)
        if not peers:
            over()

    def _answered(self, peer: str, answer: Answer) -> None:
        if peer not in self._waiting:
            return
        self._waiting.discard(peer)
        if answer.id is None:
            self._tell(NotAcknowledged(self._node, peer, self._asked_at, answered=True, sentence=answer.health.value))
        else:
            self._tell(Acknowledged(self._node, peer, answer.id, answer.token, self._asked_at))
        if not self._waiting:
            self._over()

    def _end(self) -> None:
        if self._waiting:
            waiting, self._waiting = sorted(self._waiting), set()
            for peer in waiting:
                self._tell(NotAcknowledged(self._node, peer, self._asked_at, answered=False, sentence="silent"))
            self._over()
