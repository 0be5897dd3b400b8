"""One round of the inquiry (rule 3): its peers are asked at the same time, and each answer is told as it comes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Callable

from pp_hostd.agent.sense.api import Clock
from pp_hostd.frozen import frozen
from pp_hostd.model.answer import Answer
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.settings import Settings
from pp_hostd.peers.client import Peer, ask
from pp_hostd.peers.message import Question
from pp_hostd.peers.signing import Keyring

MAX_OPEN = 4096
"""How many sockets at most. In an outage that swallows packets every peer answers late in the round, and rule 3 counts
them all: with fewer sockets than the largest set of peers, a large cluster would reset itself."""
BEGUN_AT_ONCE = 32
"""After so many the loop gets a turn: the watchdog must be fed while thousands are asked."""


@frozen
class Round:
    """How its peers are asked; `answered` is called once for each of them, by the end of the round."""

    settings: Settings
    keyring: Keyring
    clock: Clock
    answered: Callable[[PeerAnswered], None]
    max_open: int = MAX_OPEN

    async def ask(self, peers: Sequence[Peer], question: Question) -> None:
        """Ends with the round. Cancelled, it leaves nothing open, and the rest unasked."""
        over_at = self.clock() + self.settings.peers.round_seconds
        waiting = iter(peers)
        lanes: list[asyncio.Task[None]] = []
        try:
            for number in range(min(self.max_open, len(peers))):
                lanes.append(asyncio.ensure_future(self._lane(waiting, question, over_at)))
                if number % BEGUN_AT_ONCE == 0:
                    await asyncio.sleep(0)
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()

    async def _lane(self, waiting: Iterator[Peer], question: Question, over_at: float) -> None:
        """Asks one peer after the other, until none is left. A peer whose turn comes after the end counts as silent."""
        for peer in waiting:
            began_at = self.clock()
            if began_at >= over_at:
                silence = "the round was over before it could be asked"
                self.answered(PeerAnswered(peer.name, began_at, began_at, None, silence))
                continue
            port = self.settings.peers.port
            said = await ask(peer, port, question, self.keyring, deadline_seconds=over_at - began_at)
            answer = said if isinstance(said, Answer) else None
            silence = "" if isinstance(said, Answer) else said.reason
            self.answered(PeerAnswered(peer.name, began_at, self.clock(), answer, silence))
