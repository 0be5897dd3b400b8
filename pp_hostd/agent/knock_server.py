"""Answers to knocks on the peer port: one short connection back to the sender's address in the roster, never more.

It touches neither reads nor memory nor judgement, and takes so little that whoever has the key gains nothing by it.
"""

from __future__ import annotations

from collections import deque
from typing import Callable

from pp_hostd.agent.peer_server import PeerServer
from pp_hostd.model.roster import Member
from pp_hostd.peers.knock import PATH, Knock, Knocked, parse_knock
from pp_hostd.peers.knocking import call_back
from pp_hostd.peers.message import Refusal
from pp_hostd.service.http_connection import Reply, Request

MAX_AT_ONCE = 4
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
        if self._under_way >= MAX_AT_ONCE or self._clock() < self._begun_at[0] + 1:
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
