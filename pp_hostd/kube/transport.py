"""Exchanges with the API servers of one cluster: connections kept and dialled, deadlines, and typed failures."""

from __future__ import annotations

import asyncio
import ssl
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Callable, TypeVar

import h11

from pp_hostd import __version__
from pp_hostd.frozen import frozen
from pp_hostd.kube.backoff import Rest, Unanswered
from pp_hostd.kube.certificate import Certificate
from pp_hostd.kube.child import answer_of
from pp_hostd.kube.connection import Connection, Head, Stream, from_exception, from_reply
from pp_hostd.kube.credentials import Credentials, Identity
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.outcome import ApiError, Garbage, Outcome, is_missing
from pp_hostd.model.endpoint import Endpoint, is_address

FRESH_SECONDS = 60.0
MAX_ANSWER_BYTES = 65536
CHILD = """
import socket, sys
found = socket.getaddrinfo(sys.argv[1], None, type=socket.SOCK_STREAM)
print("\\n".join(dict.fromkeys(entry[4][0] for entry in found)))
"""
COMMAND = (sys.executable, "-I", "-S", "-c", CHILD)


class Resolver:
    """Remembers the last good answer for each name, and uses it when no better one can be had in time."""

    def __init__(self, command: Sequence[str] = COMMAND) -> None:
        """`command` gets the name as its last argument and prints one address a line."""
        self._command = command
        self._known: dict[str, tuple[float, list[str]]] = {}

    async def addresses(self, host: str, deadline_seconds: float) -> list[str]:
        """The addresses of `host`, or an OSError that says why there are none."""
        if is_address(host):
            return [host]
        now = asyncio.get_running_loop().time()
        asked_at, last_good = self._known.get(host, (0.0, []))
        if last_good and now - asked_at < FRESH_SECONDS:
            return last_good
        try:
            found = await _ask_child([*self._command, host], deadline_seconds)
        except (OSError, TimedOut) as error:
            if last_good:
                return last_good
            raise OSError(f"the host name {host} can't be resolved ({str(error) or 'no answer in time'})") from None
        self._known[host] = (now, found)
        return found


async def _ask_child(command: list[str], deadline_seconds: float) -> list[str]:
    answer = await answer_of(command, deadline_seconds, MAX_ANSWER_BYTES)
    found = [line for line in answer.decode("ascii", "replace").split("\n") if is_address(line)]
    if not found:
        raise OSError("no such name")
    return found


T = TypeVar("T")

MAX_IDLE = 2
USER_AGENT = f"pp-hostd/{__version__}"
WIRE_ERRORS = (OSError, ssl.SSLError, h11.RemoteProtocolError, TimedOut, Garbage)
FAILURES = (ApiError, *WIRE_ERRORS)
# One server's authorizer, limits or storage may be behind: another of the same cluster may answer otherwise.
FIRST_SERVER_ERROR = 500
REFUSALS = (Outcome.UNAUTHORIZED, Outcome.FORBIDDEN, Outcome.THROTTLED)
# One server may fail so and another of the same cluster may not: the next exchange begins with the next server.
TRY_ANOTHER = (
    Outcome.UNREACHABLE,
    Outcome.TIMED_OUT,
    Outcome.TLS_REFUSED,
    Outcome.SERVER_ERROR,
    Outcome.GARBAGE,
    *REFUSALS,
)


@frozen
class Request:
    """One request, and the words that begin every sentence about its failure."""

    what: str
    method: str
    target: str
    body: bytes = b""
    content_type: str = "application/json"
    may_rest: bool = False
    """Whether it fails at once, without a connection, while the last exchanges brought no answer from any server."""

    every_server: bool = False
    """Whether a read that one server refuses, or finds nothing for, asks the others before it fails."""

    @property
    def write(self) -> bool:
        """Whether it may change something, so that it is never sent twice."""
        return self.method != "GET"


@dataclass
class _Attempt:
    """How far an exchange has come: in whose turn, where it is going, and over which connection."""

    turn: int
    where: str
    connection: Connection | None = None


class Transport:
    """Keeps at most MAX_IDLE connections. Nothing here retries but one thing: a read on a connection found closed."""

    def __init__(self, kubeconfig: Kubeconfig) -> None:
        self._endpoints = kubeconfig.endpoints
        self._server_name = kubeconfig.tls_server_name
        self._credentials = Credentials(kubeconfig)
        self._resolver = Resolver()
        self.requests = 0
        self._idle: list[Connection] = []
        self._rest = Rest()
        self._turn, self._choices = 0, 0  # the turn only grows; modulo the choices it is the one to begin with

    async def exchange(
        self, request: Request, *, deadline_seconds: float, limit_bytes: int, accept: Callable[[bytes], T]
    ) -> T:
        """Returns what `accept` makes of a successful reply's body. `accept` raises Garbage if the body makes no sense.

        Connect, TLS, head and body together end by the deadline.
        """
        loop = asyncio.get_running_loop()
        refused = self._rest.refused(loop.time()) if request.may_rest else None
        if refused is not None:
            raise ApiError(refused.outcome, f"{request.what}: not tried again so soon after {refused.sentence}")
        ends_at = loop.time() + deadline_seconds
        refusals: list[ApiError] = []
        try:
            while True:
                try:
                    return await self._exchange(request, ends_at - loop.time(), limit_bytes, accept)
                except ApiError as error:
                    refusals.append(error)
                    if not self._has_other_servers(request, error.outcome, len(refusals)):
                        break
            # Rule 1: an object is missing if all servers that answer say so; any other answer is a failed read.
            raise next((error for error in refusals if not is_missing(error)), refusals[-1]) from None
        finally:
            refusals.clear()  # frame, traceback and exception would keep each other alive

    async def _exchange(
        self, request: Request, deadline_seconds: float, limit_bytes: int, accept: Callable[[bytes], T]
    ) -> T:
        attempt = self._attempt()
        try:
            with Deadline(deadline_seconds) as deadline:
                connection, head = await self._begin(attempt, request, deadline)
                body = await self._body(connection, head, limit_bytes)
                self._check(request, connection, head, body)
                return accept(body)
        except FAILURES as error:
            # No local name for what is raised: frame, traceback and exception would keep each other alive.
            raise self._failed(request, attempt, error) from None
        finally:
            self._give_back(attempt)

    def _has_other_servers(self, request: Request, outcome: Outcome, asked: int) -> bool:
        refused = outcome in (*REFUSALS, Outcome.NOT_FOUND)
        return request.every_server and refused and asked < self._choices

    async def open(self, request: Request, *, deadline_seconds: float, limit_bytes: int) -> Connection:
        """A connection on which a successful reply has begun; whoever reads its body closes it."""
        attempt = self._attempt()
        try:
            with Deadline(deadline_seconds) as deadline:
                connection, head = await self._begin(attempt, request, deadline)
                if not 200 <= head.status < 300:
                    self._check(request, connection, head, await self._body(connection, head, limit_bytes))
            attempt.connection = None
            return connection
        except FAILURES as error:
            raise self._failed(request, attempt, error) from None
        finally:
            self._give_back(attempt)

    def use(self, kubeconfig: Kubeconfig) -> None:
        """Take another kubeconfig for the next exchange; KubeconfigError, and no change, if it can't be used."""
        self._credentials = Credentials(kubeconfig)
        self._endpoints, self._server_name = kubeconfig.endpoints, kubeconfig.tls_server_name
        self.close()

    def close(self) -> None:
        """Drop the idle connections."""
        while self._idle:
            self._idle.pop().close()

    @property
    def trouble(self) -> str:
        """The reason why rotated credentials are not in use; empty if none."""
        return self._credentials.trouble

    @property
    def certificate(self) -> Certificate | None:
        """The client certificate in use; None without one."""
        return self._credentials.current().certificate

    def _attempt(self) -> _Attempt:
        self.requests += 1
        return _Attempt(self._turn, self._endpoints[0].url)

    def _failed(self, request: Request, attempt: _Attempt, error: Exception) -> ApiError:
        failed = error if isinstance(error, ApiError) else self._named(request, attempt, error)
        if failed.status is None or failed.status >= FIRST_SERVER_ERROR:
            self._rest.unanswered(Unanswered(failed.outcome, failed.sentence), asyncio.get_running_loop().time())
        elsewhere = failed.outcome in TRY_ANOTHER or (request.every_server and failed.outcome is Outcome.NOT_FOUND)
        if elsewhere and self._choices > 1:
            # Of several exchanges that failed in the same turn, only the first gives it up.
            self._turn = max(self._turn, attempt.turn + 1)
            self.close()
        return failed

    def _named(self, request: Request, attempt: _Attempt, error: Exception) -> ApiError:
        outcome, detail = from_exception(error)
        sent = attempt.connection is not None and attempt.connection.request_sent
        sentence = f"{request.what}: {outcome.value} ({attempt.where}: {detail})"
        return ApiError(outcome, sentence, may_be_done=request.write and sent)

    def _check(self, request: Request, connection: Connection, head: Head, body: bytes) -> None:
        if not 200 <= head.status < 300:
            raise from_reply(head, body, request.what, connection.endpoint.url, write=request.write)

    async def _begin(self, attempt: _Attempt, request: Request, deadline: Deadline) -> tuple[Connection, Head]:
        identity = self._credentials.current()
        kept = self._take_idle(identity)
        if kept is not None:
            attempt.connection, attempt.where = kept, kept.endpoint.url
            try:
                return kept, await self._send(kept, request, identity)
            except WIRE_ERRORS:
                if request.write or kept.received_bytes:
                    raise
                kept.close()  # closed by the server while idle: a read may be sent once more
        attempt.connection = None
        connection = attempt.connection = await self._dial(attempt, request, identity, deadline)
        return connection, await self._send(connection, request, identity)

    async def _send(self, connection: Connection, request: Request, identity: Identity) -> Head:
        headers = {"User-Agent": USER_AGENT, "Accept": "application/json"}
        if identity.token:
            headers["Authorization"] = f"Bearer {identity.token}"
        if request.body:
            headers["Content-Type"] = request.content_type
        head = await connection.request(request.method, request.target, headers, request.body)
        if head.status < FIRST_SERVER_ERROR:
            self._rest.answered()
        return head

    async def _body(self, connection: Connection, head: Head, limit_bytes: int) -> bytes:
        body = bytearray()  # not a list of parts: chunks of a byte each would weigh many times what they hold
        announced = head.headers.get("content-length", "0")
        while connection.received_bytes <= limit_bytes and int(announced) <= limit_bytes:
            part = await connection.read()
            if not part:
                return bytes(body)
            body += part
        raise Garbage(f"its reply is larger than {limit_bytes} bytes, the most that is taken")

    def _take_idle(self, identity: Identity) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            # A rotated certificate means a new context: connections made with the old one are not used again.
            if connection.context is identity.context and not connection.stale():
                return connection
            connection.close()
        return None

    def _give_back(self, attempt: _Attempt) -> None:
        """Keep the connection for the next exchange, unless its server's turn is over."""
        connection = attempt.connection
        if connection is None:
            return
        if connection.finished and attempt.turn == self._turn and len(self._idle) < MAX_IDLE:
            self._idle.append(connection)
        else:
            connection.close()

    async def _dial(self, attempt: _Attempt, request: Request, identity: Identity, deadline: Deadline) -> Connection:
        """A new connection: every address of every server in turn, each with its share of what time is left."""
        refusals: list[tuple[Outcome, str]] = []
        candidates = await self._candidates(deadline, refusals)
        first, choices = self._turn, len(candidates)
        self._choices = choices
        for step in range(choices):
            attempt.turn = first + step
            endpoint, address = candidates[attempt.turn % choices]
            attempt.where = endpoint.url if address == endpoint.host else f"{endpoint.url} at {address}"
            try:
                with Deadline(deadline.remaining_seconds() / (choices - step)):
                    name = self._server_name or endpoint.host
                    stream = await Stream.connect(address, endpoint.port, identity.context, name)
            except WIRE_ERRORS as error:
                outcome, detail = from_exception(error)
                refusals.append((outcome, f"{attempt.where}: {detail}"))
            else:
                self._turn = max(self._turn, attempt.turn)
                return Connection(stream, endpoint, identity.context)
        outcome = refusals[-1][0]
        raise ApiError(outcome, f"{request.what}: {outcome.value} ({'; '.join(detail for _, detail in refusals)})")

    async def _candidates(self, deadline: Deadline, refusals: list[tuple[Outcome, str]]) -> list[tuple[Endpoint, str]]:
        """Every address there is to try. A name that can't be resolved is a refusal, and the others still count."""
        found: list[tuple[Endpoint, str]] = []
        share = 1 / (2 * len(self._endpoints))
        for endpoint in self._endpoints:
            try:
                addresses = await self._resolver.addresses(endpoint.host, deadline.remaining_seconds() * share)
            except OSError as error:
                refusals.append((Outcome.UNREACHABLE, f"{endpoint.url}: {error}"))
            else:
                found += [(endpoint, address) for address in addresses]
        return found
