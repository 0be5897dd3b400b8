"""The playground as its users drive it: a script by a pipe, a person on a terminal. Nothing of it is left."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Callable, TypeVar

import pytest

from tests.harness.build import binaries
from tests.harness.eventually import HANGS_SECONDS, eventually

Found = TypeVar("Found")
MARK = "PLAYGROUND_TEST"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: mine, namespace: default}\ndata: {a: b}\n"


class Playground:
    """One that runs; what it writes is read as it comes."""

    def __init__(self, *arguments: str, inner: int | None = None, outer: int | None = None) -> None:
        self.mark = str(uuid.uuid4())
        environment = {**os.environ, MARK: self.mark, "COLUMNS": "200", "TERM": "xterm"}
        theirs = subprocess.PIPE if inner is None else inner
        session = ["setsid"] if inner is None else ["setsid", "--ctty"]  # with it, Ctrl-C is a signal
        self.process = subprocess.Popen(
            [*session, sys.executable, "-m", "tests.demo.playground", *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=subprocess.STDOUT,
            env=environment,
        )
        if outer is None:
            assert self.process.stdin is not None
            assert self.process.stdout is not None
        self._in = self.process.stdin.fileno() if self.process.stdin else outer
        self._out = self.process.stdout.fileno() if self.process.stdout else outer
        self._said, self._from = "", 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._out is not None
        with contextlib.suppress(OSError):
            while True:
                some = os.read(self._out, 65536)
                if not some:
                    return
                self._said += some.decode(errors="replace")

    @property
    def said(self) -> str:
        """The output since it was forgotten last."""
        return self._said[self._from :]

    def type(self, text: str) -> None:
        assert self._in is not None
        os.write(self._in, text.encode())

    def until(self, pattern: str) -> re.Match[str]:
        """Wait until it says this, and forget all up to there."""
        match = self._await(lambda: self._found(pattern), f"it says {pattern}")
        self._from += match.end()
        return match

    def _found(self, pattern: str) -> re.Match[str] | None:
        ended = self.process.poll() is not None
        if ended:
            self._reader.join()
        match = re.search(pattern, self.said)
        if match is None and ended:
            raise AssertionError(f"it ended, and did not say {pattern}: {self.said}")
        return match

    def asks_until(self, order: str, pattern: str) -> None:
        """Give an order again and again, until it shows this."""

        def shown() -> bool:
            self._from = len(self._said)
            self.type(f"{order}\nhelp\n")
            eventually(lambda: self._found("quit +end everything"), "it answers", HANGS_SECONDS)
            return re.search(pattern, self.said) is not None

        self._await(shown, f"{order} shows {pattern}")

    def _await(self, check: Callable[[], Found | None], what: str) -> Found:
        try:
            found = eventually(check, what, HANGS_SECONDS)
            assert found is not None
            return found
        except TimeoutError as error:
            raise TimeoutError(f"{error}; it said: {self.said}") from None

    def close(self) -> None:
        """Wait for its end, and close what it wrote to."""
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def processes(self) -> list[str]:
        """Those that it started, and it."""
        found = []
        for path in Path("/proc").glob("[0-9]*/environ"):
            with contextlib.suppress(OSError):
                if self.mark.encode() in path.read_bytes():
                    found.append(path.parent.joinpath("cmdline").read_text())
        return found


@contextlib.contextmanager
def playground(*arguments: str, **descriptors: int) -> Iterator[Playground]:
    """Ends it, and finds nothing of it left."""
    running = Playground(*arguments, **descriptors)
    try:
        kubeconfig = Path(running.until(r"KUBECONFIG=(\S+)")[1])
        assert kubeconfig.exists()
        running.until("end everything")
        assert running.processes()
        yield running
        running.process.wait(HANGS_SECONDS)
        assert not kubeconfig.parent.exists()
        eventually(lambda: not running.processes(), "no process is left")
    finally:
        running.process.kill()
        running.close()


def test_a_script_breaks_hosts_and_is_told_what_is_allowed() -> None:
    with playground("--embedded") as running:
        running.type("hosts\n")
        running.until(r"worker-5 +ok +runs +db-0 +healthy")
        running.type("bogus\ncut worker-9\ncut\nwatch never\n")
        running.until(r"bogus: no such command; there are help, hosts, .*quit")
        running.until(r"worker-9: no such host; there are worker-1, .*worker-5")
        running.until(r"it is: cut HOST; HOST is one of worker-1")
        running.until(r"never is no number of seconds")
        running.type("shell worker-3 hostname\nkill agent worker-3\nstatus\n")
        running.until(r"worker-3\n")
        running.until(r"The agent of worker-3 is killed")
        running.until(r"leads since")
        running.type("stop api\n")
        running.asks_until("hosts", r"worker-3 +no API +runs .*the control plane is out")
        running.type("start api\n")
        running.asks_until("hosts", r"worker-3 +ok +runs +healthy")
        running.type("cut worker-4\n")
        running.asks_until("hosts", r"worker-4 +cut off +held back")
        running.type("mend worker-4\n")
        running.asks_until("log worker-4", r"the last boot ended because no peer confirms")
        running.type("quit\n")
    assert running.process.returncode == 1, "orders were wrong"


def test_kubectl_and_a_script_work_on_a_real_control_plane_until_it_is_interrupted(tmp_path: Path) -> None:
    assert binaries()
    file = tmp_path / "mine.yaml"
    file.write_text(CONFIG_MAP)
    with playground() as running:
        running.type("kubectl get nodes\n")
        running.until(r"worker-5 +Ready")
        running.type(f"kubectl apply --server-side -f {file}\n")
        running.until(r"configmap/mine serverside-applied")
        running.type("condemn worker-4\n")
        running.until("Requested")
        running.asks_until("kubectl get events -A", r"node/worker-4 +Node worker-4: nothing is left to do")
        running.process.send_signal(signal.SIGINT)
        running.until("stopped; nothing is left behind")
    assert running.process.returncode == 1


def test_a_person_completes_words_interrupts_what_shows_and_leaves_with_the_end_of_input() -> None:
    outer, inner = pty.openpty()
    with playground("--embedded", inner=inner, outer=outer) as running:
        os.close(inner)
        running.until("playground> ")
        running.type("hel\t\n")
        running.until(r"kill agent HOST")
        running.type("cut worker-\t\t")
        running.until(r"worker-1 +worker-2")
        running.type("2\nhosts\n")
        running.until("worker-2 is cut off")
        running.until(r"worker-2 +cut off")
        running.type("watch\n")
        running.until(r"HOST")
        running.type("\n")
        running.until("playground> ")
        running.type("watch\n")
        running.until(r"HOST")
        running.type("\x03")
        running.until("playground> ")
        running.type("shell worker-3\n")
        running.until(r"A shell on worker-3; exit ends it")
        running.until(r"worker-3# ")
        running.type("echo this is $(hostname); sleep 100000\n")
        running.until(r"this is worker-3")
        running.type("\x03")
        running.until(r"worker-3# ")
        running.type("exit\n")
        running.until("playground> ")
        running.type("\x04")
    os.close(outer)
    assert running.process.returncode == 0


@pytest.mark.parametrize("arguments", [["--real"], ["hosts"]])
def test_an_argument_that_it_does_not_take_is_refused(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.demo.playground", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "usage: make playground" in done.stderr
