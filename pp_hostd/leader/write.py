"""One write of the leader: only while its Lease is valid, told for what became of it, over when its effect is seen."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Callable, Protocol

from pp_hostd.kube.client import Json
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.leader.observe import Kind
from pp_hostd.model.written import Written

SEEN_SECONDS = 5.0

Clock = Callable[[], float]
Exchange = Callable[[], Awaitable[Json]]
"""Begins one exchange with the API."""


def conditional(patch: Json, uid: str, version: str) -> Json:
    """The merge patch for this version alone of that very object."""
    return {**patch, "metadata": {**patch.get("metadata", {}), "uid": uid, "resourceVersion": version}}


class Watching(Protocol):
    """The observer, as far as a write needs it."""

    async def shows(self, kind: Kind, name: str, version_before: str | None, deadline_seconds: float) -> bool:
        """Wait until it is seen in another version than this one (None: absent); False if that takes longer."""


class Unwritten(Exception):
    """A step that ends without its write, or without knowing what became of it, and why."""

    def __init__(self, written: Written, sentence: str) -> None:
        super().__init__(sentence)
        self.written, self.sentence = written, sentence


class Writer:
    """`acting_until` gives the CLOCK_BOOTTIME until which the Lease is valid, -inf if it is not."""

    def __init__(self, watching: Watching, acting_until: Clock, clock: Clock) -> None:
        self._watching, self._acting_until, self._clock = watching, acting_until, clock

    async def send(self, exchange: Exchange) -> Json:
        """The API's reply; ApiError or Unwritten if there is none. Rule 14: it is not sent without a valid Lease."""
        left_seconds = self._acting_until() - self._clock()
        if left_seconds <= 0:
            raise Unwritten(Written.NOT_DONE, "the Lease is not valid")
        try:
            with Deadline(left_seconds):
                return await exchange()
        except TimedOut:
            raise Unwritten(Written.UNKNOWN, "the Lease ran out while this was being written") from None

    async def write(self, exchange: Exchange, kind: Kind, name: str, version_before: str | None) -> str:
        """Send it, and wait until the observer shows its effect. Returns what is not as it should be, or nothing."""
        reply = await self.send(exchange)
        metadata = reply.get("metadata") or {}
        unchanged = version_before is not None and metadata.get("resourceVersion") == version_before
        if unchanged or await self._watching.shows(kind, name, version_before, SEEN_SECONDS):
            return ""
        return f"{kind.value} {name} is written, but the watch has not shown it within {SEEN_SECONDS:g} s"
