"""`pp-hostd gate status` and `pp-hostd gate open`: what the daemon says about the gate, and the order to open it.

`gate open --offline` needs neither the daemon nor the API: it is the way out when neither can open the gate.
"""

from __future__ import annotations

import socket
from argparse import Namespace

from pp_hostd import config
from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.commands.daemon_link import order, report
from pp_hostd.agent.explain import remedy
from pp_hostd.agent.sense.boot import boot_id
from pp_hostd.agent.state import RUN_DIRECTORY
from pp_hostd.errors import UserError
from pp_hostd.service.output import say, say_json
from pp_hostd.service.person import confirm, who

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
