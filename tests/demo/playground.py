"""`make playground`: the demo's cluster, for a person or a script to break. Nothing of it is left at the end."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from pp_hostd.errors import UserError
from tests.demo.__main__ import MEASURED_SECONDS, expect_namespaces
from tests.demo.api import Api
from tests.demo.commands import Commands, Quit, Wrong
from tests.demo.expect import Untrue
from tests.demo.live import HOSTS, Live
from tests.demo.story import REFUGE, VICTIM
from tests.demo.times import Times, chosen_times
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.build import CONTROL_PLANE, binaries, is_built
from tests.harness.cluster import Cluster
from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.harness.stalls import Watch

PROMPT = "playground> "
LEAST_FOLD = 1.5
"""A person leaves the hosts alone for hours, so their times bear more than the demo's."""
LIVE_SECONDS = 0.1
REAL = "a real Kubernetes control plane"
EMBEDDED = "an API in memory (`make controlplane` builds a real one, which is used from then on)"
GREETING = """\
{hosts} hosts with agents, 2 leaders, a NodeHealthCheck and a database with a volume, on {api}.
A host that neither the API nor another host confirms is dead within {dead:g} s. In another terminal:

  export KUBECONFIG={kubeconfig}
  {kubectl} get nodes

Try `cut worker-5` and `watch`; `help` lists the commands; `quit`, Ctrl-C or Ctrl-D end everything."""


class Background:
    """Lets the cluster go on beside the person; its lock is taken for each order."""

    def __init__(self, live: Live) -> None:
        self.lock = threading.Lock()
        self._live, self._ended = live, threading.Event()
        self._trouble = ""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def trouble(self) -> str:
        """The last thing that went wrong; empty if nothing has since it was asked."""
        trouble, self._trouble = self._trouble, ""
        return trouble

    def close(self) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ended.wait(LIVE_SECONDS):
            try:
                with self.lock:
                    self._live.live()
            except Exception as error:
                self._trouble = f"{type(error).__name__}: {error}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="make playground", description=__doc__)
    parser.add_argument("--embedded", action="store_true", help="the API in memory, also where a real one is built")
    real = is_built(CONTROL_PLANE) and not parser.parse_args().embedded
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _end)
    expect_namespaces()
    _complain("Starting (a few seconds)")
    with contextlib.ExitStack() as stack:
        stack.callback(_ignore_interrupts)  # a second Ctrl-C must not stop the clearing away
        times = _measured()
        cluster: Cluster = stack.enter_context(RealCluster.start() if real else EmbeddedCluster.start(controllers=True))
        settings = {**times.settings, "leader.resets_per_hour": "1000"}
        bed = stack.enter_context(ClusterBed.start(cluster, HOSTS, settings=settings))
        api = stack.enter_context(contextlib.closing(Api(cluster)))
        live = Live(bed, api, VICTIM, REFUGE)
        live.begin()
        background = stack.enter_context(contextlib.closing(Background(live)))
        _await_start(live, background)
        kubeconfig, kubectl = cluster.kubeconfig(), _kubectl()
        facts = {"api": REAL if real else EMBEDDED, "dead": times.dead_seconds, "kubectl": kubectl or "kubectl"}
        _say(GREETING.format(hosts=HOSTS, kubeconfig=kubeconfig, **facts))
        return _serve(Commands(live, background.lock, kubeconfig, kubectl), background)


def _await_start(live: Live, background: Background) -> None:
    def ready() -> bool:
        with background.lock:
            return live.led() and all(host.kubelet_started() for host in live.hosts.values())

    eventually(ready, "all hosts are armed, and a leader leads", HANGS_SECONDS)
    with background.lock:
        live.create_check()
        live.house()
    eventually(lambda: live.workload.running_on() == [VICTIM], "the database runs", HANGS_SECONDS)


def _serve(commands: Commands, background: Background) -> int:
    failed = False
    for line in _lines(commands):
        try:
            commands.run(line)
        except Quit:
            break
        except (Wrong, UserError) as error:
            failed = True
            _complain(str(error))
        trouble = background.trouble()
        if trouble:
            _complain(f"beside it went wrong: {trouble}")
    return int(failed)


def _lines(commands: Commands) -> Iterator[str]:
    """The lines that a person types, with completion, or that a script sends."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        yield from sys.stdin
        return
    import readline  # here alone: it takes the terminal as it is imported

    readline.set_completer_delims(" ")
    readline.set_completer(lambda text, number: commands.completions(readline.get_line_buffer(), text)[number])
    readline.parse_and_bind("tab: complete")
    with contextlib.suppress(EOFError):
        while True:
            yield input(PROMPT)


def _measured() -> Times:
    with contextlib.closing(Watch()) as watch:
        time.sleep(MEASURED_SECONDS)
        return chosen_times(watch.withheld().strain_seconds, LEAST_FOLD)


def _kubectl() -> str | None:
    """The one that is installed, or the one that was built with the control plane."""
    if is_built(CONTROL_PLANE):
        built: Path = binaries() / "kubectl"
        return shutil.which("kubectl") or str(built)
    return shutil.which("kubectl")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def _end(*_: object) -> None:
    sys.exit(143)


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Untrue as error:
        sys.exit(f"the playground cannot start: {error}")
    except KeyboardInterrupt:
        sys.exit("\nstopped; nothing is left behind")
    except BrokenPipeError:  # whoever read has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
