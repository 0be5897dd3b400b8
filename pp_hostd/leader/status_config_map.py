"""The ConfigMap `leader`: what the active leader says of itself, written soon after it has changed, and its history."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, is_missing
from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.model.keys import HISTORY, LEADER, NAMESPACE, STATUS
from pp_hostd.model.leader_status import MAX_HISTORY, LeaderStatus, Told, parse_history, render_history
from pp_hostd.model.record import Unreadable

PAUSE_SECONDS = 1.0
"""Between two writes at least."""


class StatusConfigMap:
    """`status` is asked whenever something is written. Only a leader that may act writes."""

    def __init__(self, client: ApiClient, status: Callable[[], LeaderStatus], may_write: Callable[[], bool]) -> None:
        self.trouble = ""
        self._client, self._status, self._may_write = client, status, may_write
        self._history: deque[Told] = deque(maxlen=MAX_HISTORY)
        self._changed = asyncio.Event()
        self._written = ""

    def note(self, told: Told) -> None:
        """A line of history."""
        self._history.append(told)
        self._changed.set()

    def refresh(self) -> None:
        """Something may have changed."""
        if _lasting(self._status()) != self._written:
            self._changed.set()

    async def run(self) -> None:
        """Until cancelled. It begins with what the leader before has left."""
        await self._recall()
        while True:
            await self._changed.wait()
            self._changed.clear()
            if self._may_write():
                await self._write()
            await asyncio.sleep(PAUSE_SECONDS)

    async def _recall(self) -> None:
        try:
            found = await self._client.get(CONFIG_MAPS, LEADER, namespace=NAMESPACE)
        except ApiError:
            return
        earlier = parse_history((found.get("data") or {}).get(HISTORY))
        if not isinstance(earlier, Unreadable):
            self._history.extendleft(reversed(earlier[-(MAX_HISTORY - len(self._history)) :]))

    async def _write(self) -> None:
        status = self._status()
        data = {STATUS: status.render(), HISTORY: render_history(tuple(self._history))}
        try:
            await self._store({"metadata": {"name": LEADER}, "data": data})
        except ApiError as error:
            self.trouble = error.sentence
            self._changed.set()
        else:
            self.trouble, self._written = "", _lasting(status)

    async def _store(self, body: Json) -> None:
        try:
            await self._client.patch(CONFIG_MAPS, LEADER, {"data": body["data"]}, namespace=NAMESPACE)
        except ApiError as error:
            if not is_missing(error):
                raise
            await self._client.create(CONFIG_MAPS, body, namespace=NAMESPACE)


def _lasting(status: LeaderStatus) -> str:
    """Returns the part of the status whose change is worth a write: times are written only along with the rest."""
    return repr([(each.node, each.stage, each.sentence, each.refused) for each in status.next_actions]) + repr(
        (
            status.leader,
            status.mode,
            status.nodes,
            status.roster,
            status.trouble,
            status.resets_per_hour,
            status.resets_left,
            status.held,
        )
    )
