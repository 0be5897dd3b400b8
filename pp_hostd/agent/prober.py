"""The agent's probes of a few other hosts, and its word about those that are silent. Decides nothing itself.

No judgement about this host rests on a probe.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Coroutine, Iterator
from functools import partial
from typing import Any, Callable

from pp_hostd.agent.driver import Driver
from pp_hostd.agent.posting import Posting
from pp_hostd.agent.probing import RINGS, Probing, successor
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.model.suspicion import Suspicion
from pp_hostd.peers.probe import Attempt, Contact, Probed
from pp_hostd.service.metric import Metric

Post = Callable[["Suspicion | None"], Awaitable[str]]
"""Has this suspicion, or none, stand on the host's own Node; returns why that failed, empty if it did not."""


class Prober:
    """Has no timer of its own: it probes in the agent's turns. It follows the roster and the settings of the driver."""

    def __init__(
        self,
        node: str,
        senses: AgentSenses,
        driver: Driver,
        post: Post,
        clock: Callable[[], float],
        complain: Callable[[str], None],
    ) -> None:
        self.trouble = ""
        """Why the suspects are not on the Node; empty if they are, or there are none."""
        self._node, self._senses, self._driver, self._post = node, senses, driver, post
        self._clock, self._complain = clock, complain
        # From now on, as its reads: each host starts at a moment of its own, so they do not probe in step.
        self._probing, self._posting = Probing((), clock()), Posting()
        self._version: int | None = None
        self._contacts: Counter[Contact] = Counter()
        self._addresses: dict[str, str] = {}
        self._under_way: dict[tuple[str, float], Attempt] = {}
        """By name, and by when it was sent."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_posting = False

    @property
    def suspects(self) -> tuple[str, ...]:
        return self._probing.suspects

    def metrics(self) -> Iterator[Metric]:
        counts = [({"outcome": contact.value}, self._contacts[contact]) for contact in Contact]
        yield Metric("pp_hostd_probes_total", "Probes of other hosts, by outcome.", "counter", counts)
        yield Metric("pp_hostd_suspects", "Hosts that are silent to this one.", "gauge", [({}, len(self.suspects))])

    def turn(self, anyway_at: float) -> float:
        """Begins all that is due. The agent takes its next turn at `anyway_at`; returns when the probes want one."""
        try:
            self._begin()
        except Exception as error:
            self._complain(f"probing other hosts: unforeseen: {error!r}")
            return anyway_at
        return self._probing.wake_at(anyway_at)

    async def close(self) -> None:
        for attempt in self._under_way.values():
            attempt.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _begin(self) -> None:
        memory, now = self._driver.memory, self._clock()
        self._follow_roster()
        self._probing.reads(memory.last_read is not None and not memory.failed_reads, now)
        for name in self._probing.due(now):
            self._probe(name, now)
        wanted = self._wanted()
        # The record on the Node goes first: its write relies on the version of the Node that was read.
        if self._driver.idle and not self._is_posting and self._posting.is_due(wanted, now):
            self._is_posting = True
            self._start(self._post_suspects(wanted))

    def _wanted(self) -> Suspicion | None:
        """A dry run only removes what an earlier run has left."""
        return None if self._driver.settings.agent.mode == "dry-run" else Suspicion.of(self.suspects)

    def _follow_roster(self) -> None:
        newest = self._senses.current_rosters.newest
        version = None if newest is None or not self._driver.settings.agent.probe else newest.version
        if version != self._version:
            self._version = version
            self._start(self._retarget(version))

    async def _retarget(self, version: int | None) -> None:
        rosters = self._senses.current_rosters
        names = () if version is None else rosters[version]
        chosen: list[str] = []
        for ring in range(RINGS) if self._node in names else ():
            found = successor(ring, names, self._node, chosen)
            chosen += [] if found is None else [found]
            await asyncio.sleep(0)  # of thousands of nodes, one ring takes milliseconds
        if version == self._version:
            self._addresses = {member.name: member.address for member in rosters.members(chosen)}
            self._probing.retarget(chosen)
            self._senses.wake()

    def _probe(self, name: str, sent_at: float) -> None:
        key = name, sent_at
        attempt = Attempt(self._addresses[name], self._driver.settings.peers.port, partial(self._ended, key))
        if not attempt.is_over:
            self._under_way[key] = attempt

    def _ended(self, key: tuple[str, float], probed: Probed) -> None:
        self._under_way.pop(key, None)
        self._contacts[probed.contact] += 1
        self._probing.ended(*key, probed.finding, self._clock())
        if not probed.finding:  # it may be repeated sooner than the next turn
            self._senses.wake()

    async def _post_suspects(self, wanted: Suspicion | None) -> None:
        failure = "unforeseen"
        try:
            failure = await self._post(wanted)
        finally:
            self.trouble = failure and f"its suspects are not on its Node: {failure}" if wanted is not None else ""
            self._posting.ended(wanted, bool(failure), self._clock())
            self._is_posting = False

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(self._watched(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watched(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            await work
        except Exception as error:
            self._complain(f"probing other hosts: unforeseen: {error!r}")
