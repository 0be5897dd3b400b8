"""Helpers of the scenarios of faults: hosts with a program of ours for an agent, and a look at proofs and feeds."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.harness.bed.host import AGENT_COMMAND, Design, Host
from tests.scenarios.stage import DEAD_SECONDS, SELF_TIMEOUT_SECONDS, WATCHDOG_SECONDS, Stage

STATE = "/run/pp-hostd/state"


def agent_after(source: str) -> list[str]:
    """The command of an agent that is the real one, started after these lines have run in its process."""
    python, option, start, *arguments = AGENT_COMMAND
    return [python, option, f"{source}\n{start}", *arguments]


@contextlib.contextmanager
def rebuilt(stage: Stage, agents: Mapping[str, Sequence[str]]) -> Iterator[None]:
    """Hosts of these names run these commands for an agent, from their next boot on until this ends."""
    try:
        for name, command in agents.items():
            stage.alter(stage.bed.hosts[name])
            stage.bed.hosts[name].design.agent = command
        yield
    finally:
        for name in agents:
            stage.alter(stage.bed.hosts[name])
            stage.bed.hosts[name].design = Design()


def isolate(stage: Stage, hosts: Sequence[Host]) -> dict[Host, float]:
    """Cut each of them off from everyone; when the last proof of each began."""
    for host in hosts:
        stage.bed.cut(host.name)
    return {host: last_proof_at(host) for host in hosts}


def last_proof_at(host: Host) -> float:
    """When the last proof began that its agent knows of, as it keeps it for its next run."""
    state = json.loads(host.run("cat", STATE).stdout)
    return float(state["proof"]["at"])


def dies_by_the_bound(host: Host, proof_at: float) -> str:
    """Wait for it, and see that it was in time (rule 2); how it died."""
    down = host.await_down()
    told = (host.name, down, host.journal()[-3:])
    assert down["how"] in ("reboot", "watchdog"), told
    assert down["at"] - proof_at < DEAD_SECONDS, told
    assert last_feed_at(host) - proof_at < SELF_TIMEOUT_SECONDS + WATCHDOG_SECONDS, told
    return str(down["how"])


def last_feed_at(host: Host) -> float:
    return float(host.watchdog("feed")[-1]["at"])


def status(host: Host) -> dict[str, Any]:
    """Returns the status that `pp-hostd status --json` prints on the host."""
    shown: dict[str, Any] = json.loads(host.run("pp-hostd", "status", "--json").stdout)
    return shown


def python(host: Host, source: str, *arguments: str) -> str:
    """Runs this Python program on the host; returns its standard output."""
    return host.run(sys.executable, "-c", source, *arguments).stdout
