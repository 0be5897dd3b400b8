"""One question to one peer, answered once: by it, or by the end of the round."""

from __future__ import annotations

from typing import Callable, Protocol

from pp_hostd.agent.driver import News
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.settings import Settings
from pp_hostd.sim.time import Clock
from pp_hostd.sim.truth import Truth

Answered = Callable[[Answer], None]
Question = tuple[str, str, str]
"""Who asks, about which machine, of which uid."""
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
