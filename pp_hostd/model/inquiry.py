"""The inquiry of rule 3 as a value: who was asked when, who said what, and what that comes to."""

from __future__ import annotations

import enum
import hashlib
import math
from collections.abc import Container, Iterable, Sequence

from pp_hostd.frozen import frozen, replace
from pp_hostd.model.answer import Answer, Health


class Said(enum.Enum):
    """The weight of a peer's answer. Silence is no answer: it counts for nothing, and ends no round early."""

    HEALTHY = "healthy"
    UNHEALTHY = "unhealthy"
    NOT_FOUND = "not-found"
    API_ERROR = "api-error"


@frozen
class Reply:
    """One peer's answer; `id` is the condemnation's, where it named one."""

    peer: str
    said: Said
    id: int | None


@frozen
class Inquiry:
    """`asked` holds every peer asked so far, in order: the last `in_round` of them in this round. While `in_round` is
    0, the round is yet to begin. A peer that was silent and is asked again is there once, in the later round."""

    started_at: float
    seed: int
    round: int
    round_began_at: float
    asked: tuple[str, ...]
    in_round: int
    replies: tuple[Reply, ...] = ()

    @property
    def asked_in_round(self) -> tuple[str, ...]:
        return self.asked[len(self.asked) - self.in_round :]

    @property
    def heard(self) -> set[str]:
        return {reply.peer for reply in self.replies}

    @property
    def awaited(self) -> tuple[str, ...]:
        """The peers that were asked in this round and have not answered."""
        heard = self.heard
        return tuple(peer for peer in self.asked_in_round if peer not in heard)

    def round_over(self, round_seconds: float, now: float) -> bool:
        return now >= self.round_began_at + round_seconds or not self.awaited

    def resumed(self) -> Inquiry:
        """As a restarted process takes it up: the questions under way were lost with the old one, so that their round
        is yet to begin. Answers and the start stay (rule 6)."""
        lost = self.awaited
        if not lost:
            return self
        return replace(self, round=self.round - 1, asked=_without(lost, self.asked), in_round=0)

    def exhausted(self, peers: Sequence[str], rounds: int) -> bool:
        """Nobody is left to ask: all have answered, or all were asked and the rounds are over."""
        return self.heard.issuperset(peers) or (self.round >= rounds and set(self.asked).issuperset(peers))

    def said(self, *words: Said) -> list[Reply]:
        return [reply for reply in self.replies if reply.said in words]

    def summary(self) -> str:
        """`2 api-error, 1 silent of 3 asked`; silent is everybody who has not answered yet."""
        counts = {word.value: sum(reply.said is word for reply in self.replies) for word in Said}
        counts["silent"] = len(self.asked) - len(self.replies)
        found = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        return f"{found} of {len(self.asked)} asked"


def weigh(answer: Answer, lifted_ids: Container[int]) -> tuple[Said, int | None]:
    """An "unhealthy" under an id that a read has found lifted is old news: the peer can't read the API (rule 4)."""
    if answer.health is Health.UNHEALTHY and answer.id in lifted_ids:
        return Said.API_ERROR, answer.id
    return Said(answer.health.value), answer.id


def is_outage(replies: Iterable[Reply], host: str, electorates: Sequence[Sequence[str]]) -> bool:
    """2(E + 1) > n, the host itself counted, in every roster that may be in force (rules 3 and 5)."""
    cut_off = {host, *(reply.peer for reply in replies if reply.said is Said.API_ERROR)}
    return bool(electorates) and all(2 * len(cut_off.intersection(nodes)) > len(nodes) for nodes in electorates)


def asked_by_round(peers: int, round_number: int, rounds: int) -> int:
    """How many of so many peers are asked by the end of that round: a tenth of all nodes first, everyone at the end."""
    first = max(1, min(math.ceil((peers + 1) / 10), peers))
    if round_number >= rounds:
        return peers
    growth = (round_number - 1) / (rounds - 1)
    return min(peers, math.ceil(round(first * math.pow(peers / first, growth), 6)))


def next_round(inquiry: Inquiry, peers: Sequence[str], rounds: int, now: float) -> Inquiry:
    """The inquiry with its next set of peers: all who were silent, since an agent that restarts, or a link that comes
    back, is heard then; and some who were not asked yet. Rounds in which nobody is due are passed over."""
    silent = _without(inquiry.heard.union(set(inquiry.asked).difference(peers)), inquiry.asked)
    new = sorted(set(peers).difference(inquiry.asked), key=lambda peer: _rank(inquiry.seed, peer))
    number = inquiry.round
    chosen: tuple[str, ...] = ()
    while (silent or new) and not chosen:
        number += 1
        due = asked_by_round(len(peers), number, rounds) - (len(peers) - len(new))
        chosen = silent + tuple(new[: max(0, due)])
    asked = _without(chosen, inquiry.asked) + chosen
    return Inquiry(inquiry.started_at, inquiry.seed, number, now, asked, len(chosen), inquiry.replies)


def _without(some: Iterable[str], peers: tuple[str, ...]) -> tuple[str, ...]:
    left_out = set(some)
    return tuple(peer for peer in peers if peer not in left_out)


def _rank(seed: int, peer: str) -> bytes:
    """An order of the peers that is random as the seed is, and the same whenever it is computed again."""
    return hashlib.sha256(f"{seed} {peer}".encode()).digest()
