"""The agent's probes over real sockets: a silent host gets into its word on the Node, and out of it again."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial

import pytest

from pp_hostd.agent.prober import Prober
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.witness import Witness
from pp_hostd.model.memory import LastRead
from pp_hostd.model.roster import Member, Roster
from pp_hostd.model.suspicion import Suspicion
from tests.agent.objects import until
from tests.agent.virtual_node import VirtualHost
from tests.peers.talk import silent_port

ME, SILENT, REFUSING = "me", "silent", "refusing"
ADDRESSES = {ME: "127.0.0.1", SILENT: "127.0.0.9", REFUSING: "127.0.0.8"}


IDLE_SECONDS = 3600.0


class Agent:
    """Takes turns for the prober alone, as the daemon does among others."""

    def __init__(self) -> None:
        self._woken = asyncio.Event()
        self.wake = self._woken.set

    async def run(self, probing: Prober) -> None:
        try:
            while True:
                wake_at = probing.turn(time.monotonic() + IDLE_SECONDS)
                timer = asyncio.get_running_loop().call_later(wake_at - time.monotonic(), self.wake)
                await self._woken.wait()
                timer.cancel()
                self._woken.clear()
        finally:
            await probing.close()


class Posted:
    """The text that would stand on the Node."""

    def __init__(self, failures: int = 0) -> None:
        self.all: list[Suspicion | None] = []
        self.failures = failures

    async def post(self, wanted: Suspicion | None) -> str:
        self.all.append(wanted)
        self.failures -= 1
        return "it is out" if self.failures >= 0 else ""


def started(
    port: int, posted: Posted, *, mode: str = "enforce", probe: bool = True
) -> tuple[Prober, asyncio.Task[None]]:
    members = [Member(name, None, address, f"uid-{name}", 1, None) for name, address in ADDRESSES.items()]
    wallclock, agent = partial(datetime.now, timezone.utc), Agent()
    senses = AgentSenses(ME, Witness("token"), Rosters(Roster.of(1, 1, members)), time.monotonic, wallclock, agent.wake)
    host = VirtualHost()
    host.run(3.0)
    driver, settings = host.driver, host.driver.settings
    driver.settings = replace(
        settings, peers=replace(settings.peers, port=port), agent=replace(settings.agent, mode=mode, probe=probe)
    )
    driver.memory = replace(driver.memory, last_read=LastRead(0.0, 0.0, ""), failed_reads=0)
    probing = Prober(ME, senses, driver, posted.post, time.monotonic, pytest.fail)
    return probing, asyncio.create_task(agent.run(probing))


def counted(prober: Prober) -> dict[str, float]:
    return {
        "".join(labels.values()) or metric.name: value
        for metric in prober.metrics()
        for labels, value in metric.samples
        if isinstance(value, (int, float))
    }


async def stop(running: asyncio.Task[None]) -> None:
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running


async def test_a_silent_host_is_named_on_the_node_until_it_is_reached_again() -> None:
    posted = Posted(failures=1)
    with silent_port(ADDRESSES[SILENT]) as port:
        probing, running = started(port, posted)
        await until(lambda: posted.all[-1:] == [Suspicion((SILENT,))], "the silent host is named")
        assert posted.all[:1] == [None]
        assert probing.suspects == (SILENT,)
        figures = counted(probing)
        assert figures["silent"] >= 4 and figures["refused"] >= 1 and figures["pp_hostd_suspects"] == 1
    await until(lambda: posted.all[-1] is None, "nobody is named any more")
    assert counted(probing)["pp_hostd_suspects"] == 0
    await stop(running)


@pytest.mark.parametrize("change", ["dry-run", "no-probes"])
async def test_a_dry_run_names_nobody_and_without_probes_nobody_is_probed(change: str) -> None:
    posted = Posted()
    with silent_port(ADDRESSES[SILENT]) as port:
        if change == "dry-run":
            probing, running = started(port, posted, mode="dry-run")
            await until(lambda: probing.suspects == (SILENT,), "the silent host is suspected")
        else:
            probing, running = started(port, posted, probe=False)
            await until(lambda: posted.all, "what an earlier run left is removed")
            assert counted(probing) == {"reached": 0, "refused": 0, "silent": 0, "untried": 0, "pp_hostd_suspects": 0}
        assert posted.all == [None]
        await stop(running)


async def test_a_word_that_can_not_be_written_is_a_trouble() -> None:
    posted = Posted(failures=1000)
    with silent_port(ADDRESSES[SILENT]) as port:
        probing, running = started(port, posted)
        await until(lambda: probing.trouble, "it is told")
        assert probing.trouble == "its suspects are not on its Node: it is out"
        await stop(running)
