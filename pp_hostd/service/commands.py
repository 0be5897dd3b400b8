"""The command that both programs have: its arguments and help. Its module is imported when it runs."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import import_module
from typing import Callable


def add_metrics(new_parser: Callable[[str, str, str], ArgumentParser], prog: str, config_path: str) -> None:
    """`new_parser` makes the command's parser out of its name, a text and an epilog."""
    text = "print the figures of the daemon on this host, as Prometheus reads them"
    epilog = "Exit code 3: the daemon does not answer; then the only figure says that it is not up."
    parser = new_parser("metrics", text, epilog)
    parser.add_argument("--config", metavar="FILE", default=config_path, help="default: %(default)s")
    into = f"write them to {prog}.prom there instead, for the textfile collector of node_exporter"
    parser.add_argument("--textfile", metavar="DIRECTORY", help=into)
    parser.set_defaults(command=_metrics, prog=prog)


def _metrics(arguments: Namespace) -> int:
    code: int = import_module("pp_hostd.service.metrics_command").metrics(arguments)
    return code
