"""A virtual host: the real judge under virtual time, its orders carried out by a scripted API and scripted peers."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Callable

from pp_hostd.agent.judge import judge
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.evidence import Evidence, PeerAnswered, Read
from pp_hostd.model.inquiry import Inquiry, Reply
from pp_hostd.model.machine import Machine
from pp_hostd.model.memory import LastRead, Memory, Proof, Source, Standing
from pp_hostd.model.settings import Settings
from pp_hostd.model.verdict import Verdict
from pp_hostd.timing import peer_read_seconds, tick_seconds

START = 1000.0
HOST = "host"
UID = "the-uid"

Api = Callable[[float], Read]
Peer = Callable[[str, float], PeerAnswered]
Seconds = Callable[[], float]

TESTS_SCALE = replace(
    Settings(),
    api=replace(Settings().api, read_interval_seconds=1.0, read_deadline_seconds=0.5, retry_seconds=0.25),
    peers=replace(Settings().peers, rounds=4, round_seconds=0.5),
    agent=replace(Settings().agent, self_timeout_seconds=5.5),
    watchdog=replace(Settings().watchdog, timeout_seconds=2),
)


def dry_run(settings: Settings) -> Settings:
    return replace(settings, agent=replace(settings.agent, mode="dry-run"))


def roster(n: int) -> tuple[str, ...]:
    """The host itself, and its peers peer-1 to peer-(n-1)."""
    return (HOST, *(f"peer-{number}" for number in range(1, n)))


def standing(n: int = 3, settings: Settings = Settings(), *, armed: bool = True) -> Standing:  # noqa: B008
    return Standing(HOST, UID, armed, settings.agent.self_timeout_seconds, (roster(n),))


def machine(*, condemned: int | None = None, last_id: int = 0, uid: str = UID) -> Machine:
    since = datetime(2024, 1, 1, tzinfo=timezone.utc)
    condemnation = NotRequested(last_id) if condemned is None else Condemned(condemned, since)
    return Machine(None, HOST, uid, "1", condemnation, HOST)


def answer(health: Health, id: int | None = None, by: str = "peer-1", lifted_id: int = 0) -> Answer:
    return Answer(health, id, "token", "nonce", by, HOST, HOST, lifted_id)


def shows(found: Machine, seconds: Seconds = lambda: 0.125) -> Api:
    return lambda at: Read(at, at + seconds(), found)


def fails(seconds: Seconds, why: str = "timed out") -> Api:
    return lambda at: Read(at, at + seconds(), failure=why)


def swallows(settings: Settings) -> Api:
    """Every read runs to its deadline."""
    return fails(lambda: settings.api.read_deadline_seconds)


def says(health: Health, id: int | None = None, seconds: Seconds = lambda: 0.125) -> Peer:
    return lambda peer, at: PeerAnswered(peer, at, at + seconds(), answer(health, id, peer))


def silent(settings: Settings) -> Peer:
    return lambda peer, at: PeerAnswered(peer, at, at + settings.peers.round_seconds, None, "timed out")


def cut_off(settings: Settings) -> Peer:
    """A peer whose own read of the API runs to its deadline too."""
    return says(Health.API_ERROR, seconds=lambda: peer_read_seconds(settings))


def each(behaviours: Mapping[str, Peer], otherwise: Peer) -> Peer:
    return lambda peer, at: behaviours.get(peer, otherwise)(peer, at)


@dataclass
class VirtualHost:
    """`verdicts` holds every judgement; time passes only in `run`."""

    settings: Settings
    standing: Standing
    api: Api
    peer: Peer
    now: float = START
    memory: Memory = field(default_factory=Memory)
    verdicts: list[Verdict] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    fed_at: float | None = None
    oldest_proof_seconds: float = 0.0
    _under_way: list[Read | PeerAnswered] = field(default_factory=list)
    _news: list[Evidence] = field(default_factory=list)
    _random: random.Random = field(default_factory=lambda: random.Random(4))

    @property
    def verdict(self) -> Verdict:
        return self.verdicts[-1]

    def learn(self, *news: Evidence) -> Verdict:
        """Judge now, with this news."""
        self._news += news
        return self._judge()

    def run(self, seconds: float) -> VirtualHost:
        """Live for so long, or until the decision to reset."""
        end = self.now + seconds
        if not self.verdicts:
            self._judge()
        while self.verdict.reset is None and self._next_at() <= end:
            self.now = self._next_at()
            self._judge()
        if self.verdict.reset is None:
            self.now = end
        return self

    def restart(self, down_seconds: float = 0.0) -> None:
        """The process dies, with what it had under way, and comes back."""
        self._under_way.clear()
        self.memory = self.memory.resumed()
        self.now += down_seconds
        self._judge()

    def _next_at(self) -> float:
        return min([self.verdict.wake_at, *(exchange.ended_at for exchange in self._under_way)])

    def _judge(self) -> Verdict:
        before = self.memory.proof
        done = sorted((each for each in self._under_way if each.ended_at <= self.now), key=lambda each: each.ended_at)
        self._under_way = [each for each in self._under_way if each.ended_at > self.now]
        evidence, self._news = [*done, *self._news], []
        seed = self._random.getrandbits(32)
        judgement = judge(self.settings, self.standing, self.memory, evidence, self.now, seed)
        verdict, self.memory = judgement.verdict, judgement.memory
        assert self.now < verdict.wake_at <= self.now + tick_seconds(self.settings), (
            "the loop never spins nor sleeps in"
        )
        self.verdicts.append(verdict)
        if before is not None and verdict.reset is None:
            self.oldest_proof_seconds = max(self.oldest_proof_seconds, self.now - before.at)
        if verdict.feed:
            self.fed_at = self.now
        if verdict.read:
            self._under_way.append(self.api(self.now))
        self._under_way += [self.peer(name, self.now) for name in verdict.ask]
        self.asked += verdict.ask
        return verdict


PROVEN = Memory(proof=Proof(START, Source.OWN_READ), last_read=LastRead(START, START + 0.5, ""))
"""The memory of a host whose last read, at START, proved it well."""


def judged_host(
    memory: Memory = PROVEN,
    n: int = 3,
    peer: Peer | None = None,
    now: float = START + 1,
) -> VirtualHost:
    """A host with the default settings and this memory, whose API has just gone."""
    settings = Settings()
    return VirtualHost(settings, standing(n), swallows(settings), peer or silent(settings), now, memory)


def inquiring(*replies: Reply, asked: tuple[str, ...] = ("peer-1", "peer-2"), lifted_id: int = 0) -> Memory:
    """An inquiry of START + 12, in its last round since START + 14."""
    inquiry = Inquiry(START + 12, 0, 4, START + 14, asked, len(asked), replies)
    failed = LastRead(START + 10, START + 12, "timed out")
    return replace(PROVEN, last_read=failed, inquiry=inquiry).having_seen_lifted(UID, lifted_id)


def answered(peer: str, health: Health | None, id: int | None = None, began_at: float = START + 14) -> PeerAnswered:
    return PeerAnswered(peer, began_at, began_at + 1, None if health is None else answer(health, id, peer))
