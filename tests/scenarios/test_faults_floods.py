"""Hostile clients on the peer port never delay a feed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tests.harness.bed.host import Host
from tests.scenarios.stage import LONG_SECONDS, WATCHDOG_SECONDS, Stage, now, outlive

LORISES = 500
LORIS = """
import socket, sys, time
address, count = sys.argv[1], int(sys.argv[2])
def connected():
    client = socket.create_connection((address, 9478), 30)
    client.sendall(b"GET /v1/node/worker-1?uid=1 HTTP/1.1\\r\\n")
    return client
clients = [connected() for _ in range(count)]
print(len(clients), "lorises", flush=True)
while True:
    for number, client in enumerate(clients):
        try:
            client.sendall(b"X: y\\r\\n")
        except OSError:  # it was thrown out: it comes again
            client.close()
            clients[number] = connected()
    time.sleep(1)
"""
GARBAGE = """
import os, socket, sys
print("garbage", flush=True)
noise = os.urandom(1 << 16)
while True:
    try:
        with socket.create_connection((sys.argv[1], 9478), 30) as client:
            client.sendall(noise)
            client.recv(100)
    except OSError:  # it is thrown out in the middle of it
        pass
"""


@contextmanager
def attacks(attacker: Host, source: str, *arguments: str) -> Iterator[None]:
    """That program runs there, from its first word on."""
    # Other hosts have other processors: it must not win because it takes this machine's.
    command = attacker.command("nice", "-n", "19", sys.executable, "-c", source, *arguments)
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stderr is not None
        try:
            assert program.stdout.readline(), program.stderr.read()
            yield
            assert program.poll() is None, program.stderr.read()
        finally:
            program.kill()


def test_floods_and_slow_lorises_on_its_peer_port_delay_no_feed_of_a_host(stage: Stage) -> None:
    flooded, attacker, other = stage.hosts(3)
    began_at = now()
    with attacks(attacker, LORIS, flooded.address, str(LORISES)), attacks(other, GARBAGE, flooded.address):
        outlive([flooded], LONG_SECONDS)
    feeds_at = [began_at, *(event["at"] for event in flooded.watchdog("feed") if event["at"] > began_at)]
    apart_seconds = [later - earlier for earlier, later in zip(feeds_at, feeds_at[1:])]
    assert max(apart_seconds) < WATCHDOG_SECONDS / 2
