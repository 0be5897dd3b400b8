"""`pp-hostd gate hold`: runs before the kubelet's unit and ends when the daemon opens the gate (rule 6)."""

from __future__ import annotations

import subprocess
import time
from argparse import Namespace
from functools import partial

from pp_hostd import config
from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.sense.boot import boot_id
from pp_hostd.agent.state import RUN_DIRECTORY, StateFiles
from pp_hostd.errors import UserError
from pp_hostd.model.settings import Settings
from pp_hostd.service.notify import Notify
from pp_hostd.service.output import complain, say

POLL_SECONDS = 0.2
EXTEND_SECONDS = 60.0
SYSTEMCTL_SECONDS = 10.0

clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME)


def hold(arguments: Namespace) -> int:
    boot, gate, notify = boot_id(), GateFiles(RUN_DIRECTORY), Notify(clock)
    settings = _settings(arguments.config, notify)
    passes = _passes_because(settings)
    if not passes:
        _wait(gate, boot, settings.agent.kubelet_unit, notify)
    sentence = f"the gate is open: {passes}" if passes else "the gate is open"
    notify.judged(sentence)
    say(sentence)
    return 0


def _settings(path: str, notify: Notify) -> Settings:
    """A mistake in /etc keeps the kubelet waiting until it is mended: a failed unit would not come back by itself."""
    told = ""
    while True:
        try:
            return config.load(path).settings
        except UserError as error:
            if str(error) != told:
                complain(f"the gate stays closed: {error}")
                told = str(error)
            notify.judged(f"the gate stays closed: {error}")
        time.sleep(POLL_SECONDS)


def _wait(gate: GateFiles, boot: str, unit: str, notify: Notify) -> None:
    """Until the gate is open, and tell systemd and the journal what is waited for."""
    held, told, extended_at = False, "", float("-inf")
    while not gate.is_open(boot):
        trouble = "" if held else gate.hold(boot)
        held = not trouble
        status = f"{unit} is held: {trouble or _reason(boot)}"
        if status != told:
            complain(status)
            told = status
        notify.judged(status)
        if clock() >= extended_at + EXTEND_SECONDS / 4:
            notify.extend_timeout(EXTEND_SECONDS)
            extended_at = clock()
        time.sleep(POLL_SECONDS)


def _passes_because(settings: Settings) -> str:
    """Why nothing is to be held here; empty if it is."""
    agent = settings.agent
    if agent.mode == "dry-run":
        return "a dry run holds nothing"
    if agent.gate != "hold":
        return f'agent.gate is "{agent.gate}"'
    if _has_run(agent.kubelet_unit):
        return f"{agent.kubelet_unit} has run in this boot already, so there is nothing left to hold"
    return ""


def _has_run(unit: str) -> bool:
    """Whether the unit was started in this boot, before anybody held it. "Gate closed" would be a lie then."""
    command = ["systemctl", "show", "--property=InactiveExitTimestampMonotonic", "--value", unit]
    try:
        found = subprocess.run(command, capture_output=True, timeout=SYSTEMCTL_SECONDS, check=True).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return False
    return found.isdigit() and int(found) > 0


def _reason(boot: str) -> str:
    last = StateFiles().last_report()
    if last is None or last.get("boot") != boot:
        return "pp-hostd has not reported in this boot yet"
    return str(last.get("sentence"))
