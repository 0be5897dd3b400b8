"""Whatever a server does wrong, an exchange ends by its deadline, with the right outcome and a clear sentence."""

from __future__ import annotations

import socket
from asyncio import get_running_loop
from dataclasses import replace

import pytest

from pp_hostd.kube.client import REPLY_LIMIT_BYTES, ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig, Material, endpoint
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import NODES
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import PATIENT_SECONDS, Dial

SHORT_SECONDS = 0.3
HANG_SECONDS = 3.0
"""Tells a hang from a late end on a busy machine."""

NEVER_LEAVES = {
    "black hole": Outcome.TIMED_OUT,
    "silent before TLS": Outcome.TIMED_OUT,
    "trickled TLS": Outcome.TIMED_OUT,
    "not TLS": Outcome.TLS_REFUSED,
    "plain HTTP": Outcome.TLS_REFUSED,
    "closed in the handshake": Outcome.UNREACHABLE,
    "reset in the handshake": Outcome.UNREACHABLE,
}
MAY_BE_DONE = {
    "silent": Outcome.TIMED_OUT,
    "trickled head": Outcome.TIMED_OUT,
    "trickled body": Outcome.TIMED_OUT,
    "endless 1xx": Outcome.TIMED_OUT,
    "tiny chunks": Outcome.TIMED_OUT,
    "not HTTP": Outcome.GARBAGE,
    "length of thousands of digits": Outcome.GARBAGE,
    "head without end": Outcome.GARBAGE,
    "switching protocols": Outcome.GARBAGE,
    "no answer": Outcome.UNREACHABLE,
    "half a head": Outcome.UNREACHABLE,
    "half a body": Outcome.UNREACHABLE,
    "reset": Outcome.UNREACHABLE,
    "reset midway": Outcome.UNREACHABLE,
    "closed in a chunk": Outcome.UNREACHABLE,
    "not a chunk": Outcome.GARBAGE,
    "length too short": Outcome.GARBAGE,
    "two lengths": Outcome.GARBAGE,
    "100 MB": Outcome.GARBAGE,
    "100 MB in chunks": Outcome.GARBAGE,
    "100 MB until closed": Outcome.GARBAGE,
    "redirect": Outcome.GARBAGE,
    "not JSON": Outcome.GARBAGE,
    "not UTF-8": Outcome.GARBAGE,
    "nothing": Outcome.GARBAGE,
    "no object": Outcome.GARBAGE,
    "deep nesting": Outcome.GARBAGE,
    "wrong kind": Outcome.GARBAGE,
    "long-winded kind": Outcome.GARBAGE,
    "other name": Outcome.GARBAGE,
    "other namespace": Outcome.GARBAGE,
    "metadata is no object": Outcome.GARBAGE,
    "500": Outcome.SERVER_ERROR,
    "503": Outcome.SERVER_ERROR,
    "500 of 100 MB": Outcome.GARBAGE,
}
REFUSED = {
    "400": Outcome.INVALID,
    "401": Outcome.UNAUTHORIZED,
    "403": Outcome.FORBIDDEN,
    "403 in HTML": Outcome.FORBIDDEN,
    "404": Outcome.NOT_FOUND,
    "409": Outcome.CONFLICT,
    "410": Outcome.GONE,
    "422": Outcome.INVALID,
    "429": Outcome.THROTTLED,
}
ALL = {**NEVER_LEAVES, **MAY_BE_DONE, **REFUSED}


@pytest.mark.parametrize("behaviour", ALL)
async def test_a_read_ends_in_time_and_says_what_went_wrong(trouble: TroubleServer, dial: Dial, behaviour: str) -> None:
    port = trouble.listen(behaviour)
    client = dial(port.url, deadline_seconds=_deadline(behaviour))
    begun_at = get_running_loop().time()
    with pytest.raises(ApiError) as caught:
        await client.get(NODES, "worker")
    elapsed_seconds = get_running_loop().time() - begun_at
    sentence = caught.value.sentence
    assert caught.value.outcome is ALL[behaviour], sentence
    assert not caught.value.may_be_done
    if ALL[behaviour] is Outcome.TIMED_OUT:
        assert SHORT_SECONDS * 0.99 <= elapsed_seconds < HANG_SECONDS
    assert sentence.startswith(f"reading Node worker: {ALL[behaviour].value} (")
    assert port.url in sentence
    assert sentence.isprintable() and len(sentence) < 500  # fit for one line of a log, whatever the server wrote


@pytest.mark.parametrize("behaviour", ALL)
async def test_a_write_says_whether_it_may_be_done(trouble: TroubleServer, dial: Dial, behaviour: str) -> None:
    client = dial(trouble.listen(behaviour).url, deadline_seconds=_deadline(behaviour))
    with pytest.raises(ApiError) as caught:
        await client.patch(NODES, "worker", {})
    assert caught.value.outcome is ALL[behaviour], caught.value.sentence
    assert caught.value.may_be_done is (behaviour in MAY_BE_DONE)


@pytest.mark.parametrize("behaviour", ["good", "reset after the certificate"])
@pytest.mark.parametrize(
    ("certificate", "complaint"),
    [
        ("expired", "certificate has expired"),
        ("foreign", "unable to get local issuer certificate"),
        ("for another name", "certificate is not valid for '127.0.0.1'"),
    ],
)
async def test_a_certificate_that_proves_nothing_is_refused_by_tls(
    trouble: TroubleServer, dial: Dial, certificate: str, complaint: str, behaviour: str
) -> None:
    port = trouble.listen(behaviour, certificate=certificate)
    with pytest.raises(ApiError) as caught:
        await dial(port.url).patch(NODES, "worker", {})
    assert (caught.value.outcome, caught.value.may_be_done) == (Outcome.TLS_REFUSED, False)
    assert complaint in caught.value.sentence
    assert port.requests == []


async def test_a_client_certificate_that_the_server_does_not_trust_is_refused_by_tls(
    trouble: TroubleServer, kubeconfig: Kubeconfig
) -> None:
    port, stranger = trouble.listen("good"), trouble.foreign_authority.issue("worker")
    strange = replace(
        kubeconfig,
        endpoints=(endpoint(port.url, "the test"),),
        certificate=Material("client-certificate", data=stranger.cert_pem),
        key=Material("client-key", data=stranger.key_pem),
    )
    with pytest.raises(ApiError, match=r"TLS failed: .* alert unknown ca") as caught:
        await ApiClient(strange, deadline_seconds=PATIENT_SECONDS).get(NODES, "worker")
    assert caught.value.outcome is Outcome.TLS_REFUSED
    assert port.requests == []


async def test_a_port_where_nobody_listens_is_unreachable_and_the_sentence_says_why(dial: Dial) -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        client = dial(f"https://127.0.0.1:{reserved.getsockname()[1]}")
        with pytest.raises(ApiError) as caught:
            await client.patch(NODES, "worker", {})
    assert (caught.value.outcome, caught.value.may_be_done) == (Outcome.UNREACHABLE, False)
    assert "connection refused" in caught.value.sentence


async def test_a_refusal_carries_status_reason_and_message_of_the_server(trouble: TroubleServer, dial: Dial) -> None:
    with pytest.raises(ApiError) as caught:
        await dial(trouble.listen("403").url).get(NODES, "worker")
    assert (caught.value.status, caught.value.reason) == (403, "Because403")
    assert "as you asked" in caught.value.sentence


async def test_a_throttled_call_says_when_to_come_back(trouble: TroubleServer, dial: Dial) -> None:
    with pytest.raises(ApiError) as caught:
        await dial(trouble.listen("429").url).get(NODES, "worker")
    assert caught.value.retry_after_seconds == 1


async def test_a_redirect_is_named_and_not_followed(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("redirect")
    with pytest.raises(ApiError, match=r"a redirect to https://elsewhere\.example/, which is not followed"):
        await dial(port.url).get(NODES, "worker")
    assert len(port.requests) == 1


@pytest.mark.parametrize("behaviour", ["100 MB", "100 MB in chunks", "100 MB until closed", "500 of 100 MB"])
async def test_of_a_reply_that_is_too_large_no_more_than_the_limit_is_read(
    trouble: TroubleServer, dial: Dial, behaviour: str
) -> None:
    with pytest.raises(ApiError, match=f"its reply is larger than {REPLY_LIMIT_BYTES} bytes, the most that is taken"):
        await dial(trouble.listen(behaviour).url).get(NODES, "worker")


@pytest.mark.parametrize("behaviour", ["items is no list", "items are no objects", "wrong kind"])
async def test_a_list_that_is_none_is_garbage(trouble: TroubleServer, dial: Dial, behaviour: str) -> None:
    port = trouble.listen(behaviour)
    with pytest.raises(ApiError) as caught:
        await dial(port.url).list(NODES)
    assert caught.value.outcome is Outcome.GARBAGE
    assert caught.value.sentence.startswith(f"listing nodes: garbage ({port.url}: the reply is ")


async def test_a_list_without_end_is_garbage(trouble: TroubleServer, dial: Dial) -> None:
    with pytest.raises(ApiError, match="the list does not end") as caught:
        await dial(trouble.listen("list without end").url).list(NODES)
    assert caught.value.outcome is Outcome.GARBAGE


def _deadline(behaviour: str) -> float:
    return SHORT_SECONDS if ALL[behaviour] is Outcome.TIMED_OUT else PATIENT_SECONDS
