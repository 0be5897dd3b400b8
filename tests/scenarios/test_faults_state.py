"""Files in /run that are damaged, foreign or from the future: set aside, said, and worth nothing but their copies."""

from __future__ import annotations

import json
import signal
from typing import Any, Callable

from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.harness.eventually import eventually
from tests.scenarios.faults import dies_by_the_bound, last_proof_at
from tests.scenarios.stage import LONG_SECONDS, Stage, outlive, says, shows

FUTURE_SECONDS = 3600
WRITE = 'printf %s "$2" > "$1"'
Damage = Callable[[str], str]


def half(text: str) -> str:
    return text[: len(text) // 2]


def garbage(_text: str) -> str:
    return '{"v": 1]'


def from_the_future(text: str) -> str:
    state: dict[str, Any] = json.loads(text)
    state["proof"]["at"] += FUTURE_SECONDS
    return json.dumps(state)


def of_another_boot(text: str) -> str:
    """With a proof that would be good for an hour, if anybody believed it."""
    return json.dumps({**json.loads(from_the_future(text)), "boot": "another"})


DAMAGES: list[tuple[str, Damage]] = [
    ("state", half),
    ("state", garbage),
    ("state", from_the_future),
    ("state", of_another_boot),
    ("roster-*[0-9]", garbage),
    ("gate-open", half),
]


def damage(host: Host, name: str, damaged: Damage) -> str:
    """Kill the agent, which finds this file so when it is started again; the file. By a shell, which starts quickly:
    nobody feeds the watchdog meanwhile."""
    host.signal_agent(signal.SIGSTOP)
    path = host.run("sh", "-c", f"ls /run/pp-hostd/{name}").stdout.strip()
    host.run("sh", "-c", WRITE, "sh", path, damaged(host.run("cat", path).stdout))
    host.signal_agent(signal.SIGKILL)
    return path


def test_a_host_that_finds_its_files_damaged_lives_on_if_it_is_well_and_dies_if_it_is_not(stage: Stage) -> None:
    hosts = stage.hosts(12)
    well, cut_off = hosts[:6], hosts[6:]
    for host in hosts:
        stage.alter(host)
    proofs_at = {}
    for host, (name, damaged) in zip(cut_off, DAMAGES):
        host.signal_agent(signal.SIGSTOP)
        proofs_at[host] = last_proof_at(host)
        stage.bed.cut(host.name)
        damage(host, name, damaged)
    paths = {host: damage(host, name, damaged) for host, (name, damaged) in zip(well, DAMAGES)}
    for host, proof_at in proofs_at.items():
        dies_by_the_bound(host, proof_at)
    outlive(well, LONG_SECONDS)
    for host, (_, damaged) in zip(well, DAMAGES):
        eventually(lambda: stage.is_well(host), f"{host.name} is well")  # noqa: B023  (called here)
        told = f"the agent ignores it, and has renamed it to {paths[host]}.corrupt"
        is_told = any(told in line for line in host.journal())
        assert is_told == (damaged is not of_another_boot)  # which is no damage: simply old


def test_a_state_that_is_damaged_while_the_api_is_away_resets_nobody(any_stage: Stage) -> None:
    hosts = any_stage.hosts(3, patient=3)
    any_stage.bed.set_api(Mode.REFUSE)
    for host in hosts:
        any_stage.alter(host)
        shows(host, "the control plane is out, not this host")
    for host, damaged in zip(hosts, (half, garbage, from_the_future)):
        damage(host, "state", damaged)
        says(host, "the agent ignores it, and has renamed it to /run/pp-hostd/state.corrupt")
        says(host, "the copy of the judgement before counts instead")
    outlive(hosts, LONG_SECONDS)
    for host in hosts:
        shows(host, "the control plane is out, not this host")
    any_stage.bed.set_api(Mode.PASS)
    eventually(lambda: all(map(any_stage.is_well, hosts)), "all are as before", 60)
