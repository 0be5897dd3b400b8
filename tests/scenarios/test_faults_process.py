"""An agent that hangs, spins or is killed over and over: no time is gained by it, and none is lost."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Iterator, Mapping
from itertools import cycle

from tests.harness.bed.channel import OrderFailed
from tests.harness.bed.host import Host
from tests.harness.eventually import eventually
from tests.scenarios.faults import agent_after, dies_by_the_bound, isolate, last_feed_at, last_proof_at, rebuilt
from tests.scenarios.stage import DEAD_SECONDS, WATCHDOG_SECONDS, Stage, now, outlive

LATE_SECONDS = 0.5
"""How late a watchdog's own process may be on a busy machine."""
SPINS = """
import signal
def spin(*_):
    while True:
        pass
signal.signal(signal.SIGUSR2, spin)
"""
"""From that signal on, the thread that runs the event loop does nothing else."""


def test_a_host_whose_agent_is_stopped_or_spins_is_reset_by_its_watchdog(stage: Stage) -> None:
    with rebuilt(stage, {"worker-2": agent_after(SPINS)}):
        stopped, spinning, other = stage.hosts(3)
        stopped.signal_agent(signal.SIGSTOP)
        spinning.signal_agent(signal.SIGUSR2)
        proofs_at = {host: last_proof_at(host) for host in (stopped, spinning)}
        for host, proof_at in proofs_at.items():
            assert dies_by_the_bound(host, proof_at) == "watchdog"
            assert host.watchdog("fired")[0]["at"] - last_feed_at(host) < WATCHDOG_SECONDS + LATE_SECONDS
        outlive([other], 0)


def test_an_agent_that_is_killed_every_second_gains_no_time_and_loses_none(stage: Stage) -> None:
    well, cut_off, halting, _ = stage.hosts(4)
    proofs_at = isolate(stage, [cut_off, halting])
    signals = {
        well: cycle([signal.SIGKILL]),
        cut_off: cycle([signal.SIGKILL]),
        halting: cycle([signal.SIGSTOP, signal.SIGCONT]),
    }
    send_every_second(signals, DEAD_SECONDS, unless_starting=well)
    for host, proof_at in proofs_at.items():
        dies_by_the_bound(host, proof_at)
    for host in (well, cut_off):
        assert len(host.events("agent-started")) > 3  # a busy machine takes seconds to start one
    outlive([well], 0)
    eventually(lambda: stage.is_well(well), "it is as well as before")


def send_every_second(signals: Mapping[Host, Iterator[signal.Signals]], seconds: float, unless_starting: Host) -> None:
    """Each agent gets the next of its signals, for as long as its host is up; that one not before this run
    has a proof: on a busy machine an agent may take seconds to start, and nobody could live on being killed sooner."""
    due_at = now()
    until_at = due_at + seconds

    def send() -> bool:
        nonlocal due_at
        if now() < due_at:
            return False
        due_at += 1
        started_at = unless_starting.events("agent-started")[-1]["at"]
        spared = unless_starting if last_proof_at(unless_starting) < started_at else None
        for host in (host for host in signals if host.is_up() and host is not spared):
            with contextlib.suppress(OrderFailed, ConnectionError):  # it is being restarted, or the host has gone
                host.signal_agent(next(signals[host]))
        return due_at > until_at

    eventually(send, "the signals are sent", seconds + 5)
