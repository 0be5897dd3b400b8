"""One round of the inquiry (rule 3): its peers are asked at the same time, and each answer is told as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import Callable, Union

from pp_hostd.agent.sense.api import Clock
from pp_hostd.frozen import frozen
from pp_hostd.model.answer import Answer
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.settings import Settings
from pp_hostd.peers.client import Peer, Silence, ask
from pp_hostd.peers.message import Question
from pp_hostd.peers.signing import Keyring

MAX_OPEN = 4096
"""How many sockets at most. In an outage that swallows packets every peer answers late in the round, and rule 3 counts
them all: with fewer sockets than the largest set of peers, a large cluster would reset itself."""
BEGUN_AT_ONCE = 32
"""After so many the loop gets a turn: the watchdog must be fed while thousands are asked."""


AskPeer = Callable[[Peer, Question, float], Awaitable[Union[Answer, Silence]]]
"""Asks one peer, with a deadline in seconds. Nothing is raised."""
Answered = Callable[[PeerAnswered], None]


async def ask_each(
    ask_peer: AskPeer, peers: Iterable[Peer], question: Question, over_at: float, clock: Clock, answered: Answered
) -> None:
    """Asks one peer after the other, until none is left. A peer whose turn comes after the end counts as silent."""
    for peer in peers:
        began_at = clock()
        if began_at >= over_at:
            silence = "the round was over before it could be asked"
            answered(PeerAnswered(peer.name, began_at, began_at, None, silence))
            continue
        said = await ask_peer(peer, question, over_at - began_at)
        answer = said if isinstance(said, Answer) else None
        silence = said.reason if isinstance(said, Silence) else ""
        answered(PeerAnswered(peer.name, began_at, clock(), answer, silence))


@frozen
class Round:
    """How its peers are asked; `answered` is called once for each of them, by the end of the round."""

    settings: Settings
    keyring: Keyring
    clock: Clock
    answered: Answered
    max_open: int = MAX_OPEN

    async def ask(self, peers: Sequence[Peer], question: Question) -> None:
        """Ends with the round. Cancelled, it leaves nothing open, and the rest unasked."""
        over_at = self.clock() + self.settings.peers.round_seconds
        waiting = iter(peers)  # which all lanes share
        lanes: list[asyncio.Task[None]] = []
        try:
            for number in range(min(self.max_open, len(peers))):
                lane = ask_each(self._ask_peer, waiting, question, over_at, self.clock, self.answered)
                lanes.append(asyncio.ensure_future(lane))
                if number % BEGUN_AT_ONCE == 0:
                    await asyncio.sleep(0)
            await asyncio.gather(*lanes)
        finally:
            for begun in lanes:
                begun.cancel()

    async def _ask_peer(self, peer: Peer, question: Question, deadline_seconds: float) -> Answer | Silence:
        port = self.settings.peers.port
        return await ask(peer, port, question, self.keyring, deadline_seconds=deadline_seconds)
