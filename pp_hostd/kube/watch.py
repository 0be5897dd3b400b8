"""A watch that goes on: a list, then its changes, resumed after every interruption and begun again after a 410.

A watch can condemn, never acquit (rule 1): what it says is news, not proof. The consumer sees every interruption.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator
from typing import Any, Union

from pp_hostd.frozen import frozen
from pp_hostd.kube.backoff import Backoff
from pp_hostd.kube.client import ApiClient, Keep, decode, selection, whole
from pp_hostd.kube.connection import Connection, from_exception, quoted
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.kube.outcome import ApiError, Garbage, Outcome
from pp_hostd.kube.resources import Resource
from pp_hostd.kube.transport import WIRE_ERRORS

# The server ends a watch itself after the first. Bookmarks of a kind in which nothing changes may take two minutes; a
# watch that was silent for longer is opened again, in case its server has forgotten it, and that is no trouble.
TIMEOUT_SECONDS = 240
INACTIVITY_SECONDS = 180.0
LINE_LIMIT_BYTES = 8 * 1024 * 1024
LONGEST_RETRY_AFTER_SECONDS = 60.0  # a server that asks for more is mistaken: nobody may be blind for a day


class ChangeKind(enum.Enum):
    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"


@frozen
class Snapshot:
    """The list of all objects that match, each as `keep` made it: it replaces everything the watch said before."""

    items: list[Any]
    resource_version: str


@frozen
class Change:
    """One object was added, modified or deleted; `object` is what was kept of it."""

    kind: ChangeKind
    object: Any
    resource_version: str


@frozen
class Bookmark:
    """Nothing has changed up to this version."""

    resource_version: str


@frozen
class Interrupted:
    """The watch broke off. It goes on by itself, without loss if no Snapshot follows."""

    error: ApiError


class _Quiet(Exception):
    """The stream was silent for so long that it is opened again. Nothing is lost by that."""


Event = Union[Snapshot, Change, Bookmark, Interrupted]


async def watch(
    client: ApiClient,
    resource: Resource,
    *,
    namespace: str | None = None,
    label_selector: str = "",
    field_selector: str = "",
    resource_version: str | None = None,
    timeout_seconds: int = TIMEOUT_SECONDS,
    inactivity_seconds: float = INACTIVITY_SECONDS,
    keep: Keep = whole,
) -> AsyncIterator[Event]:
    """Every change from `resource_version` on, or a Snapshot first. Ends only when its consumer stops.

    As soon as the watch has read an object, it holds only the result of `keep`.
    """
    what = f"watching {resource.describe(namespace)}"
    version = resource_version
    query = {
        **selection(label_selector, field_selector),
        "watch": "true",
        "allowWatchBookmarks": "true",
        "timeoutSeconds": str(timeout_seconds),
    }
    backoff = Backoff()
    while True:
        least_pause_seconds = 0.0
        try:
            if version is None:
                listing = await client.list(
                    resource,
                    namespace=namespace,
                    label_selector=label_selector,
                    field_selector=field_selector,
                    keep=keep,
                )
                version = listing.resource_version
                yield Snapshot(listing.items, version)
            connection = await client.open_watch(resource, namespace, {**query, "resourceVersion": version})
            try:
                async for event in _events(connection, resource, what, inactivity_seconds, keep):
                    version = event.resource_version
                    backoff.reset()
                    yield event
            finally:
                connection.close()
        except _Quiet:
            backoff.reset()
        except ApiError as error:
            if error.outcome is Outcome.GONE:
                version = None
            least_pause_seconds = min(error.retry_after_seconds or 0.0, LONGEST_RETRY_AFTER_SECONDS)
            yield Interrupted(error)
        await asyncio.sleep(max(least_pause_seconds, backoff.after_failure()))


async def _events(
    connection: Connection, resource: Resource, what: str, inactivity_seconds: float, keep: Keep
) -> AsyncIterator[Change | Bookmark]:
    """The events of one stream until the server ends it. One that breaks, stalls or talks nonsense is an ApiError."""
    url = connection.endpoint.url
    try:
        async for line in _lines(connection, inactivity_seconds):
            yield _event(line, resource, what, url, keep)
    except WIRE_ERRORS as error:
        outcome, detail = from_exception(error)
        if isinstance(error, TimedOut):
            detail = f"an event that was not whole after {inactivity_seconds:g} s"
        raise ApiError(outcome, f"{what}: {outcome.value} ({url}: {detail})") from None


async def _lines(connection: Connection, inactivity_seconds: float) -> AsyncIterator[bytearray]:
    """The lines of one stream. Each must become whole in time: a trickle of bytes is not activity."""
    rest = bytearray()
    while True:
        try:
            with Deadline(inactivity_seconds):
                if not await _read_line(connection, rest):
                    return
        except TimedOut:
            if not rest:
                raise _Quiet from None
            raise
        *lines, rest = rest.split(b"\n")
        for line in lines:
            yield line


async def _read_line(connection: Connection, rest: bytearray) -> bool:
    """Adds what comes up to the next end of a line, or more; returns False at the end of the stream."""
    data = b""
    while b"\n" not in data:
        data = await connection.read()
        if not data:
            return False
        rest += data
        if len(rest) > LINE_LIMIT_BYTES:
            raise Garbage(f"one event is larger than {LINE_LIMIT_BYTES} bytes, the most that is taken")
    return True


def _event(line: bytearray, resource: Resource, what: str, url: str, keep: Keep) -> Change | Bookmark:
    event = decode(line)
    kind, found = event.get("type"), event.get("object")
    if not isinstance(found, dict):
        raise Garbage("an event without an object")
    if kind == "ERROR":
        outcome = Outcome.GONE if found.get("code") == 410 else Outcome.SERVER_ERROR
        sentence = f"{what}: {outcome.value} ({url}: {quoted(str(found.get('message')))})"
        raise ApiError(outcome, sentence, reason=str(found.get("reason")))
    metadata = found.get("metadata")
    if found.get("kind") != resource.kind or not isinstance(metadata, dict):
        raise Garbage(f"an event about something other than a {resource.kind}")
    version = metadata.get("resourceVersion")
    if not version or not isinstance(version, str):
        raise Garbage("an event without a resourceVersion, from which the watch could go on")
    if kind == "BOOKMARK":
        return Bookmark(version)
    try:
        change = ChangeKind(kind)
    except ValueError:
        raise Garbage(f"an event of the unknown type {kind!r}") from None
    return Change(change, keep(found), version)
