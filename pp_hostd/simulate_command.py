"""`pp-hostd simulate`: its arguments and help, on every host. Only the package pp-hostd-admin has the simulator itself.

So a protected host holds no simulator, and pp-hostd(8) and the shell's completion are the same everywhere.
"""

from __future__ import annotations

import argparse
from importlib import import_module
from types import ModuleType
from typing import Any, Callable

from pp_hostd.errors import UserError

SCHEDULES = 1000
SCHEDULES_OF_MUTANT = 2000
NODES = 15
MOST_NODES = 500
MOST_SEED = 10**15
MOST_JOBS = 1024
SIMULATOR = "pp_hostd.sim"
PACKAGE = "pp-hostd-admin"
_IDLE = {
    "replay": ("seed", "schedules", "jobs"),
    "day": ("schedules", "jobs", "fenced"),
    "days": ("seed", "schedules", "nodes", "jobs", "fenced"),
}
"""Options that would change nothing beside another one."""


def add(commands: argparse._SubParsersAction[Any], config_path: str) -> None:
    """Add the command; the simulator is imported when it runs."""
    text = "let whole clusters live through bad days, in virtual time, and check that every promise holds"
    parser = commands.add_parser(
        "simulate",
        help=f"{text} (package {PACKAGE})",
        description=f"{text[0].upper()}{text[1:]}. The daemons' own code decides; no host and no cluster is touched. "
        f"The package {PACKAGE} has the simulator.",
        epilog="Exit code 1: a promise was broken; the seed and the shortest story that shows it are printed. "
        "With --mutants: there is a rule whose absence nobody noticed.",
        allow_abbrev=False,
    )
    _add_size(parser)
    parser.add_argument(
        "--settings", metavar="FILE", help=f"as check-config reads it, such as {config_path} (default: every default)"
    )
    _add_kinds(parser)
    parser.add_argument(
        "--without-its-rule",
        action="store_true",
        help="with --day: take the rule out that this day is about; a promise must break then (exit code 1)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(command=_simulate)


def _add_size(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--schedules",
        metavar="N",
        type=_whole(1, MOST_SEED),
        help=f"how many bad days (default: {SCHEDULES}; with --mutants {SCHEDULES_OF_MUTANT} for each, at most)",
    )
    parser.add_argument(
        "--seed",
        metavar="S",
        type=_whole(0, MOST_SEED),
        help="the seed of the first one; the next one has S + 1 (default: a random one; with --day 1)",
    )
    parser.add_argument(
        "--nodes",
        metavar="N",
        type=_whole(2, MOST_NODES),
        help=f"each cluster has 2 to N nodes (default: {NODES}); with --day N (default: the day's)",
    )
    parser.add_argument(
        "--fenced",
        action="store_true",
        default=None,
        help="each day has a NodeHealthCheck and node fences (default: some days)",
    )
    parser.add_argument(
        "--jobs", metavar="N", type=_whole(1, MOST_JOBS), help="number of processes (default: one for each CPU)"
    )


def _add_kinds(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument(
        "--resume", metavar="FILE", help="go on where the campaign in FILE ended, and add to its sums; or begin it"
    )
    kinds.add_argument(
        "--replay", metavar="SEED", type=_whole(0, MOST_SEED), help="tell the story of one schedule, event by event"
    )
    kinds.add_argument("--days", action="store_true", help="list the bad days that have a name")
    kinds.add_argument("--day", metavar="NAME", help="tell the story of the bad day that has this name")
    kinds.add_argument(
        "--mutants", action="store_true", help="take each safety rule out, and see whether that is noticed"
    )


def _whole(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"{text!a} is no whole number from {least} to {most}")
        return number

    return parse


def _simulate(arguments: argparse.Namespace) -> int:
    kind = "campaign"
    if arguments.mutants:
        kind = "mutants"
    elif arguments.replay is not None:
        kind = "replay"
    elif arguments.days:
        kind = "days"
    elif arguments.day is not None:
        kind = "day"
    _refuse_idle(arguments, kind)
    code: int = getattr(_imported(f"{SIMULATOR}.commands"), kind)(arguments)
    return code


def _imported(name: str) -> ModuleType:
    try:
        module = import_module(name)
        if getattr(module, "__file__", None):  # a directory that a removed package left behind has none
            return module
    except ModuleNotFoundError as error:
        if not str(error.name).startswith(SIMULATOR):
            raise
    raise UserError("the simulator is not installed on this host", f"Install the package {PACKAGE}.")


def _refuse_idle(arguments: argparse.Namespace, kind: str) -> None:
    """An option that would change nothing was given for a reason."""
    for option in _IDLE.get(kind, ()):
        if getattr(arguments, option) is not None:
            raise UserError(f"--{kind} has no use for --{option}, and nothing was played", "Leave one of the two out.")
    if arguments.without_its_rule and kind != "day":
        raise UserError("--without-its-rule wants --day NAME beside it", "pp-hostd simulate --days lists the names.")
