"""The ConfigMap with the status of the active leader: written when something changes, and its history is handed on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import datetime, timezone

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import CONFIG_MAPS, NAMESPACES
from pp_hostd.leader.status_config_map import StatusConfigMap
from pp_hostd.model.keys import HISTORY, LEADER, NAMESPACE, STATUS
from pp_hostd.model.leader_status import CourseTold, LeaderStatus, Told, parse_history, parse_leader_status
from tests.agent.objects import HANG_SECONDS, boottime, until

WHEN = datetime(2026, 3, 1, tzinfo=timezone.utc)
STATUS_THEN = LeaderStatus("ada", WHEN, "enforce", 5, 1, "", ())
COURSE = CourseTold("x", "machines/x", "waiting", "waits", False, WHEN, WHEN, WHEN, WHEN)
LINE = Told(WHEN, "x", "waiting", "waits", WHEN)


class Board:
    """One leader's board; `status` and `may_write` are what a test sets."""

    def __init__(self, client: ApiClient) -> None:
        self.status, self.may_write, self.was_asked = STATUS_THEN, True, False
        self.board = StatusConfigMap(client, lambda: self.status, self._asked)

    def _asked(self) -> bool:
        self.was_asked = True
        return self.may_write


@contextlib.asynccontextmanager
async def hung_up(client: ApiClient) -> AsyncIterator[Board]:
    with contextlib.suppress(ApiError):
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    with contextlib.suppress(ApiError):
        await client.delete(CONFIG_MAPS, LEADER, namespace=NAMESPACE)
    board = Board(client)
    task = asyncio.create_task(board.board.run())
    try:
        yield board
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def read(client: ApiClient) -> Json:
    try:
        data: Json = (await client.get(CONFIG_MAPS, LEADER, namespace=NAMESPACE))["data"]
    except ApiError:
        return {}
    return data


async def until_read(client: ApiClient, key: str, words: str) -> None:
    """Read until the key is there with these words."""
    deadline = boottime() + HANG_SECONDS
    while words not in (await read(client)).get(key, ""):
        assert boottime() < deadline, f"{key} does not say {words!r}"


async def test_status_and_history_are_written_once_something_is_noted(client: ApiClient) -> None:
    async with hung_up(client) as board:
        board.status = replace(STATUS_THEN, next_actions=(COURSE,))
        board.board.note(LINE)
        await until_read(client, STATUS, "ada")
        data = await read(client)
    assert parse_leader_status(data[STATUS]) == board.status
    assert parse_history(data[HISTORY]) == (LINE,)


async def test_a_change_is_written_and_what_only_comes_nearer_is_not(client: ApiClient) -> None:
    async with hung_up(client) as board:
        board.board.note(LINE)
        await until_read(client, STATUS, "ada")
        board.status = replace(STATUS_THEN, next_actions=(COURSE,))
        board.board.refresh()
        await until_read(client, STATUS, "waits")
        board.status = replace(STATUS_THEN, next_actions=(replace(COURSE, due_wallclock=None, dead_by_wallclock=None),))
        board.board.refresh()
        board.status = replace(STATUS_THEN, trouble="late")
        board.board.refresh()
        await until_read(client, STATUS, "late")
        board.status = replace(STATUS_THEN, trouble="late", resets_left=2)
        board.board.refresh()
        await until_read(client, STATUS, '"resets_left":2')
        board.status = replace(STATUS_THEN, trouble="late", resets_left=2, held="too many")
        board.board.refresh()
        await until_read(client, STATUS, "too many")
    assert parse_leader_status((await read(client))[STATUS]) == board.status


async def test_who_may_not_act_writes_nothing(client: ApiClient) -> None:
    async with hung_up(client) as board:
        board.may_write = False
        board.board.note(LINE)
        await until(lambda: board.was_asked, "it was asked")
        assert await read(client) == {}


async def test_the_next_leader_goes_on_with_the_history(client: ApiClient) -> None:
    async with hung_up(client) as board:
        board.board.note(LINE)
        await until_read(client, HISTORY, "waits")
        second = Board(client)
        task = asyncio.create_task(second.board.run())
        later = replace(LINE, sentence="frees")
        second.board.note(later)
        await until_read(client, HISTORY, "frees")
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert parse_history((await read(client))[HISTORY]) == (LINE, later)
