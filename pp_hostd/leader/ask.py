"""Rule 10's questions: a condemned machine's own question, put to its peers, and who of them has acknowledged."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.leader.steps.port import Acknowledged, NotAcknowledged, StepNews
from pp_hostd.model.answer import Answer
from pp_hostd.model.roster import Member
from pp_hostd.model.settings import Settings
from pp_hostd.peers.client import Silence, ask
from pp_hostd.peers.message import MachineReference, Question
from pp_hostd.peers.signing import Keyring

MAX_OPEN = 64
"""How many sockets at most, for each node that is asked about."""
MAX_OPEN_IN_ALL = 256
"""A process has about 1000 descriptors, and the Lease must be renewed whoever is silent."""


@frozen
class Asking:
    """How peers are asked about the machine of `node`; `tell` is called once for each of them, as answers come. `turns`
    are the sockets that all questions share."""

    node: str
    asked_by: str
    settings: Settings
    keyring: Keyring
    clock: Callable[[], float]
    tell: Callable[[StepNews], None]
    turns: asyncio.Semaphore

    async def ask(self, subject: str, uid: str, peers: tuple[Member, ...]) -> None:
        """Ends when each peer has answered or let its time pass."""
        namespace, _, name = subject.rpartition("/")
        question = Question(MachineReference(namespace or None, name, uid), self.asked_by)
        waiting = iter(peers)
        await asyncio.gather(*(self._lane(waiting, question) for _ in range(min(MAX_OPEN, len(peers)))))

    async def _lane(self, waiting: Iterator[Member], question: Question) -> None:
        """One peer after the other, until none is left."""
        peers = self.settings.peers
        for peer in waiting:
            async with self.turns:
                asked_at = self.clock()
                said = await ask(peer, peers.port, question, self.keyring, deadline_seconds=peers.round_seconds)
            self.tell(self._news(peer.name, asked_at, said))

    def _news(self, peer: str, asked_at: float, said: Answer | Silence) -> StepNews:
        if isinstance(said, Silence):
            return NotAcknowledged(self.node, peer, asked_at, answered=False, sentence=said.reason)
        if said.id is None:  # it is there exactly when the answer is "unhealthy"
            return NotAcknowledged(self.node, peer, asked_at, answered=True, sentence=f"it says {said.health.value}")
        return Acknowledged(self.node, peer, said.id, said.token, asked_at)
