"""Knocks, requests to reach a node, and their answers are signed like a question and its answer, and are neither."""

from __future__ import annotations

import json

import pytest

from pp_hostd.model.record import Unreadable
from pp_hostd.peers.knock import (
    PATH,
    REACH_PATH,
    Call,
    Knock,
    Knocked,
    Reach,
    Reached,
    is_call,
    parse_call,
    parse_knocked,
    parse_reached,
)
from pp_hostd.peers.message import SIGNATURE, Refusal
from pp_hostd.peers.signing import UNSIGNED, Keyring
from tests.peers.talk import KEYRING, exchange

KNOCK = Knock("worker-1", "peer", "nonce-1")
KNOCKED = Knocked(False, "connection refused", 1000.5, 1002.5)
REACH = Reach("worker-1", "peer", "nonce-1", "worker-2")
REACHED = Reached(False, "nobody answered in time")
OTHER = Keyring((b"o" * 32,))
both = pytest.mark.parametrize("call", [KNOCK, REACH], ids=["knock", "reach"])


def headers(call: Call = KNOCK, keyring: Keyring = KEYRING) -> dict[bytes, bytes]:
    return dict(call.headers(keyring))


def parsed(
    call: Call, method: bytes = b"GET", me: str = "peer", keyring: Keyring = KEYRING, **sent: dict[bytes, bytes]
) -> Call | Refusal:
    return parse_call(method, call.path.encode(), sent.get("headers", headers(call, keyring)), me, keyring)


def answer(body: bytes, signature: str, status: int = 200) -> Knocked | Unreadable:
    return parse_knocked(KNOCK, status, {SIGNATURE: signature.encode()}, body, KEYRING)


def reached(body: bytes, signature: str, status: int = 200, keyring: Keyring = KEYRING) -> Reached | Unreadable:
    return parse_reached(REACH, status, {SIGNATURE: signature.encode()}, body, keyring)


@both
def test_a_request_arrives_as_it_was_sent(call: Call) -> None:
    assert is_call(call.path.encode())
    assert parsed(call) == call
    assert parsed(call, keyring=UNSIGNED) == call


def test_an_answer_arrives_as_it_was_sent() -> None:
    assert answer(*KNOCK.answer(KNOCKED, KEYRING)) == KNOCKED
    assert reached(*REACH.answer(REACHED, KEYRING)) == REACHED


@both
@pytest.mark.parametrize(
    ("method", "sent", "me", "refusal"),
    [
        (b"POST", None, "peer", Refusal.METHOD),
        (b"GET", {}, "peer", Refusal.MALFORMED),
        (b"GET", headers(Knock("Worker 1", "peer", "nonce")), "peer", Refusal.MALFORMED),
        (b"GET", headers(keyring=OTHER), "peer", Refusal.WRONG_SIGNATURE),
        (b"GET", headers(keyring=UNSIGNED), "peer", Refusal.WRONG_SIGNATURE),
        (b"GET", None, "another", Refusal.NOT_ME),
    ],
)
def test_a_request_of_no_node_with_the_key_is_refused(
    call: Call, method: bytes, sent: dict[bytes, bytes] | None, me: str, refusal: Refusal
) -> None:
    assert parsed(call, method, me, headers=headers(call) if sent is None else sent) is refusal


def test_no_signature_of_one_kind_is_taken_for_another() -> None:
    question = dict(exchange().headers(KEYRING))
    for call in (KNOCK, REACH):
        assert parsed(call, headers=question) is Refusal.WRONG_SIGNATURE
    assert parsed(KNOCK, headers=headers(REACH)) is Refusal.WRONG_SIGNATURE
    assert parsed(REACH, headers=headers(KNOCK)) is Refusal.WRONG_SIGNATURE
    another = Reach("worker-1", "peer", "nonce-1", "worker-3")
    assert parsed(another, headers=headers(REACH)) is Refusal.WRONG_SIGNATURE


@pytest.mark.parametrize("rest", ["", "Worker", "a/b", "a?b", "%61", "-a", "a" * 254, "a\n", "..", "a b", "\xff"])
def test_no_other_path_is_a_node_to_reach(rest: str) -> None:
    target = (REACH_PATH + rest).encode("latin-1")
    assert is_call(target)
    assert parse_call(b"GET", target, headers(REACH), "peer", KEYRING) is Refusal.UNKNOWN_PATH


def test_an_answer_to_another_request_or_by_another_key_is_none() -> None:
    for knock in (Knock("worker-1", "peer", "nonce-2"), Knock("worker-2", "peer", "nonce-1")):
        assert isinstance(answer(*knock.answer(KNOCKED, KEYRING)), Unreadable)
    for other in ("nonce-2", "worker-1", "worker-2"), ("nonce-1", "worker-2", "worker-2"), ("nonce-1", "worker-1", "x"):
        nonce, asked_by, node = other
        assert isinstance(reached(*Reach(asked_by, "peer", nonce, node).answer(REACHED, KEYRING)), Unreadable)
    assert isinstance(answer(*KNOCK.answer(KNOCKED, OTHER)), Unreadable)
    assert isinstance(reached(*REACH.answer(REACHED, OTHER)), Unreadable)
    body, signature = KNOCK.answer(KNOCKED, KEYRING)
    assert isinstance(answer(body, ""), Unreadable)
    assert isinstance(answer(body, "", status=404), Unreadable)
    assert isinstance(reached(body, signature), Unreadable)


def test_without_signatures_an_answer_to_another_request_is_told_by_its_nonce() -> None:
    body, _ = Reach("worker-1", "peer", "nonce-2", "worker-2").answer(REACHED, UNSIGNED)
    assert isinstance(reached(body, "", keyring=UNSIGNED), Unreadable)
    assert reached(*REACH.answer(REACHED, UNSIGNED), keyring=UNSIGNED) == REACHED


@pytest.mark.parametrize(
    "change",
    [{"why": 3}, {"why": "two\nlines"}, {"arrived": -1}, {"left": 1}, {"arrived": "noon"}, {"v": 2}, {"left": 1e12}],
)
def test_an_answer_that_makes_no_sense_is_unreadable_though_it_is_signed(change: dict[str, object]) -> None:
    body, _ = KNOCK.answer(KNOCKED, KEYRING)
    changed = json.dumps({**json.loads(body), **change}).encode()
    signature = KEYRING.sign(b"knocked", b"GET", PATH.encode(), b"nonce-1", b"worker-1", b"peer", changed)
    assert isinstance(answer(changed, signature), Unreadable)


@pytest.mark.parametrize("change", [{"reached": None}, {"reached": 0}, {"reached": "yes"}, {"why": None}, {"v": 2}])
def test_a_finding_that_is_neither_yes_nor_no_is_unreadable(change: dict[str, object]) -> None:
    body, _ = REACH.answer(REACHED, KEYRING)
    changed = json.dumps({**json.loads(body), **change}).encode()
    signed = b"reached", b"GET", REACH.path.encode(), b"nonce-1", b"worker-1", b"peer", changed
    assert isinstance(reached(changed, KEYRING.sign(*signed)), Unreadable)
    assert reached(body, KEYRING.sign(*signed[:-1], body)) == REACHED
