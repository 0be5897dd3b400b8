"""The peer port: who may ask, the API read that a question causes, the signed reply, and answers to knocks."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Iterator
from dataclasses import dataclass, field
from typing import Callable

from pp_hostd.agent.witness import REMEMBERED_SECONDS, ReadOutcome, Statement, Unread, Witness
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.roster import Member
from pp_hostd.peers.client import call_back
from pp_hostd.peers.knock import PATH, Knock, Knocked, parse_knock
from pp_hostd.peers.message import Exchange, MachineReference, Refusal, parse_question
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.http_port import Reply, Request
from pp_hostd.service.metric import Metric

MAX_READS = 8
MAX_WAITING = 256  # below the cap on connections: in an outage the others are answered at once, and nobody is evicted

Read = Callable[[MachineReference, float], Awaitable[ReadOutcome]]


@dataclass
class _Wanted:
    """A read that has not begun, and the questions that it will answer."""

    ends_at: float = 0.0
    askers: list[asyncio.Future[Statement]] = field(default_factory=list)


class FreshReads:
    """Of a machine there is at most one read under way and one waiting; a question joins only the latter (rule 1)."""

    def __init__(self, read: Read, witness: Witness, clock: Callable[[], float]) -> None:
        """`read` is the linearizable read of a machine, with a deadline in seconds; it does not raise."""
        self._read = read
        self._witness = witness
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._waiting: dict[MachineReference, _Wanted] = {}
        self._under_way: dict[MachineReference, asyncio.Task[None]] = {}

    async def statement(self, about: MachineReference, deadline_seconds: float) -> Statement:
        """Returns the statement after a read begun from now on; after the deadline, or if too many reads wait, the one
        without a read."""
        if about not in self._waiting and len(self._waiting) >= MAX_WAITING:
            return self._answer(about, Unread.FAILED, self._clock())
        asker: asyncio.Future[Statement] = self._loop.create_future()
        wanted = self._waiting.setdefault(about, _Wanted())
        wanted.askers.append(asker)
        wanted.ends_at = self._loop.time() + deadline_seconds  # whoever asked before gives up on its own
        timer = self._loop.call_at(wanted.ends_at, self._give_up, about, asker)
        self._begin()
        try:
            return await asker
        finally:
            timer.cancel()

    def _give_up(self, about: MachineReference, asker: asyncio.Future[Statement]) -> None:
        if not asker.done():
            asker.set_result(self._answer(about, Unread.FAILED, self._clock()))

    def _begin(self) -> None:
        while len(self._under_way) < MAX_READS:
            about = next((each for each in self._waiting if each not in self._under_way), None)
            if about is None:
                return
            self._under_way[about] = self._loop.create_task(self._run(about, self._waiting.pop(about)))

    async def _run(self, about: MachineReference, wanted: _Wanted) -> None:
        began_at = self._clock()
        remaining_seconds = wanted.ends_at - self._loop.time()
        outcome: ReadOutcome = Unread.FAILED
        try:
            if remaining_seconds > 0:
                outcome = await self._read(about, remaining_seconds)
        finally:
            del self._under_way[about]
        # Answered before the next read of this machine begins: what is acknowledged now must not spoil that one.
        statement = self._answer(about, outcome, began_at)
        for asker in wanted.askers:
            if not asker.done():
                asker.set_result(statement)
        self._begin()

    def _answer(self, about: MachineReference, outcome: ReadOutcome, began_at: float) -> Statement:
        return self._witness.answer(about.machine_key, about.uid, outcome, began_at=began_at, now=self._clock())


MAX_NONCES = 1024


class PeerServer:
    """`respond` is what the peer port does with a request. `keyring` may be replaced while it runs."""

    def __init__(
        self,
        me: str,
        keyring: Keyring,
        witness: Witness,
        read: Read,
        clock: Callable[[], float],
        read_seconds: float,
        machines: str,
    ) -> None:
        """`me` is the name of this node, `read_seconds` what timing.peer_read_seconds says, `machines` the setting."""
        self.keyring = keyring
        self.answers: Counter[Health] = Counter()
        self.refusals: Counter[Refusal] = Counter()
        self._me = me
        self._read_seconds = read_seconds
        self._about_nodes = machines == "node"
        self._witness = witness
        self._reads = FreshReads(read, witness, clock)
        self._nonces: OrderedDict[str, None] = OrderedDict()

    async def respond(self, request: Request) -> Reply:
        exchange = self._accepted(request)
        if isinstance(exchange, Refusal):
            self.refusals[exchange] += 1
            return Reply(exchange.status, f"{exchange.sentence}\n".encode())
        statement = await self._reads.statement(exchange.question.about, self._read_seconds)
        self.answers[statement.health] += 1
        return self._reply(exchange, statement)

    async def read_remembered_again(self) -> None:
        """Rule 4: where somebody removed an id, no answer names it as lifted, and only a read ends the memory of it.
        Goes on until it is cancelled."""
        while True:
            await asyncio.sleep(REMEMBERED_SECONDS)
            for machine_key, uid in self._witness.remembered:
                namespace, _, name = machine_key.rpartition("/")
                await self._reads.statement(MachineReference(namespace or None, name, uid), self._read_seconds)

    def metrics(self) -> Iterator[Metric]:
        yield Metric(
            "pp_hostd_peer_answers_total",
            "Answers given to peers, by what they said.",
            "counter",
            [({"answer": health.value}, self.answers[health]) for health in Health],
        )
        yield Metric(
            "pp_hostd_peer_refusals_total",
            "Questions that were refused, by reason.",
            "counter",
            [({"reason": refusal.label}, self.refusals[refusal]) for refusal in Refusal],
        )

    def _accepted(self, request: Request) -> Exchange | Refusal:
        exchange = parse_question(request.method, request.target, request.headers, self._me, self.keyring)
        if isinstance(exchange, Refusal):
            return exchange
        if (exchange.question.about.namespace is None) != self._about_nodes:
            # Silence: "api-error" could keep a condemned host alive, and "not-found" would condemn a healthy one.
            return Refusal.ANOTHER_KIND
        if exchange.nonce in self._nonces:
            return Refusal.REPLAYED
        self._nonces[exchange.nonce] = None
        if len(self._nonces) > MAX_NONCES:
            self._nonces.popitem(last=False)
        return exchange

    def _reply(self, exchange: Exchange, statement: Statement) -> Reply:
        answer = Answer(
            health=statement.health,
            id=statement.id,
            token=statement.token,
            nonce=exchange.nonce,
            answered_by=self._me,
            asked_by=exchange.question.asked_by,
            about=exchange.question.about.machine_key,
            lifted_id=statement.lifted_id,
        )
        body = answer.render().encode()
        signature = exchange.answer_signature(body, self.keyring)
        extra = f"PP-Hostd-Signature: {signature}\r\n".encode() if signature else b""
        return Reply(200, body, b"application/json", extra)


MAX_KNOCKS = 4
MAX_PER_SECOND = 10
CALL_BACK_SECONDS = 2.0
STRANGER = Reply(403, b"the roster lists no node of that name, so nobody is called back\n")
TOO_MANY = Reply(429, b"others knock just now: knock again in a moment\n")


class KnockServer:
    """`respond` is what the peer port does with a request: knocks here, all else by the server of questions."""

    def __init__(
        self,
        me: str,
        questions: PeerServer,
        member: Callable[[str], Member | None],
        port: int,
        clock: Callable[[], float],
        wallclock: Callable[[], float],
    ) -> None:
        """`member` finds a node in the roster, `port` is the peer port of all."""
        self._me, self._questions, self._member, self._port = me, questions, member, port
        self._clock, self._wallclock = clock, wallclock
        self._under_way = 0
        self._begun_at: deque[float] = deque([float("-inf")] * MAX_PER_SECOND, maxlen=MAX_PER_SECOND)

    async def respond(self, request: Request) -> Reply:
        if request.target != PATH.encode():
            return await self._questions.respond(request)
        arrived_wallclock = self._wallclock()
        knock = parse_knock(request.method, request.headers, self._me, self._questions.keyring)
        if isinstance(knock, Refusal):
            return Reply(knock.status, f"{knock.sentence}\n".encode())
        member = self._member(knock.asked_by)
        if member is None:
            return STRANGER
        if self._under_way >= MAX_KNOCKS or self._clock() < self._begun_at[0] + 1:
            return TOO_MANY
        return self._reply(knock, await self._called_back(member.address), arrived_wallclock)

    async def _called_back(self, address: str) -> str:
        self._begun_at.append(self._clock())
        self._under_way += 1
        try:
            return await call_back(address, self._port, CALL_BACK_SECONDS)
        finally:
            self._under_way -= 1

    def _reply(self, knock: Knock, why: str, arrived_wallclock: float) -> Reply:
        left_wallclock = max(arrived_wallclock, self._wallclock())  # it may be set back meanwhile
        knocked = Knocked(not why, why, arrived_wallclock, left_wallclock)
        body, signature = knock.answer(knocked, self._questions.keyring)
        extra = f"PP-Hostd-Signature: {signature}\r\n".encode() if signature else b""
        return Reply(200, body, b"application/json", extra)
