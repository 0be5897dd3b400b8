"""pp-leader as a process that has its imports already: they take longer than what most commands do.

A server imports all that the commands use, once, and each command is a fork of it.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pp_hostd.leader.commands as commands
from pp_hostd import cli
from tests.harness.eventually import HANGS_SECONDS

for each in iter_modules(commands.__path__):
    import_module(f"{commands.__name__}.{each.name}")
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])


def pp_leader(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs the command without a terminal, as a person's script does."""
    with tempfile.TemporaryDirectory() as directory:
        output, complaint = Path(directory, "stdout"), Path(directory, "stderr")
        process = FORKS.Process(target=_run, args=(arguments, environment, str(output), str(complaint)))
        process.start()
        process.join(HANGS_SECONDS)
        assert process.exitcode is not None, f"pp-leader {arguments} has not ended in {HANGS_SECONDS:g} s"
        return subprocess.CompletedProcess(arguments, process.exitcode, output.read_text(), complaint.read_text())


def _run(arguments: tuple[str, ...], environment: dict[str, str], output: str, complaint: str) -> None:
    for number, path in enumerate((os.devnull, output, complaint)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), number)
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(number, mode) for number, mode in enumerate("rww"))
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["pp-leader", *arguments]
    sys.exit(cli.leader())
