"""The time that the client adds to a read on a kept connection, beyond the time of the server and the wire."""

from __future__ import annotations

import asyncio
import socket
import ssl
import statistics
import time
from collections.abc import Iterator

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.credentials import Credentials
from pp_hostd.kube.kubeconfig import Kubeconfig, load
from pp_hostd.kube.resources import NODES
from tests.bench.figure import Figure
from tests.bench.memory import make_node
from tests.harness.embedded import EmbeddedCluster

ROUNDS = 20
GETS = 50


def get_overhead() -> Iterator[Figure]:
    """The same GET by the client and by a bare blocking TLS socket, in turns, so that noise meets both alike."""
    with EmbeddedCluster.start() as cluster:
        path = str(cluster.kubeconfig())
        asyncio.run(make_node(path))
        kubeconfig = load(path)
        bare, ours = asyncio.run(_measure(kubeconfig))
    yield Figure("GET by a bare TLS socket, median", 1000 * bare, "ms")
    yield Figure("GET by the client beyond that, median", 1000 * (ours - bare), "ms", at_most=1)


async def _measure(kubeconfig: Kubeconfig) -> tuple[float, float]:
    bare: list[float] = []
    ours: list[float] = []
    api = ApiClient(kubeconfig, deadline_seconds=10)
    endpoint = kubeconfig.endpoints[0]
    context = Credentials(kubeconfig).current().context
    request = f"GET {NODES.path(name='bench')} HTTP/1.1\r\nHost: {endpoint.authority}\r\n\r\n".encode()
    with socket.create_connection((endpoint.host, endpoint.port)) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(plain, server_hostname=endpoint.host) as tls:
            for _ in range(ROUNDS):
                for _ in range(GETS):
                    bare.append(_bare_get(tls, request))
                for _ in range(GETS):
                    begun = time.perf_counter()
                    await api.get(NODES, "bench")
                    ours.append(time.perf_counter() - begun)
    api.close()
    return statistics.median(bare), statistics.median(ours)


def _bare_get(tls: ssl.SSLSocket, request: bytes) -> float:
    """Send the request and read until the body is as long as announced."""
    begun = time.perf_counter()
    tls.sendall(request)
    reply = tls.recv(65536)
    while b"\r\n\r\n" not in reply:
        reply += tls.recv(65536)
    head, body = reply.split(b"\r\n\r\n", 1)
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += tls.recv(65536)
    return time.perf_counter() - begun
