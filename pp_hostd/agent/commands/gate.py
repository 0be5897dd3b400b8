"""`pp-hostd gate status`, `gate open` and `gate hold`, which runs before the kubelet's unit (rule 6)."""

from __future__ import annotations

import socket
import subprocess
import time
from argparse import Namespace
from functools import partial

from pp_hostd import config
from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.commands.daemon_link import order, report
from pp_hostd.agent.explain import remedy
from pp_hostd.agent.sense.boot import boot_id
from pp_hostd.agent.sense.control_plane import gate_facts
from pp_hostd.agent.state import RUN_DIRECTORY, StateFiles
from pp_hostd.errors import UserError
from pp_hostd.model.gate_kind import gate_kind, hindrance
from pp_hostd.model.promise import GateKind
from pp_hostd.model.settings import Settings
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.notify import Notify
from pp_hostd.service.output import complain, confirm, say, say_json, who

OFFLINE = """The kubelet of {node} starts its workloads without asking the API or the agent. You confirm that
  - no other host runs the workloads of {node}, nor will start them: the leader may be about to free them, because
    Node {node} says "gate closed" or bears the promise of an earlier boot. Where the API answers, do this first:
    pp-leader pause
  - this host is not protected until the agent reaches the API and arms it."""


def status(arguments: Namespace) -> int:
    current = report()
    gate, unit = current["gate"], current["settings"]["kubelet_unit"]
    if arguments.json:
        say_json({**gate, "kubelet_unit": unit, "reason": current["sentence"]})
    elif gate["state"] == "closed":
        say(f"closed ({gate['kind']}): {current['sentence']}\n{remedy(current)}")
    elif gate["state"] == "open":
        say(f"open ({gate['kind']}): {unit} may start workloads")
    else:
        say(f"absent ({gate['kind']}): nothing holds {unit} in this boot")
    return 0


def open_gate(arguments: Namespace) -> int:
    if not arguments.i_know:
        raise UserError(
            "the gate is there because the workloads of this host may be running elsewhere already",
            "If you know that they are not, or that they bear two copies: pp-hostd gate open --i-know",
        )
    if arguments.offline:
        return _open_offline(arguments.config)
    say(order("gate-open", who=who()).sentence)
    return 0


def _open_offline(config_path: str) -> int:
    """The daemon and the leader learn of it later: the daemon withdraws, and the kubelet reports its boot (rule 11)."""
    node = _node_name(config_path)
    say(OFFLINE.format(node=node))
    confirm(node, yes=None)
    trouble = GateFiles(RUN_DIRECTORY).open(boot_id(), f"{who()} opened it by hand, offline")
    if trouble:
        raise UserError(f"the gate stays closed: {trouble}", "Run this as root.")
    say("the gate is open; this host is not protected before it is armed")
    return 0


def _node_name(config_path: str) -> str:
    """As configured, if the configuration can be read: a mistake in it must not close the way out."""
    try:
        configured = config.load(config_path).settings.agent.node_name
    except UserError:
        configured = ""
    return configured or socket.gethostname().lower()


GATE_UNIT = "pp-hostd-gate.service"
POLL_SECONDS = 0.2
EXTEND_SECONDS = 60.0
LOOK_SECONDS = 5.0
"""An address of this host may come up late, and be the API server's."""
SYSTEMCTL_SECONDS = 10.0
BY_HAND = "If this host's workloads run nowhere else: pp-hostd gate open --i-know --offline"

clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME)


def hold(arguments: Namespace) -> int:
    boot, gate, notify = boot_id(), GateFiles(RUN_DIRECTORY), Notify(clock)
    settings = _settings(arguments.config, gate, boot, notify)
    passes = "" if settings is None else _passes_because(settings)
    if settings is not None and not passes:
        passes = _wait(settings, gate, boot, Teller(settings.agent.kubelet_unit, notify))
    sentence = f"the gate is open: {passes}" if passes else "the gate is open"
    notify.judged(sentence)
    say(sentence)
    return 0


class Teller:
    """Says once what is waited for: to systemd, on the console, and where people look first, at the unit that waits."""

    def __init__(self, unit: str, notify: Notify) -> None:
        self.unit, self._notify = unit, notify
        self._journal = Journal(stderr=-1)  # where there is no journal, the words below are all there is
        self._told = ""

    def tell(self, sentence: str, reason: str) -> None:
        if sentence != self._told:
            complain(f"{sentence.rstrip('.')}. {BY_HAND}")
            waits = f"{self.unit} waits for {GATE_UNIT}: {reason} See: pp-hostd gate status. {BY_HAND}"
            self._journal.say_about(self.unit, Message.GATE_CLOSED, waits, Priority.WARNING)
            self._told = sentence
        self._notify.judged(sentence)

    def extend_timeout(self, seconds: float) -> None:
        self._notify.extend_timeout(seconds)


def _settings(path: str, gate: GateFiles, boot: str, notify: Notify) -> Settings | None:
    """A mistake in /etc keeps the kubelet waiting until it is mended: a failed unit would not come back by itself.
    None if the gate was opened meanwhile. A host that starts the control plane goes by the defaults: it is not held."""
    teller = Teller(Settings().agent.kubelet_unit, notify)  # if it is another one, that stands in what can't be read
    while not gate.is_open(boot):
        try:
            return config.load(path).settings
        except UserError as error:
            if gate_facts(Settings()).starts:
                return Settings()
            teller.tell(f"the gate stays closed: {error}", f"{error}")
        time.sleep(POLL_SECONDS)
    return None


def _wait(settings: Settings, gate: GateFiles, boot: str, teller: Teller) -> str:
    """Until the gate is open, and tell what is waited for. The sentence says why this host is held no longer."""
    held, extended_at, looked_at = False, float("-inf"), clock()
    while not gate.is_open(boot):
        trouble = "" if held else gate.hold(boot)
        held = not trouble
        reason = trouble or _reason(boot)
        teller.tell(f"{teller.unit} is held: {reason}", f"{reason}.")
        if clock() >= extended_at + EXTEND_SECONDS / 4:
            teller.extend_timeout(EXTEND_SECONDS)
            extended_at = clock()
        time.sleep(POLL_SECONDS)
        if clock() >= looked_at + LOOK_SECONDS:
            passes, looked_at = _not_held_because(settings), clock()
            if passes and not gate.open(boot, passes):
                return passes
    return ""


def _passes_because(settings: Settings) -> str:
    """Why nothing is to be held here; empty if it is."""
    agent = settings.agent
    if agent.mode == "dry-run":
        return "a dry run holds nothing"
    if _has_run(agent.kubelet_unit):
        return f"{agent.kubelet_unit} has run in this boot already, so there is nothing left to hold"
    return _not_held_because(settings)


def _not_held_because(settings: Settings) -> str:
    """As the agent decides it too (rule 6)."""
    configured = settings.agent.gate
    hindered_by = hindrance(gate_facts(settings))
    kind = gate_kind(configured, hindered_by)
    if kind is GateKind.HOLD:
        return ""
    because = f": {hindered_by}" if kind.value != configured else ""
    return f'agent.gate is "{configured}"' + (f', here "{kind.value}"{because}' if because else "")


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
