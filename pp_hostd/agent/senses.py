"""The news that the agent has sensed since its last judgement, and the context of its host."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime
from typing import Callable

from pp_hostd.agent.driver import News
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.witness import Witness
from pp_hostd.model.control import Maintenance
from pp_hostd.model.evidence import HostContext, LinkChanged, PeerAnswered, Read, WatchedCondemned
from pp_hostd.model.machine import Machine

MAX_ANSWERS = 50
"""So many of the peers' last answers are kept for people to see."""


class AgentSenses:
    """The watches and the hands of the agent tell their news here; `tell` calls `wake`, and the agent takes a turn."""

    def __init__(
        self,
        node: str,
        witness: Witness,
        rosters: Rosters,
        clock: Callable[[], float],
        wallclock: Callable[[], datetime],
        wake: Callable[[], None],
    ) -> None:
        self.wake = wake
        self.witness = witness
        self.current_rosters = rosters
        self.roster_trouble = ""
        self.machine: Machine | None = None
        self.maintenance: Maintenance | None = None
        self.cluster_maintenance: Maintenance | None = None
        self._cluster_until_at = 0.0
        self.opened_by = ""
        self.answers: deque[PeerAnswered] = deque(maxlen=MAX_ANSWERS)
        self.stopping = self.powering_off = False
        self._node = node
        self._clock, self._wallclock = clock, wallclock
        self._news: list[News] = []
        self._premises: tuple[object, ...] = ()
        self._context: HostContext | None = None

    def tell(self, news: News) -> None:
        if isinstance(news, Read) and (news.missing or news.machine is not None):
            self.witness.own_missing = news.missing
            if news.machine is not None and news.machine != self.machine:  # an equal one is not compared again
                self.machine = news.machine
        if isinstance(news, PeerAnswered):
            self.answers.append(news)
        self._news.append(news)
        self.wake()

    def take(self) -> list[News]:
        taken, self._news = self._news, []
        return taken

    def learned(self, machine_key: str, uid: str, condemnation_id: int, at: float) -> None:
        """A machine is condemned, perhaps this host's own (the watch on condemned machines)."""
        self.witness.learned(machine_key, uid, condemnation_id, at)
        if self.machine is not None and (machine_key, uid) == (self.machine.machine_key, self.machine.uid):
            self.tell(WatchedCondemned(uid, condemnation_id, at))

    def listed(self) -> None:
        self.witness.listed()

    def link_changed(self) -> None:
        self.tell(LinkChanged(self._clock()))

    def host_context(self) -> HostContext:
        """The same object as long as nothing has changed: it keeps what was found by it."""
        newest = self.current_rosters.newest
        premises = (
            None if newest is None else self.current_rosters.electorate(newest.version),
            self.roster_trouble,
            self.machine,
            self._maintenance_now(),
            self.opened_by,
            self.stopping,
            self.powering_off,
        )
        if self._context is None or premises != self._premises:
            self._premises, self._context = premises, HostContext(self._node, *premises)
        return self._context

    def rosters(self) -> Mapping[int, tuple[str, ...]]:
        return self.current_rosters

    def take_rosters(self, rosters: Rosters) -> None:
        self.current_rosters = rosters
        self.wake()

    def order_cluster_maintenance(self, order: Maintenance | None) -> None:
        """A person has ordered this for all hosts; None: that is over."""
        if order != self.cluster_maintenance:
            self.cluster_maintenance = order
            self._cluster_until_at = 0.0 if order is None else self._clock() + order.seconds
            self.wake()

    def _maintenance_now(self) -> Maintenance | None:
        """An order of a person's, which runs out by their clock: no bound is measured by it. One for all hosts also
        runs out after its own length, so that a wrong clock leaves no host unprotected for long."""
        if self.maintenance is None and self.cluster_maintenance is None:  # as at nearly every judgement
            return None
        in_time = self._clock() < self._cluster_until_at
        orders = (self.maintenance, self.cluster_maintenance if in_time else None)
        now = self._wallclock()
        return next((order for order in orders if order is not None and now < order.until_wallclock), None)
