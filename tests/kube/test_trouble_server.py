"""The troublesome server is no trouble to those who start it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.harness.eventually import eventually
from tests.harness.trouble import ROOT

STARTER = """
import sys
from tests.harness.trouble import TroubleServer
server = TroubleServer()
server.listen("good")
print(server.pid, flush=True)
sys.stdin.read()
"""


def test_it_ends_when_whoever_started_it_is_killed() -> None:
    command = [sys.executable, "-c", STARTER]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        server = Path("/proc", starter.stdout.readline().decode().strip())
        assert server.exists()
        starter.kill()
    eventually(lambda: not server.exists(), "the server has ended")
