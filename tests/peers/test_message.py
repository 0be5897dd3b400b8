"""Questions and answers as messages: what is bound by the signature, and what happens to a stranger's words."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.record import Unreadable
from pp_hostd.peers.message import (
    FROM,
    NONCE,
    SIGNATURE,
    TO,
    Exchange,
    MachineReference,
    Question,
    Refusal,
    parse_question,
    parse_reply,
)
from pp_hostd.peers.signing import UNSIGNED, Keyring
from tests.model.strategies import examples, names, words
from tests.peers.talk import KEYRING, QUESTION, exchange

OLD, NEW = Keyring((b"o" * 32,)), Keyring((b"n" * 32,))
references = st.builds(MachineReference, st.none() | names, names, words)
exchanges = st.builds(Exchange, st.builds(Question, references, names), names, words)
ANSWER = Answer(Health.HEALTHY, None, "token.0", "nonce", "peer", "worker-1", QUESTION.about.machine_key)
ASKED = Exchange(QUESTION, "peer", "nonce")


def received(asked: Exchange, keyring: Keyring = KEYRING, reader: Keyring = KEYRING) -> Exchange | Refusal:
    target = asked.question.about.path.encode()
    return parse_question(b"GET", target, dict(asked.headers(keyring)), asked.asked_of, reader)


def replied(answer: Answer = ANSWER, keyring: Keyring = KEYRING, asked: Exchange = ASKED) -> Answer | Unreadable:
    """Reads this answer, which is signed as one to `asked`, as the reply to ASKED."""
    body = answer.render().encode()
    signature = asked.answer_signature(body, keyring).encode()
    return parse_reply(ASKED, 200, {SIGNATURE: signature}, body, KEYRING)


@examples
@given(exchanges)
def test_a_question_arrives_as_it_was_asked(asked: Exchange) -> None:
    assert received(asked) == asked
    assert received(asked, UNSIGNED, UNSIGNED) == asked


def test_machines_and_nodes_have_paths_with_their_uid() -> None:
    assert MachineReference("metal", "w-1", "u1").path == "/v1/machine/metal/w-1?uid=u1"
    assert MachineReference(None, "w-1", "a/b&c%").path == "/v1/node/w-1?uid=a%2Fb%26c%25"


@pytest.mark.parametrize("header", [FROM, TO, NONCE])
@pytest.mark.parametrize("damage", [b"", b"other", b"UPPER", b"\xff\xfe", b"x" * 300, None])
def test_a_changed_header_is_refused(header: bytes, damage: bytes | None) -> None:
    headers = dict(ASKED.headers(KEYRING))
    if damage is None:
        del headers[header]
    else:
        headers[header] = damage
    refusal = parse_question(b"GET", ASKED.question.about.path.encode(), headers, "peer", KEYRING)
    assert refusal in (Refusal.MALFORMED, Refusal.WRONG_SIGNATURE)


@pytest.mark.parametrize("signature", [b"", b"0" * 64, b"\xff" * 64, b"x", None])
def test_a_wrong_or_missing_signature_is_refused(signature: bytes | None) -> None:
    headers = {name: value for name, value in ASKED.headers(KEYRING) if name != SIGNATURE}
    if signature is not None:
        headers[SIGNATURE] = signature
    refusal = parse_question(b"GET", ASKED.question.about.path.encode(), headers, "peer", KEYRING)
    assert refusal is Refusal.WRONG_SIGNATURE


def test_a_question_signed_for_another_machine_or_uid_is_refused() -> None:
    headers = dict(ASKED.headers(KEYRING))
    for target in (b"/v1/machine/metal/worker-2?uid=uid-1", b"/v1/machine/metal/worker-1?uid=uid-2"):
        assert parse_question(b"GET", target, headers, "peer", KEYRING) is Refusal.WRONG_SIGNATURE


def test_a_question_for_another_node_is_refused() -> None:
    target = ASKED.question.about.path.encode()
    assert parse_question(b"GET", target, dict(ASKED.headers(KEYRING)), "somebody-else", KEYRING) is Refusal.NOT_ME


def test_only_get_is_answered() -> None:
    target = ASKED.question.about.path.encode()
    assert parse_question(b"POST", target, dict(ASKED.headers(KEYRING)), "peer", KEYRING) is Refusal.METHOD


@pytest.mark.parametrize(
    "target",
    [
        b"/",
        b"*",
        b"/v1/machine/worker-1?uid=u",
        b"/v1/node/worker-1",
        b"/v1/node/worker-1?uid=",
        b"/v1/node/worker-1?uid=%61",  # another spelling of "a"
        b"/v1/node/worker-1?uid=%ff",
        b"/v1/node/worker-1?uid=a%0ab",
        b"/v1/node/worker-1?uid=a&uid=b",
        b"/v1/node/" + b"w" * 254 + b"?uid=u",
        b"/v1/node/W?uid=u",
        b"/v2/node/worker-1?uid=u",
        b"/v1/node/worker-1?uid=" + b"u" * 129,
        b"\xff\x00",
    ],
)
def test_a_path_in_another_spelling_is_unknown(target: bytes) -> None:
    assert parse_question(b"GET", target, {}, "peer", UNSIGNED) is Refusal.UNKNOWN_PATH


def test_either_of_two_keys_is_accepted_and_the_first_signs() -> None:
    both = Keyring(NEW.keys + OLD.keys)
    asked = exchange()
    assert received(asked, OLD, both) == received(asked, NEW, both) == asked
    assert received(asked, both, NEW) == asked
    assert received(asked, both, OLD) is Refusal.WRONG_SIGNATURE


@examples
@given(st.binary(), st.binary(), st.dictionaries(st.sampled_from([FROM, TO, NONCE, SIGNATURE]), st.binary()))
def test_any_request_is_read_or_refused(method: bytes, target: bytes, headers: dict[bytes, bytes]) -> None:
    assert isinstance(parse_question(method, target, headers, "peer", KEYRING), Refusal)
    assert isinstance(parse_question(b"GET", b"/v1/node/w?uid=u", headers, "peer", KEYRING), Refusal)


def test_an_answer_arrives_as_it_was_given() -> None:
    assert replied() == ANSWER


@pytest.mark.parametrize(
    "change",
    [{"nonce": "another"}, {"answered_by": "other-peer"}, {"asked_by": "worker-2"}, {"about": "metal/worker-2"}],
)
def test_a_signed_answer_to_another_question_is_not_taken(change: dict[str, str]) -> None:
    assert isinstance(replied(replace(ANSWER, **change)), Unreadable)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other",
    [
        Exchange(QUESTION, "peer", "another-nonce"),
        Exchange(QUESTION, "other-peer", "nonce"),
        Exchange(Question(QUESTION.about, "worker-2"), "peer", "nonce"),
        Exchange(Question(replace(QUESTION.about, uid="uid-2"), "worker-1"), "peer", "nonce"),
    ],
)
def test_an_answer_signed_for_another_exchange_is_not_taken(other: Exchange) -> None:
    assert isinstance(replied(asked=other), Unreadable)


def test_an_answer_by_a_stranger_is_not_taken() -> None:
    assert isinstance(replied(keyring=NEW), Unreadable)
    assert isinstance(replied(keyring=UNSIGNED), Unreadable)


def test_a_question_is_no_answer() -> None:
    """A peer that hears a question can't send the question's signature back as that of an answer."""
    body = b""
    signature = dict(ASKED.headers(KEYRING))[SIGNATURE]
    reply = parse_reply(ASKED, 200, {SIGNATURE: signature}, body, KEYRING)
    assert isinstance(reply, Unreadable) and "signature" in reply.reason


def test_a_changed_body_is_not_taken() -> None:
    body = ANSWER.render().encode()
    signature = ASKED.answer_signature(body, KEYRING).encode()
    changed = json.dumps({**json.loads(body), "answer": "api-error"}).encode()
    assert isinstance(parse_reply(ASKED, 200, {SIGNATURE: signature}, changed, KEYRING), Unreadable)


def test_a_refusal_is_no_answer_and_says_why() -> None:
    reply = parse_reply(ASKED, 403, {}, b"the signature is wrong\n", KEYRING)
    assert isinstance(reply, Unreadable) and "403" in reply.reason and "signature" in reply.reason


@examples
@given(st.integers(), st.binary(), st.binary())
def test_any_reply_is_read_or_unreadable(status: int, signature: bytes, body: bytes) -> None:
    for keyring in (KEYRING, UNSIGNED):
        assert isinstance(parse_reply(ASKED, status, {SIGNATURE: signature}, body, keyring), Unreadable)
        assert isinstance(parse_reply(ASKED, 200, {}, body, keyring), Unreadable)


@examples
@given(st.lists(st.binary(), max_size=4), st.lists(st.binary(), max_size=4))
def test_different_parts_never_sign_alike(some: list[bytes], others: list[bytes]) -> None:
    assert (KEYRING.sign(*some) == KEYRING.sign(*others)) == (some == others)


def test_keys_are_not_shown() -> None:
    assert "kkk" not in repr(KEYRING)
