"""The agent's commands, for people and for systemd, each in its own process. Here: their names, arguments and help."""

from __future__ import annotations

import argparse
from functools import partial
from importlib import import_module
from typing import Any, Callable

from pp_hostd.service.commands import add_metrics

EXIT_DOWN = 3
WITHOUT_DAEMON = "Exit code 3: the daemon does not run; the command then shows its last report."


def add(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    """Add every command of the agent; modules are imported when a command runs."""
    _add_run(commands, config_path)
    _add_status(commands)
    _add_ask(commands, config_path)
    _add_query_watchdog(commands, config_path)
    _add_gate(commands, config_path)
    _add_maintenance(commands)
    _add_doctor(commands, config_path)
    _add_test_reset(commands, config_path)
    add_metrics(partial(_parser, commands), "pp-hostd", config_path)


def _add_run(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    parser = _parser(commands, "run", "run the agent itself; systemd does that (pp-hostd.service)")
    _config(parser, config_path)
    parser.set_defaults(command=_run)


def _run(arguments: argparse.Namespace) -> int:
    code: int = import_module("pp_hostd.agent.daemon").run(arguments.config)
    return code


def _add_status(commands: argparse._SubParsersAction[Any]) -> None:
    status = _parser(
        commands,
        "status",
        "show the state of this host: verdict, proof and its age, watchdog, peers, next deadline",
        WITHOUT_DAEMON,
    )
    _json(status)
    status.add_argument("--watch", action="store_true", help="show it again every second, until Ctrl-C")
    status.set_defaults(command=_command("status", "status"))
    explain = _parser(
        commands, "explain", "say why the verdict is what it is, and what would change it", WITHOUT_DAEMON
    )
    _json(explain)
    explain.set_defaults(command=_command("status", "explain"))
    history = _parser(commands, "history", "list earlier boots' resets and this boot's changes of state, oldest first")
    _json(history)
    history.set_defaults(command=_command("status", "history"))


def _add_ask(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    ask = _parser(
        commands,
        "ask",
        "ask peers, as the daemon would, whether this host's machine is healthy",
        "Changes nothing. Exit code 1: not all of them answered.",
    )
    ask.add_argument("peers", metavar="PEER", nargs="*", help="names of nodes in the roster")
    ask.add_argument("--all", action="store_true", help="ask every other node of the roster")
    _json(ask)
    _config(ask, config_path)
    ask.set_defaults(command=_command("ask", "ask"))


def _add_query_watchdog(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    query = _parser(commands, "query-watchdog", "show what the kernel says about the watchdog, without opening it")
    _json(query)
    _config(query, config_path)
    query.set_defaults(command=_command("status", "query_watchdog"))


def _add_gate(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    gate = _parser(commands, "gate", "show or open the gate that holds the kubelet after a boot")
    actions = gate.add_subparsers(title="actions", metavar="ACTION", required=True)
    status = _parser(actions, "status", "say whether the gate is closed, and why", WITHOUT_DAEMON)
    _json(status)
    status.set_defaults(command=_command("gate", "status"))
    opening = _parser(
        actions,
        "open",
        "let the kubelet start before this host has promised anything in this boot",
        "The workloads of this host may be running elsewhere. So the daemon first replaces the record on the Node that "
        "nothing was started here, and refuses to open the gate if it can't.",
    )
    opening.add_argument("--i-know", action="store_true", help="needed: you know where its workloads run")
    opening.add_argument(
        "--offline",
        action="store_true",
        help="open it without the API and without the daemon, after the node's name was typed",
    )
    _config(opening, config_path)
    opening.set_defaults(command=_command("gate", "open_gate"))
    hold = _parser(actions, "hold", "wait until the gate is open; the unit before the kubelet's runs this")
    _config(hold, config_path)
    hold.set_defaults(command=_command("gate", "hold"))


def _add_maintenance(commands: argparse._SubParsersAction[Any]) -> None:
    maintenance = _parser(commands, "maintenance", "disarm this host for planned work, and arm it again")
    actions = maintenance.add_subparsers(title="actions", metavar="ACTION", required=True)
    on = _parser(
        actions,
        "on",
        "withdraw the promise and disarm the watchdog, until a time that you name",
        "Exit code 1: the order is stored, but the host is still armed; the agent keeps trying.",
    )
    on.add_argument("--why", required=True, metavar="TEXT", help="shown wherever the host's state is shown")
    on.add_argument(
        "--until",
        required=True,
        metavar="TIME",
        help="when it ends by itself: in 90s, 30m, 4h or 2d, or at 2026-03-01T12:00:00Z",
    )
    _who(on)
    on.set_defaults(command=_command("maintenance", "begin"))
    off = _parser(actions, "off", "end the maintenance: the host is armed again when it has proof")
    _who(off)
    off.set_defaults(command=_command("maintenance", "end"))
    status = _parser(actions, "status", "say whether there is maintenance, by whom, why and until when", WITHOUT_DAEMON)
    _json(status)
    status.set_defaults(command=_command("maintenance", "status"))


def _add_doctor(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    doctor = _parser(
        commands,
        "doctor",
        "check all that this host's protection rests on, and say what to do about what is wrong",
        "Changes nothing, opens no watchdog, and takes a minute at most. Exit code 1: something has failed; warnings "
        "do not count. Without root it skips some checks, and names them.",
    )
    doctor.add_argument(
        "--peers", metavar="K", type=int, default=3, help="how many peers, chosen at random, to ask; default: 3"
    )
    _json(doctor)
    _config(doctor, config_path)
    doctor.set_defaults(command=_command("doctor", "doctor"))


def _add_test_reset(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    reset = _parser(
        commands,
        "test-reset",
        "really reset this host, in the way the agent does it; for a maintenance window",
        "Without --yes-reset-this-host it says what would happen, does nothing, and ends with exit code 2.",
    )
    reset.add_argument("--yes-reset-this-host", action="store_true", help="needed: all that runs here is killed")
    reset.add_argument(
        "--watchdog-only",
        action="store_true",
        help="only stop feeding the watchdog, and wait: shows whether the watchdog alone resets this host",
    )
    _config(reset, config_path)
    reset.set_defaults(command=_command("reset_host", "reset_host"))


def _parser(commands: argparse._SubParsersAction[Any], name: str, text: str, epilog: str = "") -> Any:
    about = f"{text[0].upper()}{text[1:]}."
    return commands.add_parser(name, help=text, description=about, epilog=epilog, allow_abbrev=False)


def _config(parser: argparse.ArgumentParser, config_path: str) -> None:
    parser.add_argument("--config", metavar="FILE", default=config_path, help="default: %(default)s")


def _json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def _who(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--who", metavar="NAME", default="", help="default: the user who runs this, before any sudo")


def _command(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        from pp_hostd.agent.commands.daemon_link import Down, tell_down

        command = getattr(import_module(f"pp_hostd.agent.commands.{module}"), function)
        try:
            code: int = command(arguments)
        except Down as down:
            tell_down(down, as_json=getattr(arguments, "json", False))
            return EXIT_DOWN
        return code

    return run
