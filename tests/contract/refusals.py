"""The ways the API refuses a request, as both servers must show them and our client must report them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from pp_hostd.kube.outcome import ApiError, Outcome


@dataclass(frozen=True)
class Refusal:
    """The outcome for our code, and the HTTP status and reason that it came from."""

    outcome: Outcome
    status: int
    reason: str


BAD_REQUEST = Refusal(Outcome.INVALID, 400, "BadRequest")
UNAUTHORIZED = Refusal(Outcome.UNAUTHORIZED, 401, "Unauthorized")
FORBIDDEN = Refusal(Outcome.FORBIDDEN, 403, "Forbidden")
NOT_FOUND = Refusal(Outcome.NOT_FOUND, 404, "NotFound")
NO_SUCH_PATH = Refusal(Outcome.NOT_FOUND, 404, "")
METHOD_NOT_ALLOWED = Refusal(Outcome.INVALID, 405, "MethodNotAllowed")
CONFLICT = Refusal(Outcome.CONFLICT, 409, "Conflict")
ALREADY_EXISTS = Refusal(Outcome.CONFLICT, 409, "AlreadyExists")
EXPIRED = Refusal(Outcome.GONE, 410, "Expired")
TOO_LARGE = Refusal(Outcome.INVALID, 413, "RequestEntityTooLarge")
UNSUPPORTED_MEDIA_TYPE = Refusal(Outcome.INVALID, 415, "UnsupportedMediaType")
INVALID = Refusal(Outcome.INVALID, 422, "Invalid")
# Kubernetes answers so to a resourceVersion where none should be, or that is not a number.
INTERNAL = Refusal(Outcome.SERVER_ERROR, 500, "")


@contextmanager
def refused(expected: Refusal) -> Iterator[pytest.ExceptionInfo[ApiError]]:
    """Checks that the code inside ends in that refusal."""
    with pytest.raises(ApiError) as caught:
        yield caught
    _check(caught.value, expected)


async def all_refused(expected: Refusal, *attempts: Awaitable[object]) -> None:
    """Each of the attempts must end in that refusal."""
    for outcome in await asyncio.gather(*attempts, return_exceptions=True):
        assert isinstance(outcome, ApiError), outcome
        _check(outcome, expected)


def _check(error: ApiError, expected: Refusal) -> None:
    assert Refusal(error.outcome, error.status or 0, error.reason) == expected, error.sentence
