"""The throughput of the peer port on one core, and the time of its slowest answers, also among 1,000 slow strangers."""

from __future__ import annotations

import asyncio
import gc
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pp_hostd.agent.peer_server import PeerServer
from pp_hostd.agent.witness import ReadOutcome, Witness
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.machine import Machine
from pp_hostd.peers.message import Exchange, MachineReference, Question
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.http_port import HttpPort
from tests.bench.figure import Figure

CONNECTIONS, WARM, QUESTIONS, SLOW = 64, 5_000, 40_000, 1_000
KEYRING = Keyring((b"k" * 32,))


def peer_port() -> Iterator[Figure]:
    """The server has a core for itself, the clients are on the other; every question is fresh and signed."""
    cores = sorted(os.sched_getaffinity(0))
    _allow_many_files()
    with _server(cores[0]) as (server, port):
        os.sched_setaffinity(0, {cores[-1]})
        try:
            asyncio.run(_ask_all(port, WARM))
            warm_kb = _resident_kb(server)
            seconds, latencies = asyncio.run(_ask_all(port, QUESTIONS))
            yield Figure("signed questions answered by the peer port", QUESTIONS / seconds / 1000, "k/s", at_least=5)
            yield Figure(f"p99 of them, {CONNECTIONS} connections", _p99_ms(latencies), "ms", at_most=20)
            yield Figure(
                f"growth in {QUESTIONS:,} questions", (_resident_kb(server) - warm_kb) / 1024, "MB", at_most=0.5
            )
            _, latencies = asyncio.run(_among_strangers(port))
            yield Figure(f"p99 with {SLOW:,} slow strangers connected", _p99_ms(latencies), "ms", at_most=20)
            yield Figure("growth with them", (_resident_kb(server) - warm_kb) / 1024, "MB")
        finally:
            os.sched_setaffinity(0, cores)


@contextmanager
def _server(core: int) -> Iterator[tuple[int, int]]:
    command = [sys.executable, "-m", "tests.bench.peer_port", str(core)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        yield process.pid, int(process.stdout.readline())
        process.stdin.close()


class _Asker(asyncio.Protocol):
    """Asks one question after the other over one connection, until none are left."""

    def __init__(self, questions: Iterator[bytes], latencies: list[float]) -> None:
        self._questions, self._latencies = questions, latencies
        self._reply = b""
        self.done = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._reply += data
        head, _, body = self._reply.partition(b"\r\n\r\n")
        if len(body) < int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0] or 1):
            return
        assert body.startswith(b'{"v":1,"answer":"healthy"'), self._reply
        self._latencies.append(time.perf_counter() - self._asked)
        self._ask()

    def connection_lost(self, _: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(ConnectionError("the peer port closed the connection"))

    def _ask(self) -> None:
        self._reply, question = b"", next(self._questions, None)
        if question is None:
            self.done.set_result(None)
            self._transport.close()
            return
        self._asked = time.perf_counter()
        self._transport.write(question)


async def _ask_all(port: int, count: int) -> tuple[float, list[float]]:
    """How long all questions took together, and each of them."""
    loop = asyncio.get_running_loop()
    latencies: list[float] = []
    questions = iter([_question(number) for number in range(count)])
    begun = time.perf_counter()
    askers = [
        (await loop.create_connection(lambda: _Asker(questions, latencies), "127.0.0.1", port))[1].done
        for _ in range(CONNECTIONS)
    ]
    await asyncio.gather(*askers)
    return time.perf_counter() - begun, latencies


async def _among_strangers(port: int) -> tuple[float, list[float]]:
    strangers = [asyncio.create_task(_dawdle(port, number / SLOW)) for number in range(SLOW)]
    while _established(port) < SLOW:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    result = await _ask_all(port, QUESTIONS)
    for stranger in strangers:
        stranger.cancel()
    await asyncio.gather(*strangers, return_exceptions=True)
    return result


async def _dawdle(port: int, first_seconds: float) -> None:
    """A head that never ends, a few bytes at a time, on a new connection whenever the port has had enough."""
    await asyncio.sleep(first_seconds)
    while True:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            writer.write(b"GET / HTTP/1.1\r\n")
            while not writer.is_closing():
                await asyncio.sleep(1)
                writer.write(b"X: y\r\n")
        finally:
            writer.transport.abort()


def _established(port: int) -> int:
    rows = [line.split() for line in Path("/proc/self/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(f":{port:04X}") and row[3] == "01" for row in rows)


def _question(number: int) -> bytes:
    about = MachineReference("openshift-machine-api", f"worker-{number % 500}", "e8e0c0ea-6d3b-4f9b-9d4f-0d7a3c1f5b11")
    exchange = Exchange(Question(about, "worker-17"), "worker-42", os.urandom(16).hex())
    lines = [b"%b: %b" % header for header in [(b"host", b"127.0.0.1"), *exchange.headers(KEYRING)]]
    return b"\r\n".join([f"GET {about.path} HTTP/1.1".encode(), *lines, b"", b""])


def _p99_ms(latencies: list[float]) -> float:
    return 1000 * statistics.quantiles(latencies, n=100)[-1]


def _resident_kb(process: int) -> int:
    fields = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(fields["VmRSS"].split()[0])


def _allow_many_files() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


async def _read(about: MachineReference, _seconds: float) -> ReadOutcome:
    return Machine(about.namespace, about.name, about.uid, "1", NotRequested(0), None)


async def _serve() -> None:
    """The peer port on a free port of loopback, until standard input ends."""
    witness = Witness("bench")
    witness.listed()
    server = PeerServer("worker-42", KEYRING, witness, _read, time.monotonic, read_seconds=1.5, machines="openshift")
    http = HttpPort(server.respond)
    gc.freeze()  # as the daemon does
    print(await http.listen("127.0.0.1", 0), flush=True)
    ended = asyncio.Event()
    asyncio.get_running_loop().add_reader(sys.stdin, ended.set)
    await ended.wait()
    await http.close()


if __name__ == "__main__":
    os.sched_setaffinity(0, {int(sys.argv[1])})
    asyncio.run(_serve())
