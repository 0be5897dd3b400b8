"""Agents of healthy hosts restarted and upgraded over and over, on a busy machine. By hand, or by .ci/nightly:

python -m tests.scenarios.restarts --count 1000
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import itertools
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pp_hostd.model.settings import Settings
from tests.harness.bed.cluster_bed import SETTINGS as SHORTEST
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.bed.host import Host
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.scenarios.stage import Stage, now

HOSTS = 6
SETTINGS = {
    **SHORTEST,
    "watchdog.timeout_seconds": Settings().watchdog.timeout_seconds,
    "agent.self_timeout_seconds": Settings().agent.self_timeout_seconds,
}
"""T and W are those by default: a start takes seconds on a busy machine, and some are struck before they can feed."""
WATCHDOG_SECONDS = Settings().watchdog.timeout_seconds
READ_SECONDS = SETTINGS["api.read_interval_seconds"] + SETTINGS["api.read_deadline_seconds"]
"""In this time an agent has read its machine: one that never lives so long gets no proof, and must not be fed."""
PATIENCE_SECONDS = 60.0
SIGNALS = (signal.SIGKILL, signal.SIGUSR1)
"""A crash, and what systemd sends to hand over to a successor."""


@contextlib.contextmanager
def busy_machine() -> Iterator[None]:
    """Something else wants a processor for itself."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as hog:
        try:
            yield
        finally:
            hog.kill()


class Lives(enum.Enum):
    """How long an agent lives before it is restarted."""

    UNTIL_STARTED = "it is killed before it has done anything"
    UNTIL_FED = "it has fed the watchdog, by the proof that its predecessor left"
    UNTIL_READ = "it has had the time for a proof of its own"


@dataclass
class _Target:
    host: Host
    struck_at: float = 0.0
    lives: Lives = Lives.UNTIL_READ

    def is_ripe(self) -> bool:
        events = self.host.record.events("down", "agent-started", "watchdog")
        assert events[-1]["kind"] != "down", f"{self.host.name} went down: {events[-2:]}, {self.host.journal()[-3:]}"
        lately = list(itertools.takewhile(lambda event: event["kind"] != "agent-started", reversed(events)))
        started_at = events[-len(lately) - 1]["at"]
        fed = [event["at"] for event in lately if event["event"] == "feed"]
        if started_at < self.struck_at:
            return False
        if self.lives is Lives.UNTIL_READ:
            return bool(fed) and now() > fed[-1] + READ_SECONDS
        return self.lives is Lives.UNTIL_STARTED or bool(fed)

    def strike(self, chance: random.Random) -> None:
        self.struck_at = now()
        self.host.signal_agent(chance.choice(SIGNALS))
        self.lives = chance.choice(list(Lives)) if self.lives is Lives.UNTIL_READ else Lives.UNTIL_READ


def restart(hosts: Sequence[Host], count: int, seed: int) -> None:
    """So many times in all, each as soon as the last one allows."""
    chance = random.Random(seed)
    targets = [_Target(host) for host in hosts]
    done = 0
    while done < count:
        ripe = eventually(lambda: [each for each in targets if each.is_ripe()], "an agent is up", PATIENCE_SECONDS)
        for target in ripe[: count - done]:
            target.strike(chance)
            done += 1
    for target in targets:
        target.lives = Lives.UNTIL_READ
    eventually(lambda: all(each.is_ripe() for each in targets), "all are up again", PATIENCE_SECONDS)


@dataclass(frozen=True)
class Measured:
    restarts: int
    seed: int
    took_seconds: float
    longest_gap_seconds: float
    """Without a feed, on any host."""

    def __str__(self) -> str:
        return (
            f"{self.restarts} restarts in {self.took_seconds:.0f} s, seed {self.seed}: every promise stood, "
            f"no watchdog fired or was closed, and none was unfed for more than {self.longest_gap_seconds:.2f} s"
        )


def restarted(count: int, seed: int) -> Measured:
    """Restart agents so many times, and see that nothing came of it."""
    with EmbeddedCluster.start() as cluster, ClusterBed.start(cluster, HOSTS, settings=SETTINGS) as bed:
        return _restarted(Stage(bed, SETTINGS), count, seed)


def _restarted(stage: Stage, count: int, seed: int) -> Measured:
    hosts = stage.hosts(HOSTS)
    versions = [stage.contents.node(host.name).resource_version for host in hosts]
    since_at = now()
    with busy_machine():
        restart(hosts, count, seed)
    took_seconds = now() - since_at
    for host in hosts:
        bad = [each for each in host.watchdog("fired", "close", "disabled", "magic") if each["at"] > since_at]
        assert host.is_up() and not bad, f"{host.name}: {bad}, {host.journal()[-3:]}"
    after = [stage.contents.node(host.name).resource_version for host in hosts]
    assert after == versions, "a promise was written again"
    eventually(lambda: all(map(stage.is_well, hosts)), "all are well")
    return Measured(count, seed, took_seconds, max(_longest_gap_seconds(host, since_at) for host in hosts))


def _longest_gap_seconds(host: Host, since_at: float) -> float:
    fed = [event["at"] for event in host.watchdog("feed") if event["at"] >= since_at]
    return float(max(later - earlier for earlier, later in zip(fed, fed[1:])))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="restarts in all (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    measured = restarted(arguments.count, arguments.seed)
    print(measured)
    return 0 if measured.longest_gap_seconds < WATCHDOG_SECONDS else 1


if __name__ == "__main__":
    sys.exit(main())
