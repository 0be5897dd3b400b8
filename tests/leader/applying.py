"""The leader's hands in a test: what they are told to do, what they tell, and an observer that reads the API itself."""

from __future__ import annotations

import asyncio
import math
from dataclasses import replace
from typing import Any, Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import CONFIG_MAPS, NODES, Resource
from pp_hostd.leader.apply import Apply
from pp_hostd.leader.steps.port import (
    CONFIG_MAP,
    MACHINE,
    NODE,
    Kind,
    LeaderStep,
    StepEnded,
    StepNews,
)
from pp_hostd.model.backup import Backup, back_up
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.settings import Api, Settings
from pp_hostd.model.settings import Leader as LeaderSettings
from pp_hostd.model.step import Written
from tests.agent.objects import SINCE, Home, boottime, until
from tests.contract.objects import version_of
from tests.peers.talk import KEYRING

LEADER_HOST = "leader-host"


class Actuators:
    """`news` is all that was told, `shown` what the observer was asked to wait for; while `blind` it sees nothing."""

    def __init__(
        self,
        home: Home,
        client: ApiClient | None = None,
        settings: Settings | None = None,
        clock: Callable[[], float] = boottime,
    ) -> None:
        self.news: list[StepNews] = []
        self.shown: list[tuple[Kind, str, str | None]] = []
        self.acting_until_at = math.inf
        self.blind = False
        self.resigned = False
        self._home = home
        self.apply = Apply(
            replace(settings or Settings(), api=Api(machines=home.machines)),
            LEADER_HOST,
            client or home.client,
            KEYRING,
            self,
            lambda: self.acting_until_at,
            clock,
            lambda: SINCE,
            self._resign,
            self.news.append,
        )

    async def shows(self, kind: Kind, name: str, version_before: str | None, deadline_seconds: float) -> bool:
        assert 0 < deadline_seconds <= 5
        self.shown.append((kind, name, version_before))
        return not self.blind and await self._version(kind, name) != version_before

    async def do(self, remedy: LeaderStep, node: str = "worker") -> StepEnded:
        """Take this step to its end."""
        before = len(self.news)
        self.apply.start(node, remedy)
        assert self.news[before:] == []
        await until(lambda: any(isinstance(each, StepEnded) for each in self.news[before:]), "the step has ended")
        ended = self.news[-1]
        assert isinstance(ended, StepEnded)
        assert (ended.node, ended.step) == (node, remedy)
        assert not any(isinstance(each, StepEnded) for each in self.news[before:-1])
        return ended

    async def done(self, remedy: LeaderStep, node: str = "worker") -> None:
        ended = await self.do(remedy, node)
        assert (ended.written, ended.sentence) == (Written.DONE, "")

    async def refused(self, remedy: LeaderStep) -> str:
        """A conflict, and the sentence that tells it."""
        ended = await self.do(remedy)
        assert ended.written is Written.CONFLICT, ended.sentence
        assert self.shown == []
        return ended.sentence

    async def _resign(self) -> None:
        await asyncio.sleep(0)
        self.resigned = True

    async def _version(self, kind: Kind, name: str) -> str | None:
        namespace, _, name = name.rpartition("/")
        where: dict[Kind, tuple[Resource, str | None]] = {
            NODE: (NODES, None),
            MACHINE: (self._home.kind, namespace or None),
            CONFIG_MAP: (CONFIG_MAPS, NAMESPACE),
        }
        resource, home = where[kind]
        found = await read(self._home.client, resource, name, home)
        return None if found is None else version_of(found)


async def read(client: ApiClient, resource: Resource, name: str, namespace: str | None = None) -> Json | None:
    """The object, or None if there is none."""
    try:
        return await client.get(resource, name, namespace=namespace)
    except ApiError as error:
        assert error.reason == "NotFound", error.sentence
        return None


def with_leader(**settings: Any) -> Settings:
    return Settings(leader=LeaderSettings(**settings))


def backup_of(node: Json, condemnation_id: int = 7) -> Backup:
    backup = back_up(node, condemnation_id)
    assert isinstance(backup, Backup)
    return backup
