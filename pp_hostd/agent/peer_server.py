"""The peer port: who may ask, the API read that a question causes, the signed reply, and doors tried for peers."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import Awaitable, Iterator
from typing import Callable

from pp_hostd.agent.fresh_reads import Cancel, Ended, FreshReads, read_remembered_again
from pp_hostd.agent.witness import ReadOutcome, Statement, Unread, Witness
from pp_hostd.model.answer import Health
from pp_hostd.model.roster import Member
from pp_hostd.peers.knock import Knock, Knocked, Reach, Reached, is_call, parse_call
from pp_hostd.peers.message import Exchange, MachineReference, Refusal, parse_question
from pp_hostd.peers.probe import Contact, Probed, probe, reach
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.http_port import Reply, Request
from pp_hostd.service.metric import Metric

Read = Callable[[MachineReference, float], Awaitable[ReadOutcome]]
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
        """`me` is the name of this node, `read_seconds` what timing.peer_read_seconds says, `machines` the setting.
        `read` is the linearizable read of a machine, with a deadline in seconds."""
        self.keyring = keyring
        self.answers: Counter[Health] = Counter()
        self.refusals: Counter[Refusal] = Counter()
        self._me = me
        self._read_seconds = read_seconds
        self._about_nodes = machines == "node"
        self._read, self._witness = read, witness
        self._loop = asyncio.get_running_loop()
        self._reading: set[asyncio.Task[None]] = set()
        self._reads = FreshReads(self._begin_read, self._later, witness, clock)
        self._nonces: OrderedDict[str, None] = OrderedDict()

    async def respond(self, request: Request) -> Reply:
        exchange = self._accepted(request)
        if isinstance(exchange, Refusal):
            self.refusals[exchange] += 1
            return Reply(exchange.status, f"{exchange.sentence}\n".encode())
        statement = await self._statement(exchange.question.about)
        self.answers[statement.health] += 1
        return self._reply(exchange, statement)

    async def read_remembered_again(self) -> None:
        """Goes on until it is cancelled."""
        await read_remembered_again(self._witness, self._statement, asyncio.sleep)

    async def _statement(self, about: MachineReference) -> Statement:
        said: asyncio.Future[Statement] = self._loop.create_future()
        self._reads.ask(
            about, self._read_seconds, lambda statement: None if said.done() else said.set_result(statement)
        )
        return await said

    def _later(self, seconds: float, action: Callable[[], None]) -> Cancel:
        return self._loop.call_later(seconds, action).cancel

    def _begin_read(self, about: MachineReference, seconds: float, ended: Ended) -> None:
        task = self._loop.create_task(self._run_read(about, seconds, ended))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _run_read(self, about: MachineReference, seconds: float, ended: Ended) -> None:
        try:
            outcome = await self._read(about, seconds)
        except Exception:  # whatever is wrong with the read, it proves nothing
            outcome = Unread.FAILED
        ended(outcome)

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
        question = exchange.question
        answer = statement.answer(self._me, question.asked_by, question.about.machine_key, exchange.nonce)
        body = answer.render().encode()
        signature = exchange.answer_signature(body, self.keyring)
        extra = f"PP-Hostd-Signature: {signature}\r\n".encode() if signature else b""
        return Reply(200, body, b"application/json", extra)


MAX_KNOCKS = 4
MAX_PER_SECOND = 10
CALL_BACK_SECONDS = 2.0
STRANGER = Reply(403, b"the roster lists no node of that name, so its door is not tried\n")
TOO_MANY = Reply(429, b"others knock just now: knock again in a moment\n")
UNTRIED = Reply(503, b"this host can't try doors just now\n")


class KnockServer:
    """`respond` is what the peer port does with a request: doors are tried here, all else by the server of questions.

    A knock has the sender's own door tried, a reach that of another node (peers/knock.py).
    """

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
        if not is_call(request.target):
            return await self._questions.respond(request)
        arrived_wallclock = self._wallclock()
        call = parse_call(request.method, request.target, request.headers, self._me, self._questions.keyring)
        if isinstance(call, Refusal):
            return Reply(call.status, f"{call.sentence}\n".encode())
        member = self._member(call.node if isinstance(call, Reach) else call.asked_by)
        if member is None:
            return STRANGER
        if self._under_way >= MAX_KNOCKS or self._clock() < self._begun_at[0] + 1:
            return TOO_MANY
        return self._reply(call, await self._tried(call, member.address), arrived_wallclock)

    async def _tried(self, call: Knock | Reach, address: str) -> Probed:
        self._begun_at.append(self._clock())
        self._under_way += 1
        try:
            if isinstance(call, Reach):
                return await reach(address, self._port)
            return await probe(address, self._port, CALL_BACK_SECONDS)
        finally:
            self._under_way -= 1

    def _reply(self, call: Knock | Reach, probed: Probed, arrived_wallclock: float) -> Reply:
        keyring = self._questions.keyring
        if isinstance(call, Knock):
            left_wallclock = max(arrived_wallclock, self._wallclock())  # it may be set back meanwhile
            taken = probed.contact is Contact.REACHED
            body, signature = call.answer(Knocked(taken, probed.why, arrived_wallclock, left_wallclock), keyring)
        elif probed.finding is None:
            return UNTRIED
        else:
            body, signature = call.answer(Reached(probed.finding, probed.why), keyring)
        extra = f"PP-Hostd-Signature: {signature}\r\n".encode() if signature else b""
        return Reply(200, body, b"application/json", extra)
