"""A watch on its way to a client."""

from __future__ import annotations

import asyncio
import json
from typing import Callable

import h11

from pp_hostd.embedded.api import Stream
from pp_hostd.embedded.history import Event
from pp_hostd.embedded.status import StatusError
from pp_hostd.embedded.store import Store

BOOKMARK_SECONDS = 60


class Watching:
    """Events as they come, bookmarks in between, an end by the clock."""

    def __init__(self, store: Store, send: Callable[..., None], finished: Callable[[], None]) -> None:
        """`send` writes parts of an answer; `finished` is called after the last one."""
        self._store = store
        self._send_parts = send
        self._finished = finished
        self._timers: list[asyncio.TimerHandle] = []
        self._awake = False
        self.paused = False

    def start(self, stream: Stream) -> None:
        """Send the head of the answer and what there is to tell already."""
        self._stream = stream
        headers = [("content-type", "application/json"), ("cache-control", "no-cache, private")]
        self._send_parts(h11.Response(status_code=200, headers=headers))
        self._timers = [asyncio.get_running_loop().call_later(stream.timeout_seconds, self._finish)]
        if stream.bookmarks:
            # As the real one: regularly, and shortly before the end, so that a resumed watch has little to catch up.
            self._bookmark_later(min(BOOKMARK_SECONDS, max(stream.timeout_seconds - 2, 1)))
        self.pump()

    def stop(self) -> None:
        """The client is gone."""
        self._stream.subscription.close()
        for timer in self._timers:
            timer.cancel()

    def wake(self) -> None:
        """There is something to take. Once for all that happens before the loop comes round."""
        if not self._awake:
            self._awake = True
            asyncio.get_running_loop().call_soon(self.pump)

    def pump(self) -> None:
        """Send what there is, unless the client does not keep up."""
        self._awake = False
        if self.paused or self._stream.subscription.closed:
            return
        try:
            self._send(self._stream.subscription.take())
        except StatusError as cut_off:
            self._send([Event("ERROR", json.dumps(cut_off.body()))])
            self._finish()

    def _send(self, events: list[Event]) -> None:
        if events:
            lines = "".join(f'{{"type":"{event.type}","object":{event.text}}}\n' for event in events)
            self._send_parts(h11.Data(lines.encode()))

    def _bookmark_later(self, seconds: float) -> None:
        self._timers[1:] = [asyncio.get_running_loop().call_later(seconds, self._bookmark, seconds)]

    def _bookmark(self, seconds: float) -> None:
        self.pump()
        if self._stream.subscription.closed:
            return
        if not self.paused:
            self._send([self._store.bookmark(self._stream.resource)])
        self._bookmark_later(seconds)

    def _finish(self) -> None:
        self.stop()
        self._send_parts(h11.EndOfMessage())
        self._finished()
