"""Which settings an agent goes by: those of /etc, as far as what it has set up, and what it is bound to, allow."""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Iterable

from pp_hostd import config, timing
from pp_hostd.agent.sense.control_plane import with_gate_in_force
from pp_hostd.agent.state import StateFiles
from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen, replace
from pp_hostd.model.gate_kind import gate_kind, objection
from pp_hostd.model.promise import GateKind
from pp_hostd.model.settings import Settings, value_of
from pp_hostd.peers.signing import Keyring, keyring_of

WHILE_BOUND = ("api.machines", "watchdog.device", "watchdog.timeout_seconds", "agent.node_name")
"""A promise is one machine's, on one Node, with one W: as long as it stands, they stay (rule 5)."""
AT_START = (
    *WHILE_BOUND,
    "api.kubeconfig",
    "api.servers",
    "api.read_deadline_seconds",
    "peers.port",
    "peers.address",
    "peers.round_seconds",
    "agent.mode",
    "agent.gate",
    "agent.metrics_address",
    "agent.metrics_port",
)
"""Sockets, connections, the watchdog and the gate are set up once."""


@frozen
class EffectiveSettings:
    """The settings and keys to go by; `trouble` says what in /etc does not count yet, and why."""

    settings: Settings
    keyring: Keyring
    trouble: str = ""


def at_start(config_path: str, files: StateFiles, boot: str, now: float) -> EffectiveSettings:
    """Returns the settings for a starting agent. UserError if those of /etc can't be used, unless this boot is bound
    under earlier ones."""
    last = _last_settings(files, boot, now)
    try:
        new, objected = _with_gate(_loaded(config_path), last)
        settings, later = (new, []) if last is None else _merged(last, new, WHILE_BOUND)
        waiting = _waiting("this boot is armed, so these wait", later)
        return EffectiveSettings(settings, keyring_of(settings.peers), "; ".join(filter(None, (objected, waiting))))
    except UserError as error:
        if last is None:
            raise
        trouble = f"this boot is armed, so the agent keeps the previous settings: {error}"
        return EffectiveSettings(last, _keyring_or_silence(last), trouble)


def reloaded(old: Settings, config_path: str) -> EffectiveSettings:
    """Returns a running agent's settings from now on. UserError if the new ones can't be used: the old ones stay."""
    new, objected = _with_gate(_loaded(config_path), old)
    settings, later = _merged(old, new, AT_START)
    return EffectiveSettings(
        settings, keyring_of(settings.peers), "; ".join(filter(None, (objected, _waiting("these wait", later))))
    )


def _loaded(path: str) -> Settings:
    """With the Node's name written out: the host's own may change while this boot is bound. The kubelet's is lower."""
    settings = config.load(path).settings
    name = settings.agent.node_name or socket.gethostname().lower()
    return replace(settings, agent=replace(settings.agent, node_name=name))


def _with_gate(new: Settings, before: Settings | None) -> tuple[Settings, str]:
    """Returns the settings with the gate that this host really has, and why it can't have the one set; empty if it can.
    A running agent, or an armed boot, keeps the gate found before: a search takes time, in which nobody would feed."""
    configured = new.agent.gate
    if before is None:
        effective_settings, hindered_by = with_gate_in_force(new)
    else:
        found = before.agent.gate == GateKind.TAINT.value
        hindered_by = "as was found when the agent first started in this boot" if found else ""
        kind = gate_kind(configured, hindered_by)
        effective_settings = replace(new, agent=replace(new.agent, gate=kind.value))
    return effective_settings, objection(configured, hindered_by)


def _last_settings(files: StateFiles, boot: str, now: float) -> Settings | None:
    """Those that this boot is bound under, if it is: a mistake in /etc must not leave an armed host unfed."""
    with contextlib.suppress(UserError):
        return _loaded(files.settings_path) if files.is_bound(boot, now) else None
    return None


def _merged(old: Settings, new: Settings, staying: Iterable[str]) -> tuple[Settings, list[str]]:
    """The new ones but for these, which stay as they are; and which of these would have changed."""
    later = [key for key in staying if value_of(old, key) != value_of(new, key)]
    settings = new
    for key in later:
        table, name = key.split(".")
        changed = replace(getattr(settings, table), **{name: value_of(old, key)})
        settings = replace(settings, **{table: changed})
    broken = timing.broken(settings)
    if broken:
        raise UserError(
            f"{broken[0].sentence}; {', '.join(later)} would change only when the agent is stopped and started",
            "Do so instead: systemctl stop pp-hostd; systemctl start pp-hostd",
        )
    return settings, later


def _waiting(what: str, later: list[str]) -> str:
    return f"{what} until the agent is stopped and started: {', '.join(later)}" if later else ""


def _keyring_or_silence(settings: Settings) -> Keyring:
    """Without the cluster's key nobody understands this host; but what it reads itself still counts."""
    try:
        return keyring_of(settings.peers)
    except UserError:
        return Keyring((os.urandom(32),))
