"""The leader's shell around steps: it starts each one on the real API, never waits for it, and tells its outcome."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Iterator
from datetime import datetime
from functools import cached_property, partial
from typing import Callable

from pp_hostd.fencing.client import SOCKET, run_agent
from pp_hostd.frozen import frozen
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.leader.remedies.poison_pill.steps import AskPeers
from pp_hostd.leader.steps.api import Json, ServedKinds, ServedMachines
from pp_hostd.leader.steps.own_objects import WriteRoster
from pp_hostd.leader.steps.port import (
    Clock,
    Exchange,
    LeaderStep,
    NotAcknowledged,
    Pace,
    Port,
    StepEnded,
    StepNews,
    Watching,
    acknowledgement,
    outcome_of,
)
from pp_hostd.model.reachability import SILENT_AFTER_SECONDS, Finding
from pp_hostd.model.roster import Member
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written
from pp_hostd.peers.client import Silence, ask, ask_reach
from pp_hostd.peers.knock import Reached
from pp_hostd.peers.message import MachineReference, Question
from pp_hostd.peers.probe import Contact, reach
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.listening import end

MAX_OPEN = 64
"""How many sockets at most, for each node that is asked about."""
MAX_OPEN_IN_ALL = 256
"""A process has about 1000 descriptors, and the Lease must be renewed whoever is silent."""


@frozen
class Asking:
    """How peers are asked about the machine of `node`; `tell` is called once for each of them, as answers come. `turns`
    are the sockets that all questions share."""

    node: str
    asked_by: str
    settings: Settings
    keyring: Keyring
    clock: Callable[[], float]
    tell: Callable[[StepNews], None]
    turns: asyncio.Semaphore

    async def ask(self, machine_key: str, uid: str, peers: tuple[Member, ...]) -> None:
        """Ends when each peer has answered or let its time pass."""
        question = Question(MachineReference.of(machine_key, uid), self.asked_by)
        waiting = iter(peers)
        await asyncio.gather(*(self._lane(waiting, question) for _ in range(min(MAX_OPEN, len(peers)))))

    async def _lane(self, waiting: Iterator[Member], question: Question) -> None:
        """One peer after the other, until none is left."""
        peers = self.settings.peers
        for peer in waiting:
            async with self.turns:
                asked_at = self.clock()
                said = await ask(peer, peers.port, question, self.keyring, deadline_seconds=peers.round_seconds)
            if isinstance(said, Silence):
                self.tell(NotAcknowledged(self.node, peer.name, asked_at, answered=False, sentence=said.reason))
            else:
                self.tell(acknowledgement(self.node, peer.name, said, asked_at))


MAX_UNDER_WAY = 64
"""So many steps talk to the API at once; others wait, so that there is always a descriptor left for the Lease."""


class Apply:
    """`keyring` may be replaced while it runs."""

    def __init__(
        self,
        settings: Settings,
        own_node: str,
        client: ApiClient,
        keyring: Keyring,
        watching: Watching,
        acting_until: Clock,
        clock: Clock,
        wallclock: Callable[[], datetime],
        hand_over: Callable[[], Awaitable[None]],
        tell: Callable[[StepNews], None],
    ) -> None:
        """`acting_until` gives the CLOCK_BOOTTIME until which the Lease is valid, -inf if it is not; `hand_over` gives
        it up."""
        self.keyring = keyring
        self._settings, self._own_node, self._clock, self._tell = settings, own_node, clock, tell
        self._tasks: set[asyncio.Task[None]] = set()
        machines = ServedMachines(client, settings.api.machines)
        served = ServedKinds(client)
        pace = Pace(settings.leader.deletions_per_second)

        def port_of(key: str) -> Port:
            return Port(
                key=key,
                settings=settings,
                api=client,
                machines=machines,
                served=served,
                watching=watching,
                pace=pace,
                clock=clock,
                wallclock=wallclock,
                acting_until=acting_until,
                within=_within,
                sleep=asyncio.sleep,
                ask_peers=self._ask_peers,
                try_host=self._try_host,
                connects=_connects,
                run_agent=partial(run_agent, os.environ.get("PP_LEADER_FENCE_SOCKET", SOCKET)),
                hand_over=hand_over,
                tell=tell,
            )

        self._port_of = port_of

    @cached_property
    def _turns(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(MAX_UNDER_WAY)  # made where it is used: Python 3.9 binds it to the loop that runs

    @cached_property
    def _questions(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(MAX_OPEN_IN_ALL)

    def start(self, node: str, step: LeaderStep) -> None:
        """Begin the step. StepEnded is told last, whatever happens but `close`."""
        task = asyncio.create_task(self._run(node, step))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Drop what is under way; nothing more is told."""
        await end(self._tasks)

    async def write_roster(self, step: WriteRoster) -> str:
        """Why the roster can't be written or seen; empty if it is."""
        _, sentence = await self._ended("", step)
        return sentence

    async def _run(self, node: str, step: LeaderStep) -> None:
        if isinstance(step, AskPeers):  # its sockets are counted one by one
            written, sentence = await self._ended(node, step)
        else:
            async with self._turns:
                written, sentence = await self._ended(node, step)
        self._tell(StepEnded(node, step, written, self._clock(), sentence))

    async def _ended(self, node: str, step: LeaderStep) -> tuple[Written, str]:
        try:
            return await outcome_of(step, self._port_of(node))
        except Exception as error:
            return Written.UNKNOWN, f"unforeseen: {error!r}"

    async def _ask_peers(self, node: str, machine_key: str, uid: str, peers: tuple[Member, ...]) -> None:
        asking = Asking(node, self._own_node, self._settings, self.keyring, self._clock, self._tell, self._questions)
        await asking.ask(machine_key, uid, peers)

    async def _try_host(self, host: Member, others: tuple[Member, ...]) -> tuple[Finding, tuple[Finding, ...]]:
        port, deadline = self._settings.peers.port, SILENT_AFTER_SECONDS + REPORT_SECONDS

        async def report(other: Member) -> Finding:
            told = await ask_reach(other, port, host.name, self._own_node, self.keyring, deadline_seconds=deadline)
            return told.reached if isinstance(told, Reached) else None

        async with self._questions:
            own, theirs = await asyncio.gather(reach(host.address, port), asyncio.gather(*map(report, others)))
        return own.finding, tuple(theirs)


REPORT_SECONDS = 1.0
"""A host that tries another for the leader has that long to report, beside the time that it tries."""


async def _connects(address: str, port: int) -> bool:
    return (await reach(address, port)).contact is Contact.REACHED


async def _within(seconds: float, exchange: Exchange) -> Json | None:
    try:
        with Deadline(seconds):
            return await exchange()
    except TimedOut:
        return None
