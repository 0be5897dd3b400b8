"""From what went wrong on the wire to a typed outcome and a sentence for people."""

from __future__ import annotations

import json
import os
import ssl
from typing import Any

import h11

from pp_hostd.kube.connection import Broken, Head
from pp_hostd.kube.deadline import TimedOut
from pp_hostd.kube.outcome import ApiError, Garbage, Outcome

BY_STATUS = {
    401: Outcome.UNAUTHORIZED,
    403: Outcome.FORBIDDEN,
    404: Outcome.NOT_FOUND,
    409: Outcome.CONFLICT,
    410: Outcome.GONE,
    429: Outcome.THROTTLED,
}
MAX_QUOTED = 300


def from_exception(error: BaseException) -> tuple[Outcome, str]:
    """The outcome of an exchange that `error` ended, and the end of its sentence."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Outcome.TLS_REFUSED, f"its certificate is not to be trusted: {error.verify_message}"
    if isinstance(error, (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)):  # the last: OpenSSL 1.1
        return Outcome.UNREACHABLE, "it closed the connection during the TLS handshake"
    if isinstance(error, ssl.SSLError):
        reason = str(error.reason or error.args[-1]).replace("_", " ").lower()
        return Outcome.TLS_REFUSED, f"TLS failed: {reason}"
    if isinstance(error, TimedOut):
        return Outcome.TIMED_OUT, "no whole answer in time"
    if isinstance(error, Broken):
        return Outcome.UNREACHABLE, str(error)
    if isinstance(error, h11.RemoteProtocolError):
        return Outcome.GARBAGE, f"its reply is not HTTP: {quoted(str(error))}"
    if isinstance(error, Garbage):
        return Outcome.GARBAGE, quoted(str(error))
    number = getattr(error, "errno", None)
    return Outcome.UNREACHABLE, os.strerror(number).lower() if number else str(error)


def from_reply(head: Head, body: bytes, what: str, where: str, *, write: bool) -> ApiError:
    """The failure that a reply with a status other than 2xx stands for."""
    outcome = BY_STATUS.get(head.status, _by_class(head.status))
    status = _status_object(body)
    said = str(status.get("message") or body[:MAX_QUOTED].decode("utf-8", "replace"))
    if outcome is Outcome.GARBAGE:
        said = f"a redirect to {head.headers.get('location', 'nowhere')}, which is not followed"
    return ApiError(
        outcome,
        f"{what}: {outcome.value} ({head.status} from {where}: {quoted(said)})",
        status=head.status,
        reason=str(status.get("reason") or ""),
        retry_after_seconds=_retry_after(head),
        may_be_done=write and outcome in (Outcome.SERVER_ERROR, Outcome.GARBAGE),
    )


def quoted(text: str) -> str:
    """Foreign text, fit for one line of a log."""
    line = " ".join(text.split())
    clean = "".join(character if character.isprintable() else "?" for character in line)
    return clean if len(clean) <= MAX_QUOTED else clean[:MAX_QUOTED] + "..."


def _by_class(status: int) -> Outcome:
    if status < 400:
        return Outcome.GARBAGE
    return Outcome.INVALID if status < 500 else Outcome.SERVER_ERROR


def _status_object(body: bytes) -> dict[str, Any]:
    try:
        status = json.loads(body)
    except (ValueError, RecursionError):
        return {}
    return status if isinstance(status, dict) and status.get("kind") == "Status" else {}


def _retry_after(head: Head) -> float | None:
    value = head.headers.get("retry-after", "")
    return float(value) if value.isdecimal() and len(value) < 6 else None
