"""A daemon that runs, as the machine and its own metrics show it."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import requests


@dataclass(frozen=True)
class Running:
    """`port` is that of its metrics."""

    pid: int
    port: int

    def resident_mb(self) -> float:
        return self._kb("VmRSS") / 1024

    def peak_mb(self) -> float:
        """The most that was ever resident."""
        return self._kb("VmHWM") / 1024

    def cpu_seconds(self) -> float:
        """The processor time that it has had."""
        times = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")

    def threads(self) -> int:
        return int(self._status()["Threads"])

    def is_locked(self) -> bool:
        return self._kb("VmLck") > 0

    def requests(self) -> float:
        """How many it has made to the API; 0 before it serves its metrics."""
        try:
            text = requests.get(f"http://127.0.0.1:{self.port}/metrics", timeout=2).text
        except requests.ConnectionError:
            return 0
        return requests_in(text)

    def _kb(self, field: str) -> int:
        return int(self._status()[field].split()[0])

    def _status(self) -> dict[str, str]:
        return dict(line.split(":", 1) for line in Path(f"/proc/{self.pid}/status").read_text().splitlines())


def requests_in(metrics: str) -> float:
    """The requests to the API that a daemon's metrics count."""
    lines = [line for line in metrics.splitlines() if "_api_requests_total" in line and not line.startswith("#")]
    return sum(float(line.split()[-1]) for line in lines)
