"""/metrics for Prometheus and /healthz for probes, on a listener of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Callable, NamedTuple

from pp_hostd.service.http_port import Reply, Request
from pp_hostd.service.metric import Metric, render

METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Health(NamedTuple):
    """Whether the daemon does its work, and the sentence that says so."""

    ok: bool
    sentence: str


class MetricsServer:
    """`respond` is what the listener does with a request."""

    def __init__(self, metrics: Callable[[], Iterable[Metric]], health: Callable[[], Health]) -> None:
        self._metrics = metrics
        self._health = health

    async def respond(self, request: Request) -> Reply:
        if request.method != b"GET":
            return Reply(405, b"only GET is answered here\n")
        if request.target == b"/metrics":
            return Reply(200, render(self._metrics()).encode(), METRICS_TYPE)
        if request.target == b"/healthz":
            health = self._health()
            return Reply(200 if health.ok else 503, f"{health.sentence}\n".encode())
        return Reply(404, b"there are /metrics and /healthz\n")
