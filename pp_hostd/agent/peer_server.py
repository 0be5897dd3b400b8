"""The peer port's answers: who may ask, the read that a question causes, and the signed reply."""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict
from collections.abc import Iterator
from typing import Callable

from pp_hostd.agent.fresh_reads import FreshReads, Read
from pp_hostd.agent.witness import REMEMBERED_SECONDS, Statement, Witness
from pp_hostd.model.answer import Answer, Health
from pp_hostd.peers.message import Exchange, MachineReference, Refusal, parse_question
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.http_connection import Reply, Request
from pp_hostd.service.metric import Metric

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
            for subject, uid in self._witness.remembered:
                namespace, _, name = subject.rpartition("/")
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
            about=exchange.question.about.subject,
            lifted_id=statement.lifted_id,
        )
        body = answer.render().encode()
        signature = exchange.answer_signature(body, self.keyring)
        extra = f"PP-Hostd-Signature: {signature}\r\n".encode() if signature else b""
        return Reply(200, body, b"application/json", extra)
