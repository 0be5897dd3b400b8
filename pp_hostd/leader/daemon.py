"""`pp-leader run`: stands for election, and works while it leads. Single-threaded; it ends cleanly on SIGTERM."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import time
from collections.abc import Iterator
from functools import partial

from pp_hostd import config
from pp_hostd.files import handed_over
from pp_hostd.frozen import replace
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig, load, load_aside
from pp_hostd.kube.renewing import RENEWED, Following, Renewing, write_at_once
from pp_hostd.leader.election import Election
from pp_hostd.leader.leader_term import LeaderTerm
from pp_hostd.leader.page.live import Live
from pp_hostd.leader.page.server import ADDRESS, LIMITS, PageServer, promise_of
from pp_hostd.model.lease import host_of_holder
from pp_hostd.model.settings import Settings
from pp_hostd.peers.signing import keyring_of
from pp_hostd.service.expiry import ExpiryNotice
from pp_hostd.service.http_port import HttpPort
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.listening import end, serve
from pp_hostd.service.metric import Metric, build_info
from pp_hostd.service.metrics_server import Health, MetricsServer
from pp_hostd.service.notify import Notify

CALL_SECONDS = 5.0
"""How long any one call to the API may take."""
ALIVE_SECONDS = 2.0
"""How often systemd hears of us at least."""


STATE_DIRECTORY = "/var/lib/pp-leader"


def clock() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _state_directory() -> str:
    """systemd's StateDirectory=, which outlives the user that exists only while the leader runs."""
    return os.environ.get("STATE_DIRECTORY", STATE_DIRECTORY)


def run(config_path: str) -> int:
    """The command `pp-leader run`."""
    return asyncio.run(_run(config.load(config_path).settings))


async def _run(settings: Settings) -> int:
    return await Daemon(settings).run()


class Daemon:
    """All parts of one leader, and how they hear of each other."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._node = settings.agent.node_name or socket.gethostname().lower()
        self._keyring = keyring_of(settings.peers)
        self._path = handed_over(settings.leader.kubeconfig)
        self._client = ApiClient(self._completed(load(self._path, settings.api.servers)), deadline_seconds=CALL_SECONDS)
        self._following = Following(self._client, self._path, self._load_again)
        self._renewing = Renewing(self._client, _state_directory(), write_at_once, self._say_renewed)
        self._journal, self._notify = Journal(identifier="pp-leader"), Notify(clock)
        self._expiry = ExpiryNotice(self._client, self._node, "pp-leader", self._journal)
        self._wake, self._stopped = asyncio.Event(), asyncio.Event()
        self._election = Election(self._client, self._node, settings.leader.lease_seconds, clock, self._wake.set)
        self._leader_term: LeaderTerm | None = None
        self._live = Live(self._client, promise_of(settings, self._node))
        self._said = ""

    async def run(self) -> int:
        """Until a signal ends it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        campaign = asyncio.create_task(self._election.run())
        campaign.add_done_callback(lambda _: self._wake.set())  # or one that stands by would never hear of its end
        listeners = [asyncio.create_task(each) for each in (self._serve_metrics(), self._serve_page())]
        credentials = [asyncio.create_task(each.run()) for each in (self._following, self._renewing, self._expiry)]
        alive = asyncio.create_task(self._tell_systemd())
        self._notify.ready()
        gc.freeze()
        try:
            while not self._stopped.is_set():
                if campaign.done():  # it does not end by itself
                    campaign.result()
                if self._election.acting(clock()):
                    await self._lead()
                else:
                    await self._stand_by()
            await self._election.resign()
            self._say("ends, and leads no longer")
        finally:
            await end((campaign, alive, *listeners, *credentials))
            self._client.close()
            self._journal.close()
            self._notify.close()
        return 0

    async def _lead(self) -> None:
        self._say(f"leads, as {self._election.identity}")
        self._leader_term = LeaderTerm(
            self._settings,
            self._node,
            self._client,
            self._keyring,
            self._election,
            self._journal,
            clock,
            self._wake,
        )
        served = asyncio.create_task(self._leader_term.serve())
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait({served, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (served, stopped):
                task.cancel()
            outcomes = await asyncio.gather(served, stopped, return_exceptions=True)
            self._leader_term = None
        if isinstance(outcomes[0], Exception):
            raise outcomes[0]
        if not self._stopped.is_set():
            self._say(f"leads no longer: {self._election.trouble or 'the Lease was given up'}", Priority.WARNING)

    async def _stand_by(self) -> None:
        holder = self._election.holder
        lapsed = holder in ("", self._election.identity)
        self._say("stands by; nobody leads" if lapsed else f"stands by; {holder} leads")
        await self._wake.wait()
        self._wake.clear()

    async def _tell_systemd(self) -> None:
        while True:
            self._notify.judged("; ".join(filter(None, (self._said, *self._troubles()))))
            await asyncio.sleep(ALIVE_SECONDS)

    async def _serve_metrics(self) -> None:
        settings = self._settings.leader
        if settings.metrics_port:
            port = HttpPort(MetricsServer(self._metrics, self._health).respond)
            listen = partial(port.listen, settings.metrics_address, settings.metrics_port)
            await serve("the metrics port", listen, port.close, self._complain)

    async def _serve_page(self) -> None:
        number = self._settings.leader.page_port
        if number:
            port = HttpPort(PageServer(self._live).respond, LIMITS)
            await serve("the page's port", partial(port.listen, ADDRESS, number), port.close, self._complain)

    def _stop(self) -> None:
        self._notify.stopping()
        self._stopped.set()
        self._wake.set()

    def _say(self, sentence: str, priority: Priority = Priority.NOTICE) -> None:
        if sentence != self._said:
            self._said = sentence
            self._journal.say(Message.LEADING, sentence, priority)

    async def _load_again(self) -> Kubeconfig:
        return self._completed(await load_aside(self._path, self._settings.api.servers))

    def _completed(self, kubeconfig: Kubeconfig) -> Kubeconfig:
        """With the certificate that this leader may have renewed."""
        return replace(kubeconfig, renewed=os.path.join(_state_directory(), RENEWED))

    def _say_renewed(self, sentence: str) -> None:
        self._journal.say(Message.RENEWAL, sentence, Priority.NOTICE)

    def _complain(self, sentence: str) -> None:
        self._journal.say(Message.TROUBLE, sentence, Priority.ERROR)

    def _troubles(self) -> tuple[str, ...]:
        credentials = self._following.trouble, self._client.trouble, self._renewing.trouble, self._expiry.sentence
        return (self._election.trouble, *credentials)

    def _metrics(self) -> Iterator[Metric]:
        yield build_info("pp_leader_build_info")
        acting = int(self._election.acting(clock()))
        yield Metric("pp_leader_acting", "1 while this one leads.", "gauge", [({}, acting)])
        holder = host_of_holder(self._election.holder)
        text = "1, labelled with the host of the Lease's holder, as this one last saw it; none if nobody holds it."
        yield Metric("pp_leader_lease_holder_info", text, "gauge", [({"host": holder}, 1)] if holder else [])
        requests = "Requests made to the API."
        yield Metric("pp_leader_api_requests_total", requests, "counter", [({}, self._client.requests)])
        readers = "Readers that follow the leader's page; nothing is read for it while there are none."
        yield Metric("pp_leader_page_readers", readers, "gauge", [({}, self._live.readers)])
        yield from self._expiry.metrics("pp_leader_certificate_expiry_timestamp_seconds")
        if self._leader_term is not None:
            yield from self._leader_term.metrics()

    def _health(self) -> Health:
        """Whether this program does its work, which is to reach the API and to lead or stand by."""
        return Health(not self._election.trouble, self._election.trouble or self._said)
