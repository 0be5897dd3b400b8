"""Debian's Prometheus, scraping what a test tells it to, and promtool."""

from __future__ import annotations

import contextlib
import json
import socket
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tests.harness.eventually import HANGS_SECONDS, eventually

CHECKOUT = Path(__file__).parents[2]
RULES = CHECKOUT / "packaging/prometheus/pp-hostd.rules.yml"
DASHBOARD = CHECKOUT / "packaging/prometheus/pp-hostd.dashboard.json"
SCRAPE_SECONDS = 2


def promtool(*arguments: str, stdin: str = "") -> str:
    """Returns the text that it printed; it must succeed."""
    run = subprocess.run(
        ["promtool", *arguments], input=stdin, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout + run.stderr


class Prometheus:
    """`on` starts one; its rules are those of the package."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    @classmethod
    @contextlib.contextmanager
    def on(cls, directory: Path, targets: Mapping[str, Mapping[str, str]]) -> Iterator[Prometheus]:
        """`targets` are the addresses of each job, by the name that is their `instance`."""
        directory.mkdir(parents=True, exist_ok=True)
        configuration = directory / "prometheus.yml"
        configuration.write_text(json.dumps(_configuration(targets)))
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        command = [
            "prometheus",
            f"--config.file={configuration}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address=127.0.0.1:{port}",
        ]
        with (directory / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            found = cls(port)
            eventually(found._is_ready, "Prometheus is ready", 60)
            yield found
        finally:
            process.kill()
            process.wait()

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The samples of an instant query."""
        found: list[dict[str, Any]] = self._get("/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
        return found

    def alerts(self) -> set[str]:
        """The names of the alerts that are pending or firing."""
        return {each["labels"]["alertname"] for each in self._get("/api/v1/alerts", "alerts")}

    def _get(self, path: str, part: str = "result") -> Any:
        try:
            with urllib.request.urlopen(self._url + path, timeout=HANGS_SECONDS) as reply:
                return json.load(reply)["data"][part]
        except urllib.error.HTTPError as error:
            raise AssertionError(error.read().decode()) from None

    def _is_ready(self) -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"{self._url}/-/ready", timeout=5) as reply:
            return bool(reply.status == 200)
        return False


def _configuration(targets: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    every = f"{SCRAPE_SECONDS}s"
    jobs = [
        {
            "job_name": job,
            "static_configs": [
                {"targets": [address], "labels": {"instance": name}} for name, address in of_job.items()
            ],
        }
        for job, of_job in targets.items()
    ]
    intervals = {"scrape_interval": every, "scrape_timeout": every, "evaluation_interval": every}
    return {"global": intervals, "rule_files": [str(RULES)], "scrape_configs": jobs}
