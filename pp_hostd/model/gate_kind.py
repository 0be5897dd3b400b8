"""Which gate a host has (rule 6): never one whose held kubelet would have to start the API that opens the gate."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.model.promise import GateKind

AUTO = "auto"
"""The setting that leaves the choice to what was found on the host."""


@frozen
class ServerFacts:
    """One API server of the settings: its host, whether that is an address of this host (`own`), or a loopback one."""

    host: str
    own: bool = False
    loopback: bool = False


@frozen
class GateFacts:
    """The facts found on the host: `starts` names the file or unit that starts an API server or etcd; empty if none."""

    starts: str = ""
    servers: tuple[ServerFacts, ...] = ()


def hindrance(facts: GateFacts) -> str:
    """Why a held kubelet might wait here for an API that it has to start itself; empty if nothing speaks for that."""
    if facts.starts:
        return f"this host starts a part of the control plane ({facts.starts})"
    own = [server.host for server in facts.servers if server.own]
    if own:
        return f"the API server {own[0]} is this host itself"
    if facts.servers and all(server.loopback for server in facts.servers):
        hosts = ", ".join(server.host for server in facts.servers)
        return (
            f"the API is reached only through this host's own loopback ({hosts}), by a proxy that a held kubelet may "
            "have to start; name the API servers' direct addresses in api.servers"
        )
    return ""


def gate_kind(configured: str, hindered_by: str = "") -> GateKind:
    """The kind of gate for the setting `agent.gate`, and for what `hindrance` found."""
    if configured in (AUTO, GateKind.HOLD.value):
        return GateKind.TAINT if hindered_by else GateKind.HOLD
    return GateKind(configured)


def objection(configured: str, hindered_by: str) -> str:
    """Why the setting can't be obeyed on this host; empty if it can."""
    if configured != GateKind.HOLD.value or not hindered_by:
        return ""
    return (
        f'"hold" could keep this host waiting for ever: {hindered_by}. It acts as "taint"; set agent.gate to "auto" or '
        '"taint"'
    )
