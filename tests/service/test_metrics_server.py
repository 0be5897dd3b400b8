"""/metrics and /healthz as a scraper and a probe see them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pp_hostd.service.http_port import HttpPort
from pp_hostd.service.metric import Metric, render
from pp_hostd.service.metrics_server import Health, MetricsServer
from tests.peers.talk import say

METRICS = [
    Metric("armed", "Whether the watchdog is armed.", "gauge", [({}, 1)]),
    Metric("answers_total", "Answers.", "counter", [({"answer": "healthy", "by": "x"}, 2), ({"answer": "silence"}, 0)]),
]


@asynccontextmanager
async def serving(health: Health = Health(True, "healthy")) -> AsyncIterator[int]:  # noqa: B008
    http = HttpPort(MetricsServer(lambda: METRICS, lambda: health).respond)
    try:
        yield await http.listen("127.0.0.1", 0)
    finally:
        await http.close()


async def get(number: int, path: str, method: str = "GET") -> tuple[int, bytes, str]:
    """Status, head and body."""
    reply = await say(number, f"{method} {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
    head, _, body = reply.partition(b"\r\n\r\n")
    return int(reply[9:12]), head, body.decode()


async def test_metrics_are_prometheus_text() -> None:
    async with serving() as number:
        status, head, body = await get(number, "/metrics")
    assert status == 200 and b"Content-Type: text/plain; version=0.0.4" in head
    assert body.splitlines() == [
        "# HELP armed Whether the watchdog is armed.",
        "# TYPE armed gauge",
        "armed 1",
        "# HELP answers_total Answers.",
        "# TYPE answers_total counter",
        'answers_total{answer="healthy",by="x"} 2',
        'answers_total{answer="silence"} 0',
    ]


def test_labels_and_help_are_escaped() -> None:
    text = render([Metric("m", "one\ntwo \\", "gauge", [({"why": 'a "b"\n\\'}, 0.5)])])
    assert text == '# HELP m one\\ntwo \\\\\n# TYPE m gauge\nm{why="a \\"b\\"\\n\\\\"} 0.5\n'


@pytest.mark.parametrize(("ok", "expected"), [(True, 200), (False, 503)])
async def test_healthz_says_whether_and_why(ok: bool, expected: int) -> None:
    async with serving(Health(ok, "the reason")) as number:
        status, _, body = await get(number, "/healthz")
    assert (status, body) == (expected, "the reason\n")


async def test_nothing_else_is_served() -> None:
    async with serving() as number:
        assert (await get(number, "/"))[0] == 404
        assert (await get(number, "/metrics", "POST"))[0] == 405
