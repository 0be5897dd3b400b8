"""What new settings change in a running agent, and what they change only when it starts again."""

from __future__ import annotations

from dataclasses import replace

from pp_hostd import timing
from pp_hostd.errors import UserError
from pp_hostd.model.settings import Settings, value_of

AT_START = (
    "api.kubeconfig",
    "api.servers",
    "api.machines",
    "api.read_deadline_seconds",
    "peers.port",
    "peers.address",
    "peers.round_seconds",
    "watchdog.device",
    "watchdog.timeout_seconds",
    "agent.node_name",
    "agent.mode",
    "agent.gate",
    "agent.metrics_address",
    "agent.metrics_port",
)
"""Sockets, connections, the watchdog and the gate are set up once."""


def reloaded(old: Settings, new: Settings) -> tuple[Settings, list[str]]:
    """The settings in force from now on, and the keys of those that wait for the next start."""
    later = [key for key in AT_START if value_of(old, key) != value_of(new, key)]
    settings = new
    for key in later:
        table, name = key.split(".")
        changed = replace(getattr(settings, table), **{name: value_of(old, key)})
        settings = replace(settings, **{table: changed})
    broken = timing.broken(settings)
    if broken:
        raise UserError(
            f"{broken[0].sentence}; {', '.join(later)} would change only at the next start",
            "Restart the agent instead: systemctl restart pp-hostd",
        )
    return settings, later
