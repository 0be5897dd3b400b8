"""Five hosts with agents and two leaders, and what happens to them: told live. Exits 0 if all of it happened.

The demo begins again with longer times if not all of it happened because this machine stood still.

The hosts are namespaces with a kernel's view of their own: a network, process ids, a watchdog that really fires. So
nothing here can reset the machine that it runs on.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import shutil
import subprocess
import sys
import time
from typing import Callable

from tests.demo.api import Api
from tests.demo.expect import Untrue
from tests.demo.narrator import Form, Narrator, Role
from tests.demo.story import HOSTS, Story
from tests.demo.times import Times, Verdict, chosen_times, verdict_on
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.embedded import EmbeddedCluster
from tests.harness.stalls import Watch, Withheld

NEXT = """\
All of it happened. What to try next: `.venv/bin/pp-hostd check-config --config etc/pp-hostd.toml` prints the same story
as a timeline for your settings (the demo's are much shorter), and `.venv/bin/pp-hostd --help` and
`.venv/bin/pp-leader --help` what else a person can see and order; docs/design.md has the rules that you saw being kept,
docs/agent.md how an agent lives; `make demo ARGS=--json` tells this to a program; `make test` does it to a real
kube-apiserver, with much more trouble."""
FAULT = """\
NOT all of it happened: {error}
The lines above tell how far it came. This machine is not the cause: these times bear a stall of {bearable:.1f} s, and
it {withheld}. `make suite ARGS=tests/scenarios` looks for the cause."""
TOO_BUSY = """\
NOT all of it happened: {error}
This machine is too busy for the demo, which began {runs} times. In the last run the machine
{withheld}. Try again when it has less to do."""
ENDS = {Verdict.HAPPENED: NEXT, Verdict.FAULT: FAULT, Verdict.TOO_BUSY: TOO_BUSY}
MEASURED_SECONDS = 1.5


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description="Show the main job on the embedded API, live.")
    parser.add_argument("--json", action="store_true", help="one JSON object per line")
    form = Form.JSON if parser.parse_args().json else Form.COLOUR if sys.stdout.isatty() else Form.PLAIN
    narrator = Narrator(form)
    with contextlib.closing(Watch()) as watch:
        narrator.scene(f"The demo measures for {MEASURED_SECONDS:g} s how long this machine stands still")
        time.sleep(MEASURED_SECONDS)
        return 0 if tell(narrator, watch, error_of_run) is Verdict.HAPPENED else 1


def tell(narrator: Narrator, watch: Watch, error_of_run: Callable[[Narrator, Times], str | None]) -> Verdict:
    """Run with times that the watch's measure asks for, and again with longer ones if a stall disturbed the run."""
    withheld, least_fold = watch.withheld(), 1.0
    for run in itertools.count(1):
        times = chosen_times(withheld.strain_seconds, least_fold)
        say_times(narrator, withheld, times, run)
        watch.restart()
        error = error_of_run(narrator, times)
        withheld, least_fold = watch.withheld(), 2 * times.fold
        verdict = verdict_on(error is None, withheld.strain_seconds, times, run)
        if verdict is not Verdict.REPEAT:
            break
        line = f"NOT all of it happened: {error}. This machine was too busy for these times: the demo begins again."
        narrator.say(Role.DEMO, "demo", line, repeats_after=run)
    words = ENDS[verdict].format(error=error, withheld=withheld, bearable=times.bearable_seconds, runs=run)
    narrator.end(verdict is Verdict.HAPPENED, words)
    return verdict


def say_times(narrator: Narrator, withheld: Withheld, times: Times, run: int) -> None:
    line = f"This machine {withheld}: hosts reset after T = {times.self_timeout_seconds:g} s without proof."
    measured = {"stall_seconds": withheld.stall_seconds, "share": withheld.share}
    narrator.say(Role.DEMO, "demo", line, run=run, measured=measured, times=times.settings)


def error_of_run(narrator: Narrator, times: Times) -> str | None:
    """Returns None if all of it happened. A machine that stands still can make any call here fail."""
    try:
        expect_namespaces()
        narrator.scene("An API of our own, and a network of hosts (a few seconds)")
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(EmbeddedCluster.start())
            bed = stack.enter_context(ClusterBed.start(cluster, HOSTS, settings=times.settings))
            Story(bed, stack.enter_context(contextlib.closing(Api(cluster))), narrator, times).tell()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return None


def expect_namespaces() -> None:
    allowed = ["unshare", "--user", "--map-root-user", "--net", "true"]
    if shutil.which("unshare") is None or subprocess.run(allowed, capture_output=True, check=False).returncode:
        raise Untrue("this machine allows no user namespaces, which the hosts are made of (unshare -Urn)")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
