"""The options that several commands of the leader have in common."""

from __future__ import annotations

import argparse
from importlib import import_module
from typing import Any, Callable

LONGEST_SECONDS = 86400


def new_parser(commands: argparse._SubParsersAction[Any], name: str, text: str, epilog: str) -> Any:
    about = f"{text[0].upper()}{text[1:]}."
    return commands.add_parser(name, help=text, description=about, epilog=epilog, allow_abbrev=False)


def take_kubeconfig(parser: argparse.ArgumentParser) -> None:
    text = "an administrator's; default: $KUBECONFIG, else ~/.kube/config"
    parser.add_argument("--kubeconfig", metavar="FILE", help=text)


def take_node(parser: argparse.ArgumentParser, config_path: str) -> None:
    parser.add_argument("node", metavar="NODE", help="the name of a Node")
    take_kubeconfig(parser)
    take_config(parser, config_path)
    text = "the kind of machines of this cluster (default: the setting api.machines, else as installed)"
    parser.add_argument("--machines", choices=("openshift", "cluster-api", "node"), help=text)


def take_config(parser: argparse.ArgumentParser, config_path: str) -> None:
    text = f"a leader's configuration (default: {config_path}, if there is one)"
    parser.add_argument("--config", metavar="FILE", help=text)
    parser.set_defaults(config_path=config_path)


def take_wait(parser: argparse.ArgumentParser, default: float, whom: str) -> None:
    text = f"how long to wait {whom} (default: %(default)s)"
    parser.add_argument("--wait", metavar="SECONDS", type=_seconds, default=default, help=text)


def take_timeout(parser: argparse.ArgumentParser, default: float, text: str) -> None:
    parser.add_argument(
        "--timeout", metavar="SECONDS", type=_seconds, default=default, help=f"{text} (default: %(default)s)"
    )


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1
    if not 0 <= seconds <= LONGEST_SECONDS:  # nor is NaN
        raise argparse.ArgumentTypeError(f"{text!a} is no number of seconds from 0 to {LONGEST_SECONDS}")
    return seconds


def take_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def take_output(parser: argparse.ArgumentParser) -> None:
    take_json(parser)
    text = "wide: every host, with more columns; json, yaml: for programs"
    parser.add_argument("-o", "--output", choices=("wide", "json", "yaml"), help=text)
    take_no_color(parser)


def take_no_color(parser: argparse.ArgumentParser) -> None:
    text = "plain text on a terminal, too (so does the variable NO_COLOR)"
    parser.add_argument("--no-color", action="store_true", help=text)


def take_yes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--yes", action="store_true", help="do not ask for the node's name to be typed back")


def take_who(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--who", metavar="NAME", default="", help="default: the user who runs this, before any sudo")


def runs(module: str, function: str) -> Callable[[argparse.Namespace], int]:
    def run(arguments: argparse.Namespace) -> int:
        code: int = getattr(import_module(f"pp_hostd.leader.commands.{module}"), function)(arguments)
        return code

    return run
