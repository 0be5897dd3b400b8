"""Rule 10's questions of a leader in the simulated world: one round, to many peers."""

from __future__ import annotations

from functools import partial
from typing import Callable

from pp_hostd.leader.steps.port import Acknowledged, NotAcknowledged, StepNews
from pp_hostd.model.answer import Answer
from pp_hostd.model.roster import Member
from pp_hostd.sim.api import Client
from pp_hostd.sim.question import AskPeer


class Asking:
    """One round of questions to peers; over when each was answered or let its time pass."""

    def __init__(
        self,
        client: Client,
        ask_peer: AskPeer,
        round_seconds: float,
        node: str,
        subject: str,
        uid: str,
        peers: tuple[Member, ...],
        tell: Callable[[StepNews], None],
        over: Callable[[], None],
    ) -> None:
        self._node, self._tell, self._over = node, tell, over
        self._waiting = {peer.name for peer in peers}
        self._asked_at = client.process.clock()
        question = (client.host, subject, uid)
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
