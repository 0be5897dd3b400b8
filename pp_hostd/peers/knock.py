"""Signed requests to a peer to try a door, and its signed answers: the knock and the reach. No I/O here.

    GET /v1/knock            the peer tries the way back to the sender's own peer port, and tells the time
    GET /v1/reach/<node>     the peer tries the door of that node
    both with From, To, Nonce and Signature as a question has them (message.py)

Neither says where to call: the peer takes the address that its own roster has. An answer is signed like any other, and
proves nothing about any machine: no judgement ever sees it.
"""

from __future__ import annotations

import re
from typing import Callable, ClassVar, TypeVar

from pp_hostd.frozen import frozen
from pp_hostd.model.record import (
    MAX_RECORD_CHARACTERS,
    NAME,
    OPAQUE,
    Fields,
    Form,
    Refused,
    Unreadable,
    document,
    read,
    render,
)
from pp_hostd.peers.message import FROM, NONCE, SIGNATURE, TO, Headers, Refusal
from pp_hostd.peers.signing import Keyring

PATH = "/v1/knock"
REACH_PATH = "/v1/reach/"
MAX_WHY = 200
_METHOD = b"GET"
_TARGET = re.compile(rf"{PATH}|{REACH_PATH}(?P<node>{NAME.pattern.pattern})")
_WHY = Form("one short line of text", re.compile(f"[^\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff]{{0,{MAX_WHY}}}"))
_LATEST_WALLCLOCK = 1e11
Answered = TypeVar("Answered")


@frozen
class Call:
    """One request to one peer; the nonce binds the answer to it."""

    asked_by: str
    asked_of: str
    nonce: str

    REQUEST: ClassVar[bytes]
    ANSWER: ClassVar[bytes]
    """The tags of both directions: the signature of one message is never that of another kind."""

    @property
    def path(self) -> str:
        raise NotImplementedError

    def headers(self, keyring: Keyring) -> list[tuple[bytes, bytes]]:
        names = [(FROM, self.asked_by), (TO, self.asked_of), (NONCE, self.nonce)]
        signature = keyring.sign(*self._signed(self.REQUEST))
        return [(name, value.encode()) for name, value in names + [(SIGNATURE, signature)] * bool(signature)]

    def is_signed(self, signature: str, keyring: Keyring) -> bool:
        return keyring.accepts(signature, *self._signed(self.REQUEST))

    def answer_signature(self, body: bytes, keyring: Keyring) -> str:
        """The signature of the answer; empty when nothing is signed."""
        return keyring.sign(*self._signed(self.ANSWER, body))

    def is_answer_signed(self, signature: str, body: bytes, keyring: Keyring) -> bool:
        return keyring.accepts(signature, *self._signed(self.ANSWER, body))

    def _answer(self, fields: dict[str, object], keyring: Keyring) -> tuple[bytes, str]:
        """The body of the answer, and its signature."""
        body = render({**fields, "nonce": self.nonce}).encode()
        return body, self.answer_signature(body, keyring)

    def _signed(self, direction: bytes, body: bytes = b"") -> tuple[bytes, ...]:
        names = self.nonce.encode(), self.asked_by.encode(), self.asked_of.encode()
        return (direction, _METHOD, self.path.encode(), *names, body)


@frozen
class Reached:
    """The peer's finding: whether a host's kernel took or refused its connection, else why not."""

    reached: bool
    why: str


@frozen
class Knocked(Reached):
    """The peer's finding about the sender: whether its connection was taken, else why not; and its clock when the knock
    arrived and when its answer left, so that the time the knock took is known."""

    arrived_wallclock: float
    left_wallclock: float


@frozen
class Knock(Call):
    """One knock at one peer's door."""

    REQUEST, ANSWER = b"knock", b"knocked"

    @property
    def path(self) -> str:
        return PATH

    def answer(self, knocked: Knocked, keyring: Keyring) -> tuple[bytes, str]:
        """The body of the answer, and its signature."""
        times = {"arrived": knocked.arrived_wallclock, "left": knocked.left_wallclock}
        return self._answer({**_finding(knocked), **times}, keyring)


@frozen
class Reach(Call):
    """One request to a peer to try the door of a node."""

    node: str

    REQUEST, ANSWER = b"reach", b"reached"

    @property
    def path(self) -> str:
        return REACH_PATH + self.node

    def answer(self, reached: Reached, keyring: Keyring) -> tuple[bytes, str]:
        """The body of the answer, and its signature."""
        return self._answer(_finding(reached), keyring)


def _finding(reached: Reached) -> dict[str, object]:
    return {"reached": reached.reached, "why": reached.why[:MAX_WHY]}


def is_call(target: bytes) -> bool:
    """Whether a request is for `parse_call`."""
    return target == PATH.encode() or target.startswith(REACH_PATH.encode())


def parse_call(method: bytes, target: bytes, headers: Headers, me: str, keyring: Keyring) -> Knock | Reach | Refusal:
    """The knock or reach that a request brings to the node `me`; header names are in lower case."""
    if method != _METHOD:
        return Refusal.METHOD
    parts = _TARGET.fullmatch(target.decode("latin-1"))
    if parts is None:
        return Refusal.UNKNOWN_PATH
    asked_by, asked_of, nonce = (headers.get(name, b"").decode("latin-1") for name in (FROM, TO, NONCE))
    named = NAME.pattern.fullmatch(asked_by) and NAME.pattern.fullmatch(asked_of)
    if not named or not OPAQUE.pattern.fullmatch(nonce):
        return Refusal.MALFORMED
    node = parts["node"]
    call = Knock(asked_by, asked_of, nonce) if node is None else Reach(asked_by, asked_of, nonce, node)
    if not call.is_signed(headers.get(SIGNATURE, b"").decode("latin-1"), keyring):
        return Refusal.WRONG_SIGNATURE
    return call if asked_of == me else Refusal.NOT_ME


def parse_knocked(knock: Knock, status: int, headers: Headers, body: bytes, keyring: Keyring) -> Knocked | Unreadable:
    """The peer's answer to this very knock."""
    return _answered(knock, _knocked, status, headers, body, keyring)


def parse_reached(reach: Reach, status: int, headers: Headers, body: bytes, keyring: Keyring) -> Reached | Unreadable:
    """The peer's answer to this very request."""
    return _answered(reach, _reached, status, headers, body, keyring)


def _answered(
    call: Call, build: Callable[[Fields], Answered], status: int, headers: Headers, body: bytes, keyring: Keyring
) -> Answered | Unreadable:
    what = "the peer's answer"
    if status != 200:
        return Unreadable(what, f"status {status}, {body[:120].decode('latin-1').strip()!a}")
    if not call.is_answer_signed(headers.get(SIGNATURE, b"").decode("latin-1"), body, keyring):
        return Unreadable(what, "its signature is missing or wrong: both nodes need the same peer key")

    def whole(body: bytes) -> Answered:
        fields = document(body, MAX_RECORD_CHARACTERS)
        if fields.anything("nonce") != call.nonce:  # which an unsigned answer must show, too
            raise Refused("it answers another request")
        return build(fields)

    return read(what, whole, body)


def _knocked(fields: Fields) -> Knocked:
    found = _reached(fields)
    arrived = fields.seconds("arrived", 0, _LATEST_WALLCLOCK)
    return Knocked(found.reached, found.why, arrived, fields.seconds("left", arrived, _LATEST_WALLCLOCK))


def _reached(fields: Fields) -> Reached:
    reached = fields.anything("reached")
    if not isinstance(reached, bool):
        raise Refused("reached is neither true nor false")
    return Reached(reached, fields.text("why", _WHY))
