"""Commands whose API is away, hangs or is none: they end in time, say so in words, and claim nothing."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from pp_hostd.leader.commands.waiting import Overdue, at_most
from tests.harness.cluster import write_kubeconfig
from tests.harness.eventually import HANGS_SECONDS
from tests.harness.misbehaviour import AFTER_TLS, BEFORE_TLS, Client, Over, behave
from tests.harness.trouble import TroubleServer
from tests.leader.desk import ENVIRONMENT, PP_LEADER

COMMANDS = [
    "install",
    "uninstall",
    "enroll one --out out",
    "enroll --leader --out out",
    "unenroll one --machines node",
    "rotate-key",
    "status",
    "history",
    "explain one --machines node",
    "condemn one --machines node --yes",
    "absolve one --machines node",
    "confirm-dead one --machines node --yes",
    "restore one --machines node",
    "pause --why lunch",
    "pause --why lunch --node one",
    "resume",
]
HANGS = ["black hole", "silent before TLS", "silent", "trickled head", "trickled body"]
NO_API = [
    "endless 1xx",
    "trickled TLS",
    "not JSON",
    "nothing",
    "no object",
    "deep nesting",
    "redirect",
    "not HTTP",
    "reset midway",
]


class Plain:
    """A port without TLS that misbehaves as AFTER_TLS says, whatever it is asked."""

    def __init__(self, behaviour: str) -> None:
        self._socket, self._steps = socket.create_server(("127.0.0.1", 0)), AFTER_TLS[behaviour]
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError, Over):
            sock, _ = self._socket.accept()
            with sock:
                sock.recv(65536)
                behave(Client(sock, ssl.create_default_context()), self._steps)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()


class Trouble:
    """Starts commands against servers that misbehave."""

    def __init__(self, server: TroubleServer, directory: Path) -> None:
        self._server, self._directory = server, directory
        self._closing = contextlib.ExitStack()

    def start(self, command: str, behaviour: str, stderr: int = subprocess.PIPE) -> subprocess.Popen[str]:
        path = self._directory / behaviour.replace(" ", "-")
        write_kubeconfig(path, self._url(behaviour), self._server.authority.certificate_pem, token="t")
        return subprocess.Popen(
            [str(PP_LEADER), *command.split(), "--kubeconfig", str(path)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            env=ENVIRONMENT,
            cwd=self._directory,
        )

    def _url(self, behaviour: str) -> str:
        if behaviour in BEFORE_TLS:
            return self._server.listen(behaviour).url
        return self._closing.enter_context(contextlib.closing(Plain(behaviour))).url

    def close(self) -> None:
        self._closing.close()


@pytest.fixture
def at(trouble: TroubleServer, tmp_path: Path) -> Iterator[Trouble]:
    with contextlib.closing(Trouble(trouble, tmp_path)) as at:
        yield at


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    with process:
        output, complaint = process.communicate(timeout=HANGS_SECONDS)
    assert "Traceback" not in complaint, complaint
    return process.returncode, output, complaint


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_kubernetes_api_is_taken_for_none_by_any_command(at: Trouble, command: str) -> None:
    code, output, complaint = ended(at.start(command, "not JSON"))
    assert (code, output) == (2, "")
    assert "is no Kubernetes API" in complaint
    assert "It works!" in complaint


def test_however_the_api_fails_a_command_ends_and_says_which_api_it_was(at: Trouble) -> None:
    started = {behaviour: at.start("status", behaviour) for behaviour in (*HANGS, *NO_API)}
    for behaviour, process in started.items():
        code, output, complaint = ended(process)
        assert (code, output) == (2, ""), behaviour
        assert complaint.startswith("pp-leader: "), behaviour
        assert ("has not answered within 15 s" in complaint) is (behaviour in HANGS), (behaviour, complaint)


def interrupted(at: Trouble) -> tuple[int, str]:
    """How a command ends, and what it said: a person interrupts it once it says that it waits."""
    outer, inner = pty.openpty()
    with at.start("status", "silent", stderr=inner) as process, open(outer, "rb", buffering=0) as terminal:
        os.close(inner)
        said = terminal.read(4096) or b""
        process.send_signal(signal.SIGINT)
        code = process.wait(timeout=HANGS_SECONDS)
        with contextlib.suppress(OSError):  # nothing more, and nobody at the other end
            said += terminal.read(4096) or b""
    return code, said.decode()


def test_who_sits_at_a_terminal_is_told_what_is_waited_for_and_can_end_it(at: Trouble) -> None:
    code, said = interrupted(at)
    assert said.startswith("Waiting for http://127.0.0.1:")
    assert (code, "has not answered" in said) == (130, False)


def test_a_time_that_ends_while_an_interrupt_unwinds_does_not_replace_it() -> None:
    with pytest.raises(KeyboardInterrupt), at_most(0, "nobody"):
        try:
            raise KeyboardInterrupt
        finally:
            signal.raise_signal(signal.SIGALRM)


@pytest.fixture
def line() -> Iterator[socket.socket]:
    """On which nobody speaks."""
    one, other = socket.socketpair()
    with one, other:
        yield one


def test_a_time_that_is_over_ends_what_hangs_and_gives_an_alarm_of_others_back(line: socket.socket) -> None:
    before, timer = signal.getsignal(signal.SIGALRM), signal.getitimer(signal.ITIMER_REAL)
    began = time.monotonic()
    with pytest.raises(Overdue), at_most(0.1, "a word"):
        line.recv(1)
    assert 0.1 <= time.monotonic() - began < 30
    assert signal.getsignal(signal.SIGALRM) is before
    assert (signal.getitimer(signal.ITIMER_REAL)[0] > 0) is (timer[0] > 0)


@pytest.mark.parametrize("wait", ["nan", "inf", "-1", "soon", "86401"])
def test_a_wait_without_an_end_is_refused(wait: str) -> None:
    command = [str(PP_LEADER), "enroll", "one", f"--wait={wait}"]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=HANGS_SECONDS, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{wait!a} is no number of seconds from 0 to 86400" in done.stderr


@pytest.mark.parametrize("server", ["127.0.0.1", "''", "ftp://127.0.0.1"])
def test_a_server_that_is_no_url_is_refused(tmp_path: Path, server: str) -> None:
    path = write_kubeconfig(tmp_path / "kubeconfig", "SERVER", b"", token="t")
    path.write_text(path.read_text().replace("SERVER", server))
    command = [str(PP_LEADER), "status", "--kubeconfig", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=HANGS_SECONDS, check=False)
    assert (done.returncode, done.stderr.count("its server is ")) == (2, 1)
    assert "Warning" not in done.stderr
