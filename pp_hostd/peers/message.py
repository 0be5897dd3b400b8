"""The messages between peers: a question and its answer over HTTP, signed both ways. No I/O here.

    GET /v1/machine/<namespace>/<name>?uid=<uid>   (or /v1/node/<name>?uid=<uid>)
    PP-Hostd-From, PP-Hostd-To: the names of both nodes        PP-Hostd-Nonce: a fresh word
    PP-Hostd-Signature: HMAC-SHA256 over a tag, the direction, method, path, nonce, both names and the body

The uid is part of what is asked: a proof is a read of that very object (rule 1). The answer's body is an `Answer`, and
its signature covers the question's path and nonce too. Whatever a stranger sends becomes a `Refusal` or `Unreadable`.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from pp_hostd.frozen import frozen
from pp_hostd.model.answer import Answer, parse_answer
from pp_hostd.model.record import MAX_RECORD_CHARACTERS, NAME, OPAQUE, Unreadable
from pp_hostd.peers.signing import Keyring

FROM, TO, NONCE, SIGNATURE = b"pp-hostd-from", b"pp-hostd-to", b"pp-hostd-nonce", b"pp-hostd-signature"
MAX_BODY_BYTES = MAX_RECORD_CHARACTERS
_METHOD = b"GET"
_QUESTION, _ANSWER = b"question", b"answer"
_NAME = NAME.pattern.pattern
_TARGET = re.compile(rf"/v1/(?:machine/(?P<namespace>{_NAME})/|node/)(?P<name>{_NAME})\?uid=(?P<uid>[!-~]{{1,384}})")

Headers = Mapping[bytes, bytes]


class Refusal(enum.Enum):
    """Why a question gets no answer: the HTTP status, and a line for people."""

    METHOD = (405, "only GET is answered here")
    UNKNOWN_PATH = (404, "ask for /v1/machine/<namespace>/<name>?uid=<uid> or /v1/node/<name>?uid=<uid>")
    MALFORMED = (400, "the headers PP-Hostd-From, -To and -Nonce must hold two names of nodes and one word")
    WRONG_SIGNATURE = (403, "the signature is missing or wrong: both nodes need the same peer key")
    NOT_ME = (421, "the question is for another node: this one has another name")
    ANOTHER_KIND = (422, "machines are of another kind here: the setting api.machines differs on both nodes")
    REPLAYED = (409, "a question with this nonce was asked before")

    @property
    def status(self) -> int:
        return int(self.value[0])

    @property
    def sentence(self) -> str:
        return str(self.value[1])

    @property
    def label(self) -> str:
        """How metrics name it."""
        return self.name.lower().replace("_", "-")


@frozen
class MachineReference:
    """One machine, by name and uid; `namespace` is None where the Node is the machine."""

    namespace: str | None
    name: str
    uid: str

    @classmethod
    def of(cls, machine_key: str, uid: str) -> MachineReference:
        namespace, _, name = machine_key.rpartition("/")
        return cls(namespace or None, name, uid)

    @property
    def machine_key(self) -> str:
        """How rosters and answers name it."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def path(self) -> str:
        kind = "machine" if self.namespace else "node"
        return f"/v1/{kind}/{self.machine_key}?uid={quote(self.uid, safe='')}"


@frozen
class Question:
    """The question of a node about a machine, whichever peer the node asks."""

    about: MachineReference
    asked_by: str


@frozen
class Exchange:
    """A question put to one peer. The nonce, never used before, binds the answer to it."""

    question: Question
    asked_of: str
    nonce: str

    def headers(self, keyring: Keyring) -> list[tuple[bytes, bytes]]:
        """The headers of the question."""
        names = [(FROM, self.question.asked_by), (TO, self.asked_of), (NONCE, self.nonce)]
        signature = keyring.sign(*self._signed(_QUESTION))
        return [(name, value.encode()) for name, value in names + [(SIGNATURE, signature)] * bool(signature)]

    def answer_signature(self, body: bytes, keyring: Keyring) -> str:
        """The signature of the answer; empty when nothing is signed."""
        return keyring.sign(*self._signed(_ANSWER, body))

    def is_signed(self, signature: str, keyring: Keyring) -> bool:
        return keyring.accepts(signature, *self._signed(_QUESTION))

    def is_answer_signed(self, signature: str, body: bytes, keyring: Keyring) -> bool:
        return keyring.accepts(signature, *self._signed(_ANSWER, body))

    def _signed(self, direction: bytes, body: bytes = b"") -> tuple[bytes, ...]:
        path, asked_by = self.question.about.path, self.question.asked_by
        return direction, _METHOD, path.encode(), self.nonce.encode(), asked_by.encode(), self.asked_of.encode(), body


def parse_question(method: bytes, target: bytes, headers: Headers, me: str, keyring: Keyring) -> Exchange | Refusal:
    """The exchange that a request begins with the node `me`; header names are in lower case."""
    if method != _METHOD:
        return Refusal.METHOD
    about = _reference(target.decode("latin-1"))
    if about is None:
        return Refusal.UNKNOWN_PATH
    asked_by, asked_of, nonce = (headers.get(name, b"").decode("latin-1") for name in (FROM, TO, NONCE))
    named = NAME.pattern.fullmatch(asked_by) and NAME.pattern.fullmatch(asked_of)
    if not named or not OPAQUE.pattern.fullmatch(nonce):
        return Refusal.MALFORMED
    exchange = Exchange(Question(about, asked_by), asked_of, nonce)
    if not exchange.is_signed(headers.get(SIGNATURE, b"").decode("latin-1"), keyring):
        return Refusal.WRONG_SIGNATURE
    return exchange if asked_of == me else Refusal.NOT_ME


def parse_reply(
    exchange: Exchange, status: int, headers: Headers, body: bytes, keyring: Keyring
) -> Answer | Unreadable:
    """The peer's answer, if this is one: to this very question, by this very peer."""
    what = "the peer's answer"
    if status != 200:
        return Unreadable(what, f"status {status}, {body[:120].decode('latin-1')!a}")
    signature = headers.get(SIGNATURE, b"").decode("latin-1")
    if not exchange.is_answer_signed(signature, body, keyring):
        return Unreadable(what, "its signature is missing or wrong: both nodes need the same peer key")
    answer = parse_answer(body)
    if isinstance(answer, Unreadable):
        return answer
    question = exchange.question
    expected = (exchange.nonce, exchange.asked_of, question.asked_by, question.about.machine_key)
    if (answer.nonce, answer.answered_by, answer.asked_by, answer.about) != expected:
        return Unreadable(what, "it answers another question")
    return answer


def _reference(target: str) -> MachineReference | None:
    """The machine that a target names; only the one spelling that we would choose is taken."""
    parts = _TARGET.fullmatch(target)
    if parts is None:
        return None
    about = MachineReference(parts["namespace"], parts["name"], unquote(parts["uid"]))
    return about if OPAQUE.pattern.fullmatch(about.uid) and about.path == target else None
