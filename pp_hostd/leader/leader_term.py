"""One term of a leader: the cluster is observed, planned for and acted on for as long as the Lease is valid."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine, Iterator
from datetime import datetime, timezone
from typing import Any, Callable

from pp_hostd.frozen import replace
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.events import About, Events
from pp_hostd.kube.resources import MACHINES
from pp_hostd.leader.apply import Apply
from pp_hostd.leader.approvals import Approvals
from pp_hostd.leader.cluster_metrics import limits, protection
from pp_hostd.leader.driver import Driver
from pp_hostd.leader.election import Election
from pp_hostd.leader.fence_metrics import FenceMetrics
from pp_hostd.leader.health_metrics import HealthMetrics
from pp_hostd.leader.kdump import KdumpListener
from pp_hostd.leader.node_memory import NextAction
from pp_hostd.leader.object_faults import ObjectFaults
from pp_hostd.leader.observe import Observer
from pp_hostd.leader.progress_events import ProgressEvents
from pp_hostd.leader.remedies.node_fence.seen import DumpsSeen, wants_dumps
from pp_hostd.leader.status_config_map import StatusConfigMap
from pp_hostd.leader.steps.own_objects import WriteRoster
from pp_hostd.leader.steps.port import LeaderStep, Noticed, StepEnded, StepNews
from pp_hostd.model.condemnation import DICE, Draw
from pp_hostd.model.leader_status import LeaderStatus
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.expiry import sentence_about
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.listening import end
from pp_hostd.service.metric import Metric


def draw() -> Draw:
    return Draw(int(wallclock().timestamp()), secrets.randbelow(DICE))


def wallclock() -> datetime:
    return datetime.now(timezone.utc).replace(microsecond=0)


class LeaderTerm:
    """The senses and the hands of one term's driver. `wake` is set whenever there is something to plan for."""

    def __init__(
        self,
        settings: Settings,
        node: str,
        client: ApiClient,
        keyring: Keyring,
        election: Election,
        journal: Journal,
        clock: Callable[[], float],
        wake: asyncio.Event,
    ) -> None:
        self.wake = wake
        self._settings, self._election, self._journal, self._clock = settings, election, journal, clock
        self._since, self._client = wallclock(), client
        self._observer = Observer(client, settings.api.machines, wake.set, settings)
        self._apply = Apply(
            settings,
            node,
            client,
            keyring,
            self._observer,
            lambda: election.acting_until_at,
            clock,
            wallclock,
            election.resign,
            self._heard,
        )
        self._events = Events(client, wallclock)
        self._approvals = Approvals(client, self._enrolled, self._is_acting, journal)
        self._board = StatusConfigMap(client, self.status, self._is_acting)
        self._progress_events = ProgressEvents(settings, journal, self._tell, self._board.note, clock, wallclock)
        self._object_faults = ObjectFaults(MACHINES[settings.api.machines][0], journal, self._tell)
        resigned_at = election.resigned_at
        self._driver = Driver(settings, self, self, own_node=node, resigned_at=resigned_at, clock=clock, draw=draw)
        self._news: list[StepNews] = []
        self._roster_trouble = ""
        self._tasks: set[asyncio.Task[None]] = set()
        self._remedies: dict[tuple[str, str], int] = {}
        self._health_metrics, self._fence_metrics = HealthMetrics(), FenceMetrics()
        self._kdump = KdumpListener(clock, wake.set)

    async def serve(self) -> None:
        """Until the Lease is no longer valid, or this is cancelled."""
        running = self._observer.run(), self._board.run(), self._approvals.run()
        lasting = [self._begin(each) for each in running]
        try:
            while self._is_acting():
                for task in lasting:
                    if task.done():  # none ends by itself
                        task.result()
                due_at = self._driver.turn() if self._observer.ready else self._clock() + 1.0
                self._board.refresh()
                await self._sleep(min(due_at, self._election.acting_until_at) - self._clock())
        finally:
            self._kdump.set_listening(False)
            await self._apply.close()
            await end(self._tasks)

    async def _sleep(self, seconds: float) -> None:
        timer = asyncio.get_running_loop().call_later(max(0.0, seconds), self.wake.set)
        await self.wake.wait()
        timer.cancel()
        self.wake.clear()
        await asyncio.sleep(0)  # whatever else is ready is planned for together

    def _enrolled(self) -> frozenset[str] | None:
        return frozenset(self._observer.observed.enrolled) if self._observer.ready else None

    def _is_acting(self) -> bool:
        return self._election.acting(self._clock())

    def _heard(self, news: StepNews) -> None:
        if isinstance(news, StepEnded):
            key = (type(news.step).__name__, news.written.value)
            self._remedies[key] = self._remedies.get(key, 0) + 1
        if isinstance(news, Noticed):
            about = About(news.kind, news.namespace, news.name, news.uid)
            self._tell(about, news.reason, news.sentence, news.warning)
        self._health_metrics.heard(news)
        self._fence_metrics.heard(news)
        self._news.append(news)
        self.wake.set()

    # The driver's senses.

    def observed(self) -> Observed:
        found = self._observer.observed
        self._kdump.set_listening(wants_dumps(found))
        if not self._kdump.seen:
            return found
        return replace(found, parts={**found.parts, DumpsSeen: DumpsSeen(self._kdump.seen)})

    def take(self) -> list[StepNews]:
        taken, self._news = self._news, []
        return taken

    def nodes_revision(self) -> int:
        return self._observer.revision_of_nodes

    # The driver's hands.

    def start(self, node: str, remedy: LeaderStep) -> None:
        self._apply.start(node, remedy)

    def write_roster(self, order: WriteRoster) -> None:
        self._begin(self._write_roster(order))

    def show(self, next_actions: tuple[NextAction, ...]) -> None:
        self._progress_events.tell(next_actions, self._observer.observed)
        self._object_faults.tell(self._observer.observed, self._observer.faults, self._driver.roster_revision)

    async def _write_roster(self, order: WriteRoster) -> None:
        trouble = await self._apply.write_roster(order)
        if trouble and trouble != self._roster_trouble:
            self._journal.say(Message.TROUBLE, f"the roster: {trouble}", Priority.WARNING)
        elif not trouble:
            told = f"wrote version {order.roster.version} of the roster"
            self._journal.say(Message.ROSTER_WRITTEN, told, Priority.NOTICE, version=order.roster.version)
        self._roster_trouble = trouble
        self._driver.roster_ended()
        self.wake.set()

    def _tell(self, about: About, reason: str, sentence: str, warning: bool) -> None:
        self._begin(self._events.event(about, reason, sentence, warning=warning))

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # Its status and its metrics.

    def status(self) -> LeaderStatus:
        seen = self._observer.observed.roster
        roster = None if seen is None or isinstance(seen.roster, Unreadable) else seen.roster
        certificate = self._client.certificate
        newest = None if roster is None else roster.as_of(roster.version)
        valves, settings = self._driver.valves, self._settings
        allowance = None if valves is None else valves.allowance
        holding = () if valves is None else valves.limits(settings, self._driver.term.began_at, self._clock())
        return LeaderStatus(
            leader=self._election.identity,
            since_wallclock=self._since,
            mode=settings.leader.mode,
            nodes=0 if newest is None or isinstance(newest, Unreadable) else newest.n,
            roster=0 if roster is None else roster.version,
            trouble="; ".join(filter(None, self._troubles())),
            next_actions=self._progress_events.next_actions(),
            certificate_ends_wallclock=None if certificate is None else certificate.ends,
            resets_per_hour=0 if allowance is None else allowance.most,
            resets_left=0 if allowance is None else allowance.left,
            machine_health_checks=settings.api.machines if settings.health.machine_health_checks else "",
            held=next((each.sentence for each in holding), ""),
        )

    def _troubles(self) -> tuple[str, ...]:
        certificate = self._client.certificate
        expiry = "" if certificate is None else sentence_about(certificate, wallclock())
        parts = self._observer.trouble, self._roster_trouble, self._board.trouble, self._approvals.trouble
        return (*parts, self._kdump.trouble, expiry)

    def metrics(self) -> Iterator[Metric]:
        yield from self._progress_events.metrics()
        ended = [({"step": step, "outcome": outcome}, count) for (step, outcome), count in self._remedies.items()]
        yield Metric("pp_leader_steps_total", "Steps that ended in this term, by outcome.", "counter", ended)
        observed, driver = self._observer.observed, self._driver
        yield from protection(observed)
        if driver.valves is not None:
            yield from limits(self._settings, observed, driver.term, driver.valves, self._clock(), wallclock())
        yield from self._health_metrics.metrics(observed)
        yield from self._fence_metrics.metrics(observed)
        lost = "Events that could not be written."
        yield Metric("pp_leader_events_lost_total", lost, "counter", [({}, self._events.lost)])
