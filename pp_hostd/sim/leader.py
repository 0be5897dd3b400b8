"""A leader's process: it campaigns for the Lease by the real candidacy, and serves one term after the other."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from functools import partial
from typing import Callable

from pp_hostd.kube.resources import LEASES
from pp_hostd.model.condemnation import DICE, Draw
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.lease import LEASE, Lease, given_up_spec, parse_lease, renewed_spec, taken_spec, unheld_spec
from pp_hostd.model.lease_rules import Candidacy, Exchange
from pp_hostd.model.settings import Settings
from pp_hostd.model.written import Written
from pp_hostd.sim.api import EPOCH, Client, Failed, Reply
from pp_hostd.sim.host import Host
from pp_hostd.sim.leader_port import Freed
from pp_hostd.sim.leader_term import LeaderTerm
from pp_hostd.sim.question import AskPeer


class Leader:
    """One candidate. `frees` hears of each write after which the workloads of a node may start elsewhere, `sends` of
    each write when it is sent."""

    def __init__(
        self,
        settings: Settings,
        host: Host,
        client: Client,
        ask_peer: AskPeer,
        identity: str,
        frees: Callable[[str, Freed], None],
        sends: Callable[[], None],
        told: dict[str, str],
        note: Callable[[str, str], None],
    ) -> None:
        self.settings, self.client, self.ask_peer, self.frees, self.note = settings, client, ask_peer, frees, note
        self.sends, self.told = sends, told
        self.clock, self.host, self._on = client.process.clock, client.host, host
        self.candidacy = Candidacy(identity, settings.leader.lease_seconds)
        self._dice = random.Random(identity)
        self._leader_term: LeaderTerm | None = None
        self._term = 0
        self._wakes = 0
        self._go_on()

    def wallclock(self) -> datetime:
        return datetime.fromtimestamp(EPOCH + self.client.time.now + self._on.wallclock_off_seconds, timezone.utc)

    def draw(self) -> Draw:
        return Draw(int(self.wallclock().timestamp()), self._dice.randrange(DICE))

    def acting_until(self) -> float:
        return self.candidacy.acting_until_at

    def resign(self) -> None:
        self.candidacy = self.candidacy.resigned(self.clock())
        self._go_on()

    def _go_on(self) -> None:
        """The next exchange, now or when it is due; and the term that follows from the last one."""
        now = self.clock()
        self._wakes += 1
        self._look_at_term(now)
        exchange, due_at = self.candidacy.next_exchange(now)
        if due_at <= now:
            self._exchange(exchange, now)
            return
        at = min(due_at, self.candidacy.acting_until_at) if self.candidacy.acting(now) else due_at
        wake = partial(self._wake, self._wakes)
        self.client.time.at(self.clock.when(at), partial(self.client.process.do, wake))

    def _wake(self, wakes: int) -> None:
        if wakes == self._wakes:
            self._go_on()

    def _look_at_term(self, now: float) -> None:
        acting = self.candidacy.acting(now)
        if self._leader_term is not None and (not acting or self._term != self.candidacy.term):
            self._leader_term.close()
            self._leader_term = None
            self.note(self.host, "leads no longer")
        if acting and self._leader_term is None:
            self._term = self.candidacy.term
            self.note(self.host, "leads")
            self._leader_term = LeaderTerm(self)

    def _exchange(self, exchange: Exchange, sent_at: float) -> None:
        wakes = self._wakes

        def ended(reply: Reply) -> None:
            if isinstance(reply, Failed):
                self._failed(exchange, reply)
            elif exchange in (Exchange.TAKE, Exchange.RENEW):
                self.candidacy = self.candidacy.held(exchange, reply, sent_at, self.clock())
            else:
                self.candidacy = self.candidacy.saw(reply, self.clock())
            if wakes == self._wakes:
                self._go_on()

        self.client.call(partial(self._serve, exchange), ended, self.candidacy.exchange_seconds(sent_at))

    def _failed(self, exchange: Exchange, failed: Failed) -> None:
        if exchange is Exchange.LOOK and failed.missing:
            self.candidacy = self.candidacy.saw(None, self.clock())
        else:
            overtaken = failed.written is Written.CONFLICT
            self.candidacy = self.candidacy.failed(exchange, self.clock(), overtaken=overtaken)

    def _serve(self, exchange: Exchange) -> Lease:
        api, lease, seconds = self.client.api, self.candidacy.lease, self.candidacy.duration_seconds
        if exchange is Exchange.LOOK:
            found: Lease = api.found(parse_lease, LEASES, NAMESPACE, LEASE)
            return found
        if lease is None:
            written = api.create(LEASES, NAMESPACE, {"metadata": {"name": LEASE}, "spec": unheld_spec(seconds)})
        else:
            wallclock = self.wallclock()
            if exchange is Exchange.TAKE:
                spec = taken_spec(lease, self.candidacy.identity, seconds, wallclock)
            elif exchange is Exchange.RENEW:
                spec = renewed_spec(self.candidacy.identity, seconds, wallclock)
            else:
                spec = given_up_spec(wallclock)
            # Of this version: a renewal that comes late must not undo what another one took.
            patch = {"metadata": {"resourceVersion": lease.resource_version}, "spec": spec}
            written = api.patch(LEASES, NAMESPACE, LEASE, patch)
        renewed = parse_lease(written)
        assert isinstance(renewed, Lease), renewed
        return renewed
