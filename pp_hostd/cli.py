"""The programs `pp-hostd`, `pp-leader`, `kubectl pp`. Each imports what it needs when it runs: `--help` stays quick."""

from __future__ import annotations

import argparse
import io
import os
import sys
from typing import TYPE_CHECKING, Any, Callable, NoReturn

from pp_hostd import __version__, simulate_command
from pp_hostd.agent import commands as agent_commands
from pp_hostd.errors import UserError
from pp_hostd.leader import commands as leader_commands

if TYPE_CHECKING:
    from pp_hostd.config import Loaded

CONFIG_PATH = "/etc/pp-hostd/pp-hostd.toml"

EXIT_UNWRITABLE = 1
EXIT_USER_ERROR = 2
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141

AddCommands = Callable[["argparse._SubParsersAction[Any]", str], None]
PROGRAMS: dict[str, tuple[str, tuple[AddCommands, ...]]] = {
    "pp-hostd": (
        "The agent: resets this host in bounded time unless the API or a peer confirms that it is not being fenced.",
        (agent_commands.add, simulate_command.add),
    ),
    "pp-leader": (
        "The leader: frees the workloads of a host once that host is certainly dead.",
        (leader_commands.add,),
    ),
    "kubectl-pp": (
        "The administrators' commands of pp-leader: a plugin of kubectl that shows and orders what pp-hostd does.",
        (leader_commands.add_for_administrators,),
    ),
}
PLUGIN = "kubectl-pp"
"""As kubectl looks for it on the PATH; a person types it as `kubectl pp`."""


def agent() -> int:
    """The console script pp-hostd."""
    return _run("pp-hostd")


def leader() -> int:
    """The console script pp-leader."""
    return _run("pp-leader")


def kubectl_plugin() -> int:
    """The console script kubectl-pp."""
    return _run(PLUGIN)


def _run(prog: str) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # a file's name, or what a person wrote, may hold anything
    try:
        code = _answer(prog)
        if sys.stdout:
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except BrokenPipeError:
        code = EXIT_BROKEN_PIPE
    except OSError as error:  # a file that can't be read is a UserError; this is about our own output
        print(f"{prog}: the output can't be written: {error.strerror}", file=sys.stderr)
        code = EXIT_UNWRITABLE
    # Buffered output has nowhere to go any more, and the interpreter would complain about that on its way out.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return code


def _answer(prog: str) -> int:
    try:
        arguments = parser_of(prog).parse_args()
        code: int = arguments.command(arguments)
    except UserError as error:
        print(f"{prog}: {error}", file=sys.stderr)
        code = EXIT_USER_ERROR
    except SystemExit as stop:  # argparse has printed the help, or the error
        code = int(stop.code or 0)
    return code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Prints the help too: a person who mistyped a command wants to see which commands there are."""
        self.print_help(sys.stderr)
        self.exit(EXIT_USER_ERROR, f"\n{self.prog}: {message}\n")


class _HelpWithSettings(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        from pp_hostd.reference import settings_text

        print(f"{parser.format_help()}\n{settings_text()}", end="")
        parser.exit()


def parser_of(prog: str) -> argparse.ArgumentParser:
    """Of one of PROGRAMS: its commands and their options."""
    about, adds = PROGRAMS[prog]
    parser = _Parser(prog=prog.replace("-", " ") if prog == PLUGIN else prog, description=about, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"{prog} {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in adds:
        add(subparsers, CONFIG_PATH)
    if prog != PLUGIN:  # an administrator's desk has no configuration of a daemon
        _add_check_config(subparsers)
    return parser


def _add_check_config(subparsers: argparse._SubParsersAction[_Parser]) -> None:
    text = "find every mistake in the configuration, or print what its settings promise"
    parser = subparsers.add_parser("check-config", help=text, description=text, allow_abbrev=False, add_help=False)
    parser.add_argument("-h", "--help", action=_HelpWithSettings, nargs=0, help="show this, and every setting")
    parser.add_argument(
        "--config",
        metavar="FILE",
        default=CONFIG_PATH,
        help="default: %(default)s, and the conf.d/*.toml beside it",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object, whatever the outcome")
    parser.set_defaults(command=_check_config)


def _refuse_gate(loaded: Loaded) -> None:
    """A gate that this very host could wait behind for ever is a mistake, though each value alone is allowed."""
    from pp_hostd.agent.sense.control_plane import by_name_service, gate_facts
    from pp_hostd.config import ConfigError, Problem
    from pp_hostd.model.gate_kind import hindrance, objection

    gate = loaded.settings.agent.gate
    refused = objection(gate, hindrance(gate_facts(loaded.settings, by_name_service)))
    if refused:
        raise ConfigError([Problem(*loaded.sources["agent.gate"], refused, "agent.gate", gate)])


def _check_config(arguments: argparse.Namespace) -> int:
    from pp_hostd import config
    from pp_hostd.config import ConfigError
    from pp_hostd.reference import promise_text
    from pp_hostd.service.output import say, say_json
    from pp_hostd.timing import timeline

    try:
        loaded = config.load(arguments.config)
        _refuse_gate(loaded)
    except ConfigError as error:
        if not arguments.json:
            raise
        say_json({"ok": False, "errors": [vars(each) for each in error.errors]})
        return EXIT_USER_ERROR
    promise = timeline(loaded.settings)
    if arguments.json:
        rows = [{"seconds": round(seconds, 6), "event": event} for seconds, event in promise.rows()]
        say_json({"ok": True, "files": loaded.files, "timeline": rows, "outage": promise.outage()})
    else:
        files = "".join(f"  {file}\n" for file in loaded.files)
        say(f"No error in\n{files}\n{promise_text(promise)}".rstrip())
    return 0
