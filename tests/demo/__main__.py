"""Five hosts with agents and two leaders, and what happens to them: told live. Exits 0 if all of it happened.

The demo begins again with longer times if not all of it happened because this machine stood still.

The hosts are namespaces with a kernel's view of their own: a network, process ids, a watchdog that really fires. So
nothing here can reset the machine that it runs on.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import time
from typing import Callable

from tests.demo.api import Api
from tests.demo.expect import Untrue
from tests.demo.live import HOSTS, Live
from tests.demo.narrator import Form, Narrator, Role
from tests.demo.promises import Promise
from tests.demo.story import REFUGE, VICTIM, Story
from tests.demo.times import Times, Verdict, chosen_times, verdict_on
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.embedded import EmbeddedCluster
from tests.harness.stalls import Watch, Withheld

KEPT = """\
Next: `make playground` gives you these hosts to break yourself; `make demo ARGS=-v` shows every message of agents and
leaders; docs/design.md has the rules that you saw.
All promises were kept."""
FAULT = """\
NOT all promises were kept: {error}
The lines above tell how far it came. This machine is not the cause: these times bear a stall of {bearable:.1f} s, and
it {withheld}. `make demo ARGS=-v` shows every message; `make suite ARGS=tests/scenarios` looks for the cause.
The demo failed."""
TOO_BUSY = """\
NOT all promises were kept: {error}
This machine is too busy for the demo, which began {runs} times. In the last run the machine
{withheld}. Try again when it has less to do.
The demo failed: this machine is too busy."""
ENDS = {Verdict.HAPPENED: KEPT, Verdict.FAULT: FAULT, Verdict.TOO_BUSY: TOO_BUSY}
MEASURED_SECONDS = 1.5


INTRODUCTION = (
    "pp-hostd: 5 hosts that really reset themselves (namespaces), and a Kubernetes API in memory. About a minute."
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="make demo", description="Show the main job on the embedded API, live.")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--json", action="store_true", help="one JSON object per line")
    forms.add_argument("-v", "--verbose", action="store_true", help="every message of agents, leaders and the cluster")
    chosen = parser.parse_args()
    narrator = Narrator(Form.JSON if chosen.json else Form.VERBOSE if chosen.verbose else Form.STORY)
    with contextlib.closing(narrator), contextlib.closing(Watch()) as watch:
        narrator.scene(INTRODUCTION)
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
    line = f"A host that neither the API nor another host confirms is dead within {times.dead_seconds:g} s."
    measured = {"machine": str(withheld), "stall_seconds": withheld.stall_seconds, "share": withheld.share}
    narrator.say(Role.DEMO, "demo", line, run=run, measured=measured, times=times.settings)


def error_of_run(narrator: Narrator, times: Times) -> str | None:
    """Returns None if all of it happened. A machine that stands still can make any call here fail."""
    promises: list[Promise] = []
    try:
        expect_namespaces()
        with contextlib.ExitStack() as stack:
            cluster = stack.enter_context(EmbeddedCluster.start())
            bed = stack.enter_context(ClusterBed.start(cluster, HOSTS, settings=times.settings))
            api = stack.enter_context(contextlib.closing(Api(cluster)))
            story = Story(Live(bed, api, VICTIM, REFUGE), narrator, times)
            promises = story.promises
            story.tell()
    except BrokenPipeError:
        raise
    except Exception as error:
        return f"{type(error).__name__}: {error}" if not isinstance(error, Untrue) else str(error)
    finally:
        if promises:
            narrator.promises(promises)
    return None


def expect_namespaces() -> None:
    allowed = ["unshare", "--user", "--map-root-user", "--net", "true"]
    if shutil.which("unshare") is None or subprocess.run(allowed, capture_output=True, check=False).returncode:
        raise Untrue("this machine allows no user namespaces, which the hosts are made of (unshare -Urn)")


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; nothing is left behind")
    except BrokenPipeError:  # whoever read has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
