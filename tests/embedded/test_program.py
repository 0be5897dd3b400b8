"""`python -m pp_hostd.embedded`: it says when it is ready, ends when told, and explains why it cannot start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import CONFIG_MAPS
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import HANGS_SECONDS, eventually

FILES = ("cert", "key", "client-ca", "users")


def arguments(directory: Path) -> list[str]:
    return [sys.executable, "-m", "pp_hostd.embedded", *(f"--{name}={directory / name}" for name in FILES)]


@pytest.mark.parametrize("told", [signal.SIGTERM, signal.SIGINT])
async def test_it_serves_a_client_and_ends_when_told(told: signal.Signals) -> None:
    with EmbeddedCluster.start() as cluster:
        client = ApiClient(load(str(cluster.kubeconfig())), deadline_seconds=10)
        assert (await client.list(CONFIG_MAPS)).items == []
        client.close()
        os.kill(cluster.pid, told)
        eventually(lambda: cluster.supervisor.processes()["embedded"]["exit"] is not None, "it has ended")
        assert cluster.supervisor.processes()["embedded"]["exit"] == 0
        assert len(cluster.supervisor.log_tails()["embedded"].splitlines()) == 1


def test_closing_leaves_nothing_behind() -> None:
    with EmbeddedCluster.start() as cluster:
        pid, directory = cluster.pid, cluster.directory
    assert not directory.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("missing", FILES)
def test_a_file_that_is_missing_is_told_without_a_traceback(missing: str) -> None:
    with EmbeddedCluster.start() as cluster:
        (cluster.directory / missing).unlink()
        result = subprocess.run(
            arguments(cluster.directory), capture_output=True, text=True, timeout=HANGS_SECONDS, check=False
        )
    assert result.returncode == 1
    assert str(cluster.directory / missing) in result.stderr and "Traceback" not in result.stderr


def test_a_port_that_is_taken_is_told_without_a_traceback() -> None:
    with EmbeddedCluster.start() as cluster:
        port = cluster.server.rpartition(":")[2]
        command = [*arguments(cluster.directory), f"--port={port}"]
        result = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_SECONDS, check=False)
    assert result.returncode == 1
    assert port in result.stderr and "Traceback" not in result.stderr
