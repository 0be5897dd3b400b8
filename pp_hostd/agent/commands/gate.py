"""`pp-hostd gate status` and `pp-hostd gate open`: what the daemon says about the gate, and the order to open it."""

from __future__ import annotations

from argparse import Namespace

from pp_hostd.agent.commands.daemon_link import order, report
from pp_hostd.agent.explain import remedy
from pp_hostd.errors import UserError
from pp_hostd.service.output import say, say_json
from pp_hostd.service.person import who


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
    say(order("gate-open", who=who()).sentence)
    return 0
