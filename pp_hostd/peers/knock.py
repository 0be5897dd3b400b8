"""The knock: a node has a peer try the way back to its own peer port, and tell the time. No I/O here.

    GET /v1/knock      with From, To, Nonce and Signature as a question has them (message.py)

A knock does not say whom to call back: the peer calls the address that its own roster has for the sender. An answer is
signed like any other, and proves nothing about any machine: no judgement ever sees it.
"""

from __future__ import annotations

import re

from pp_hostd.frozen import frozen
from pp_hostd.model.record import MAX_RECORD_CHARACTERS, NAME, OPAQUE, Form, Unreadable, document, read, render
from pp_hostd.peers.message import FROM, NONCE, SIGNATURE, TO, Headers, Refusal
from pp_hostd.peers.signing import Keyring

PATH = "/v1/knock"
MAX_WHY = 200
_METHOD = b"GET"
_KNOCK, _KNOCKED = b"knock", b"knocked"
_WHY = Form("one short line of text", re.compile(f"[^\\x00-\\x1f\\x7f-\\x9f\\ud800-\\udfff]{{0,{MAX_WHY}}}"))
_LATEST_WALLCLOCK = 1e11


@frozen
class Knocked:
    """The peer's finding: whether its connection was taken, else why not; and its clock when the knock arrived and when
    its answer left, so that the time the knock took is known."""

    reached: bool
    why: str
    arrived_wallclock: float
    left_wallclock: float


@frozen
class Knock:
    """One knock at one peer's door; the nonce binds the answer to it."""

    asked_by: str
    asked_of: str
    nonce: str

    def headers(self, keyring: Keyring) -> list[tuple[bytes, bytes]]:
        names = [(FROM, self.asked_by), (TO, self.asked_of), (NONCE, self.nonce)]
        signature = keyring.sign(*self._signed(_KNOCK))
        return [(name, value.encode()) for name, value in names + [(SIGNATURE, signature)] * bool(signature)]

    def is_signed(self, signature: str, keyring: Keyring) -> bool:
        return keyring.accepts(signature, *self._signed(_KNOCK))

    def answer(self, knocked: Knocked, keyring: Keyring) -> tuple[bytes, str]:
        """The body of the answer, and its signature."""
        fields = {"reached": knocked.reached, "why": knocked.why[:MAX_WHY]}
        times = {"arrived": knocked.arrived_wallclock, "left": knocked.left_wallclock}
        body = render({**fields, **times, "nonce": self.nonce}).encode()
        return body, keyring.sign(*self._signed(_KNOCKED, body))

    def is_answer_signed(self, signature: str, body: bytes, keyring: Keyring) -> bool:
        return keyring.accepts(signature, *self._signed(_KNOCKED, body))

    def _signed(self, direction: bytes, body: bytes = b"") -> tuple[bytes, ...]:
        names = self.nonce.encode(), self.asked_by.encode(), self.asked_of.encode()
        return (direction, _METHOD, PATH.encode(), *names, body)


def parse_knock(method: bytes, headers: Headers, me: str, keyring: Keyring) -> Knock | Refusal:
    """The knock at the door of the node `me`; header names are in lower case."""
    if method != _METHOD:
        return Refusal.METHOD
    asked_by, asked_of, nonce = (headers.get(name, b"").decode("latin-1") for name in (FROM, TO, NONCE))
    named = NAME.pattern.fullmatch(asked_by) and NAME.pattern.fullmatch(asked_of)
    if not named or not OPAQUE.pattern.fullmatch(nonce):
        return Refusal.MALFORMED
    knock = Knock(asked_by, asked_of, nonce)
    if not knock.is_signed(headers.get(SIGNATURE, b"").decode("latin-1"), keyring):
        return Refusal.WRONG_SIGNATURE
    return knock if asked_of == me else Refusal.NOT_ME


def parse_knocked(knock: Knock, status: int, headers: Headers, body: bytes, keyring: Keyring) -> Knocked | Unreadable:
    """The peer's answer to this very knock."""
    what = "the peer's answer"
    if status != 200:
        return Unreadable(what, f"status {status}, {body[:120].decode('latin-1').strip()!a}")
    if not knock.is_answer_signed(headers.get(SIGNATURE, b"").decode("latin-1"), body, keyring):
        return Unreadable(what, "its signature is missing or wrong: both nodes need the same peer key")
    return read(what, _knocked, body)


def _knocked(body: object) -> Knocked:
    fields = document(body, MAX_RECORD_CHARACTERS)
    arrived = fields.seconds("arrived", 0, _LATEST_WALLCLOCK)
    left = fields.seconds("left", arrived, _LATEST_WALLCLOCK)
    return Knocked(fields.anything("reached") is True, fields.text("why", _WHY), arrived, left)
