"""The figures on their way through node_exporter's textfile collector, as docs/metrics.md has it set up."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import urllib.request
from pathlib import Path

from tests.harness.bed.host import Host
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.metrics.prometheus import promtool
from tests.scenarios.stage import Stage

DIRECTORY = "/etc/pp-hostd"
"""Of the host; this machine sees it, too."""


def exported(directory: Path) -> str:
    """The figures that a node_exporter serves which reads this directory serves."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    collects = ["--collector.disable-defaults", "--collector.textfile", f"--collector.textfile.directory={directory}"]
    command = ["prometheus-node-exporter", f"--web.listen-address={address}", *collects]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def served() -> str:
        url = f"http://{address}/metrics"
        with contextlib.suppress(OSError), urllib.request.urlopen(url, timeout=HANGS_SECONDS) as reply:
            return str(reply.read().decode())
        return ""

    try:
        return eventually(served, "node_exporter serves")
    finally:
        process.kill()
        process.wait()


def written(host: Host) -> int:
    """The exit code of the command that the unit runs."""
    return host.run("pp-hostd", "metrics", "--textfile", DIRECTORY, check=False).returncode


def test_node_exporter_serves_the_figures_and_whether_the_daemon_answers() -> None:
    with EmbeddedCluster.start() as cluster, Stage.on(cluster, 3) as stage:
        host, *_ = stage.hosts(3)
        assert written(host) == 0
        text = exported(host.etc)
        assert "pp_hostd_protected 1\n" in text and "pp_hostd_up 1\n" in text
        assert "node_textfile_scrape_error 0\n" in text
        assert f'node_textfile_mtime_seconds{{file="{host.etc}/pp-hostd.prom"}}' in text
        assert promtool("check", "metrics", stdin=(host.etc / "pp-hostd.prom").read_text()) == ""
        assert [each.name for each in host.etc.glob("*.prom*")] == ["pp-hostd.prom"]
        host.stop_agent()
        eventually(lambda: written(host) == 3, "nobody answers any more")
        text = exported(host.etc)
        assert "pp_hostd_up 0\n" in text and "pp_hostd_protected" not in text
