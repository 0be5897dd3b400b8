"""A knock and its answer are signed like a question and its answer, and are neither."""

from __future__ import annotations

import json

import pytest

from pp_hostd.model.record import Unreadable
from pp_hostd.peers.knock import PATH, Knock, Knocked, parse_knock, parse_knocked
from pp_hostd.peers.message import SIGNATURE, Refusal
from pp_hostd.peers.signing import UNSIGNED, Keyring
from tests.peers.talk import KEYRING, exchange

KNOCK = Knock("worker-1", "peer", "nonce-1")
KNOCKED = Knocked(False, "connection refused", 1000.5, 1002.5)
OTHER = Keyring((b"o" * 32,))


def headers(knock: Knock = KNOCK, keyring: Keyring = KEYRING) -> dict[bytes, bytes]:
    return dict(knock.headers(keyring))


def answer(body: bytes, signature: str, status: int = 200) -> Knocked | Unreadable:
    return parse_knocked(KNOCK, status, {SIGNATURE: signature.encode()}, body, KEYRING)


def test_a_knock_and_its_answer_arrive_as_they_were_sent() -> None:
    assert parse_knock(b"GET", headers(), "peer", KEYRING) == KNOCK
    assert answer(*KNOCK.answer(KNOCKED, KEYRING)) == KNOCKED
    assert parse_knock(b"GET", headers(keyring=UNSIGNED), "peer", UNSIGNED) == KNOCK


@pytest.mark.parametrize(
    ("method", "sent", "me", "refusal"),
    [
        (b"POST", headers(), "peer", Refusal.METHOD),
        (b"GET", {}, "peer", Refusal.MALFORMED),
        (b"GET", headers(Knock("Worker 1", "peer", "nonce")), "peer", Refusal.MALFORMED),
        (b"GET", headers(keyring=OTHER), "peer", Refusal.WRONG_SIGNATURE),
        (b"GET", headers(keyring=UNSIGNED), "peer", Refusal.WRONG_SIGNATURE),
        (b"GET", headers(), "another", Refusal.NOT_ME),
    ],
)
def test_what_is_no_knock_of_a_node_with_the_key_is_refused(
    method: bytes, sent: dict[bytes, bytes], me: str, refusal: Refusal
) -> None:
    assert parse_knock(method, sent, me, KEYRING) is refusal


def test_the_signature_of_a_question_is_none_of_a_knock() -> None:
    assert parse_knock(b"GET", dict(exchange().headers(KEYRING)), "peer", KEYRING) is Refusal.WRONG_SIGNATURE


def test_an_answer_to_another_knock_or_by_another_key_is_none() -> None:
    for foreign in (Knock("worker-1", "peer", "nonce-2"), Knock("worker-2", "peer", "nonce-1")):
        assert isinstance(answer(*foreign.answer(KNOCKED, KEYRING)), Unreadable)
    assert isinstance(answer(*KNOCK.answer(KNOCKED, OTHER)), Unreadable)
    body, _ = KNOCK.answer(KNOCKED, KEYRING)
    assert isinstance(answer(body, ""), Unreadable)
    assert isinstance(answer(body, "", status=404), Unreadable)


@pytest.mark.parametrize(
    "change",
    [{"why": 3}, {"why": "two\nlines"}, {"arrived": -1}, {"left": 1}, {"arrived": "noon"}, {"v": 2}, {"left": 1e12}],
)
def test_an_answer_that_makes_no_sense_is_unreadable_though_it_is_signed(change: dict[str, object]) -> None:
    body, _ = KNOCK.answer(KNOCKED, KEYRING)
    changed = json.dumps({**json.loads(body), **change}).encode()
    signature = KEYRING.sign(b"knocked", b"GET", PATH.encode(), b"nonce-1", b"worker-1", b"peer", changed)
    assert isinstance(answer(changed, signature), Unreadable)
