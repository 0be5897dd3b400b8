"""Five hosts with agents and two leaders, and what becomes of them: told live. Exits 0 if all of it happened.

The hosts are namespaces with a kernel's view of their own: a network, process ids, a watchdog that really fires. So
nothing here can reset the machine that it runs on.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys

from tests.demo.api import Api
from tests.demo.expect import Untrue
from tests.demo.narrator import Form, Narrator
from tests.demo.story import HOSTS, LEADER_SETTINGS, Story
from tests.harness.bed.channel import OrderFailed
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.embedded import EmbeddedCluster

NEXT = """\
All of it happened. What to try next: `.venv/bin/pp-hostd check-config --config etc/pp-hostd.toml` prints the same story
as a timeline for your settings (the demo's are the shortest that are allowed), and `.venv/bin/pp-hostd --help` and
`.venv/bin/pp-leader --help` what else a person can see and order; docs/design.md has the rules that you saw being kept,
docs/agent.md how an agent lives; `make demo ARGS=--json` tells this to a program; `make test` does it to a real
kube-apiserver, with much more trouble."""
FAILED = """\
NOT all of it happened: {}
The lines above tell how far it came. A machine that has much else to do may be too slow for the demo's short timeouts:
try again when it is idle; `make suite ARGS=tests/scenarios` looks for the cause."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description="Show the main job on the embedded API, live.")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    form = Form.JSON if parser.parse_args().json else Form.COLOUR if sys.stdout.isatty() else Form.PLAIN
    narrator = Narrator(form)
    try:
        expect_namespaces()
        narrator.scene("An API of our own, and a network of hosts (a few seconds)")
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(EmbeddedCluster.start())
            bed = stack.enter_context(ClusterBed.start(cluster, HOSTS, settings=LEADER_SETTINGS))
            Story(bed, stack.enter_context(contextlib.closing(Api(cluster))), narrator).tell()
    except (Untrue, OrderFailed, OSError, RuntimeError) as error:  # whatever bed and cluster raise
        narrator.end(False, FAILED.format(error))
        return 1
    narrator.end(True, NEXT)
    return 0


def expect_namespaces() -> None:
    allowed = ["unshare", "--user", "--map-root-user", "--net", "true"]
    if shutil.which("unshare") is None or subprocess.run(allowed, capture_output=True, check=False).returncode:
        raise Untrue("this machine allows no user namespaces, which the hosts are made of (unshare -Urn)")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
