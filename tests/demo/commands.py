"""The commands of the playground: each is an order to the cluster, or shows something of it."""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.demo.board import Screen, table
from tests.demo.live import Live
from tests.harness.bed.host import PP_LEADER, Host

FOLLOWED_SECONDS = 10.0
"""So long a script that names no time watches."""
DRAW_SECONDS = 0.3
LOG_LINES = 40
STILL_ADMINISTERED = "kubectl still reaches it, so that you can look on."


class Wrong(Exception):
    """An order that cannot be carried out; the text says what is allowed."""


class Quit(Exception):
    """The person wants to leave."""


class Command(NamedTuple):
    """The words before the argument, what the argument is, and what happens."""

    words: str
    argument: str
    meaning: str
    method: str


COMMANDS = (
    Command("help", "", "this list", "help"),
    Command("hosts", "", "the hosts, now", "hosts"),
    Command("watch", "[SECONDS]", "the hosts as they change; Enter ends it", "watch"),
    Command("cut", "HOST", "pull its cable", "cut"),
    Command("mend", "HOST", "put its cable back", "mend"),
    Command("stop api", "", "hosts and leaders reach the API no more", "stop_api"),
    Command("start api", "", "they reach it again", "start_api"),
    Command("kill agent", "HOST", "SIGKILL to its pp-hostd, which its systemd starts again", "kill_agent"),
    Command("condemn", "HOST", "request its remediation, as `pp-leader condemn` does", "condemn"),
    Command("status", "", "what `pp-leader status` says", "status"),
    Command("log", "HOST", f"the last {LOG_LINES} lines of its journal", "log"),
    Command("shell", "HOST [COMMAND]", "a shell on that host, or one command", "shell"),
    Command("kubectl", "ARGUMENTS", "kubectl, as the administrator", "kubectl"),
    Command("pp-leader", "ARGUMENTS", "pp-leader, as the administrator", "pp_leader"),
    Command("quit", "", "end everything; nothing is left", "quit"),
)


class Commands:
    """`lock` keeps the cluster still while an order is given."""

    def __init__(self, live: Live, lock: threading.Lock, kubeconfig: Path, kubectl: str | None) -> None:
        self._live, self._lock, self._kubectl = live, lock, kubectl
        cache = kubeconfig.parent / "kubectl-cache"
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "KUBECACHEDIR": str(cache)}
        self._screen = Screen()

    def run(self, line: str) -> None:
        """Carry a line out; raises Wrong if it is no order, or not one for now."""
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise Wrong(f"this line cannot be split into words: {error}") from None
        if not words:
            return
        for command in COMMANDS:
            own = command.words.split()
            if words[: len(own)] == own:
                self._carry_out(command, words[len(own) :])
                return
        raise Wrong(f"{line.strip()}: no such command; there are {', '.join(each.words for each in COMMANDS)}")

    def completions(self, before: str, text: str) -> list[str | None]:
        """Whole words that may stand where `text` stands, as readline takes them."""
        earlier = before.split()[: -1 if text else None]
        wanted: set[str] = set()
        for command in COMMANDS:
            own = command.words.split()
            if own[: len(earlier)] == earlier and len(own) > len(earlier):
                wanted.add(own[len(earlier)])
            elif earlier == own and command.argument.startswith("HOST"):
                wanted |= set(self._live.hosts)
        return [*sorted(f"{each} " for each in wanted if each.startswith(text)), None]

    def _carry_out(self, command: Command, arguments: list[str]) -> None:
        least = len([each for each in command.argument.split() if not each.startswith("[")])
        most = least if "[" not in command.argument else least + 1
        unbounded = command.argument == "ARGUMENTS" or (arguments and command.method == "shell")
        if not unbounded and not least <= len(arguments) <= most:
            known = f"; HOST is one of {', '.join(self._live.hosts)}" if "HOST" in command.argument else ""
            raise Wrong(f"it is: {command.words} {command.argument}".rstrip() + known)
        getattr(self, command.method)(*arguments)

    def _host(self, name: str) -> Host:
        if name not in self._live.hosts:
            raise Wrong(f"{name}: no such host; there are {', '.join(self._live.hosts)}")
        return self._live.hosts[name]

    def _host_that_is_up(self, name: str) -> Host:
        host = self._host(name)
        if not host.is_up():
            raise Wrong(f"{name} is being reset; it is up again in a moment")
        return host

    # For a person who looks.

    def help(self) -> None:
        width = max(len(f"{each.words} {each.argument}") for each in COMMANDS)
        for each in COMMANDS:
            self._screen.say(f"  {f'{each.words} {each.argument}':{width}}  {each.meaning}")

    def hosts(self) -> None:
        with self._lock:
            rows = self._live.rows()
        self._screen.say("\n".join(table(rows, self._screen.width, colour=self._screen.colour)))

    def watch(self, seconds: str = "") -> None:
        try:
            bound = float(seconds) if seconds else 0.0 if sys.stdin.isatty() else FOLLOWED_SECONDS
        except ValueError:
            raise Wrong(f"watch [SECONDS]: {seconds} is no number of seconds") from None
        ends_at, shown = time.monotonic() + bound, [""]
        try:
            while not bound or time.monotonic() < ends_at:
                with self._lock:
                    rows = self._live.rows()
                lines = table(rows, self._screen.width, colour=self._screen.colour)
                if self._screen.live:
                    self._screen.show(lines)
                elif lines != shown:
                    self._screen.say("\n".join(line for line in lines if line not in shown[1:]))
                shown = lines
                if sys.stdin.isatty() and select.select([sys.stdin], [], [], DRAW_SECONDS)[0]:
                    sys.stdin.readline()
                    break
                time.sleep(DRAW_SECONDS if not sys.stdin.isatty() else 0)
        except KeyboardInterrupt:
            sys.stdout.write("\n")  # the terminal has written ^C
        self._screen.keep()

    def log(self, name: str) -> None:
        for event in self._host(name).events("journal")[-LOG_LINES:]:
            self._screen.say(f"{event['at']:10.1f}  {event['fields'].get('SYSLOG_IDENTIFIER', '')}  {event['line']}")

    def status(self) -> None:
        self.pp_leader("status")

    # Orders.

    def cut(self, name: str) -> None:
        self._host(name)
        with self._lock:
            self._live.cut(name)
        self._screen.say(f"{name} is cut off from everyone.")

    def mend(self, name: str) -> None:
        self._host(name)
        with self._lock:
            self._live.mend(name)
        self._screen.say(f"{name} is connected.")

    def stop_api(self) -> None:
        with self._lock:
            self._live.take_api(self._live.hosts)
        self._screen.say(f"No host and no leader reaches the API. {STILL_ADMINISTERED}")

    def start_api(self) -> None:
        with self._lock:
            self._live.give_api(self._live.hosts)
        self._screen.say("Hosts and leaders reach the API again.")

    def kill_agent(self, name: str) -> None:
        host = self._host_that_is_up(name)
        with self._lock:
            host.signal_agent(signal.SIGKILL)
        self._screen.say(f"The agent of {name} is killed; the watchdog goes on counting until it is back.")

    def condemn(self, name: str) -> None:
        self._host(name)
        self.pp_leader("condemn", name, "--yes", "--machines", "node")

    def shell(self, name: str = "", *command: str) -> None:
        host = self._host_that_is_up(name)
        if command:
            self._call("the command", host.command(*command))
            return
        self._screen.say(f"A shell on {name}; exit ends it.")
        shell = ("bash", "--norc", "--noprofile", "-i") if sys.stdin.isatty() else ("sh", "-s")
        with contextlib.suppress(Wrong):  # it ends with the code of its last command
            self._call("the shell", host.command("env", f"PS1={name}# ", *shell))

    def kubectl(self, *arguments: str) -> None:
        if self._kubectl is None:
            raise Wrong("no kubectl is installed; `make controlplane` builds one")
        self._call("kubectl", [self._kubectl, *arguments])

    def pp_leader(self, *arguments: str) -> None:
        self._call("pp-leader", [*PP_LEADER, *arguments])

    def quit(self) -> None:
        raise Quit

    def _call(self, name: str, argv: Sequence[str]) -> None:
        """Another program, which has the terminal meanwhile; a script's further lines stay the script's."""
        before = signal.signal(signal.SIGINT, signal.SIG_IGN)
        try:
            theirs = None if sys.stdin.isatty() else subprocess.DEVNULL
            code = subprocess.run(
                argv, env=self._environment, stdin=theirs, check=False, preexec_fn=_hear_interrupts
            ).returncode
        finally:
            signal.signal(signal.SIGINT, before)
            _take_terminal()
        if code:
            raise Wrong(f"{name} ended with {code}")


def _take_terminal() -> None:
    """Read from the terminal again; a shell of another process namespace cannot give it back."""
    if sys.stdin.isatty():
        before = signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        with contextlib.suppress(OSError):  # it is not the terminal of this session: nobody took it
            os.tcsetpgrp(sys.stdin.fileno(), os.getpgrp())
        signal.signal(signal.SIGTTOU, before)


def _hear_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)
