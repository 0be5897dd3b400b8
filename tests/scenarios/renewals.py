"""Certificates that live for two minutes, on real agents, leaders and a real control plane. By hand, or by .ci/nightly:

python -m tests.scenarios.renewals --minutes 10

One host is off until its certificate has ended, and comes back when it is enrolled once more; the cluster's authority
rotates in between. Nobody may be reset, and nobody go unproven for longer than a renewal takes.
"""

from __future__ import annotations

import argparse
import time
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from pp_hostd.model.keys import AGENTS, LEADER_USER, LEADERS, NODE_USER
from pp_hostd.model.keys import NODES_GROUP as NODE_GROUP
from pp_hostd.model.settings import Settings
from tests.harness.bed.host import Host
from tests.harness.cluster import write_kubeconfig
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import eventually
from tests.scenarios.leading import LeaderStage, now

LIVES_SECONDS = 120
READ_AGAIN_SECONDS = 30.0
"""More than the daemons and the API server take to look at their files again."""
NEVER = float("inf")
RENEWED = "the client certificate is renewed"
DEFAULTS = Settings()
AS_INSTALLED: dict[str, Any] = {
    "agent__self_timeout_seconds": DEFAULTS.agent.self_timeout_seconds,
    "watchdog__timeout_seconds": DEFAULTS.watchdog.timeout_seconds,
    "api__read_interval_seconds": DEFAULTS.api.read_interval_seconds,
    "api__read_deadline_seconds": DEFAULTS.api.read_deadline_seconds,
    "api__retry_seconds": DEFAULTS.api.retry_seconds,
    "peers__rounds": DEFAULTS.peers.rounds,
    "peers__round_seconds": DEFAULTS.peers.round_seconds,
    "leader__lease_seconds": DEFAULTS.leader.lease_seconds,
}
"""A busy machine is no trouble for hosts with the settings that people have."""


@dataclass
class Watched:
    """How long each host has been without a proof of its own, at a time."""

    hosts: Sequence[Host]
    boots: dict[str, int] = field(default_factory=dict)
    since_at: dict[str, float] = field(default_factory=dict)
    longest_seconds: float = 0.0

    def look(self) -> None:
        for host in self.hosts:
            assert host.is_up(), f"{host.name} went down by {host.down()['how']}: {host.journal()[-5:]}"
            assert host.boots == self.boots.setdefault(host.name, host.boots), f"{host.name} was reset"
            if host.status_text() == "healthy: its machine is not condemned":
                self.since_at.pop(host.name, None)
            else:
                since_at = self.since_at.setdefault(host.name, now())
                self.longest_seconds = max(self.longest_seconds, now() - since_at)


class Renewals:
    """A bed whose hosts and leaders were enrolled a moment ago, in a cluster that signs for two minutes."""

    def __init__(self, cluster: RealCluster, stage: LeaderStage) -> None:
        self.cluster, self.stage = cluster, stage
        self.bundle = cluster.authority.certificate_pem
        for host in stage.bed.hosts.values():
            self.enrol(host)
            self._write(host.etc / "leader.kubeconfig", LEADER_USER, (LEADERS,))

    def enrol(self, host: Host) -> None:
        """As `pp-leader enroll` and a person do: a new certificate in its kubeconfig."""
        self._write(host.etc / "kubeconfig", NODE_USER + host.name, (AGENTS, NODE_GROUP))

    def _write(self, path: Path, user: str, groups: Sequence[str]) -> None:
        issued = self.cluster.authority.issue(user, groups, valid_seconds=LIVES_SECONDS, starts_seconds_ago=0)
        new = path.with_name("new")
        write_kubeconfig(new, self.stage.bed.api_url(1), self.bundle, certificate=issued)
        config = yaml.safe_load(new.read_text())
        config["clusters"][0]["cluster"]["tls-server-name"] = "localhost"
        new.write_text(yaml.safe_dump(config))
        new.rename(path)

    def rotate_authority(self) -> None:
        """As a cluster does: both are trusted everywhere before the new one signs anything."""
        self.bundle = self.cluster.rotate_authority()
        for host in self.stage.bed.hosts.values():
            for name in ("kubeconfig", "leader.kubeconfig"):
                path = host.etc / name
                config = yaml.safe_load(path.read_text())
                config["clusters"][0]["cluster"]["certificate-authority-data"] = b64encode(self.bundle).decode()
                path.with_name("new").write_text(yaml.safe_dump(config))
                path.with_name("new").rename(path)

    def use_new_authority(self) -> None:
        """It signs from now on, for the API server too."""
        self.cluster.run_signer(f"{LIVES_SECONDS}s")
        self.cluster.show_new_certificate()

    def renewals(self, host: Host) -> int:
        return sum(line.startswith(RENEWED) for line in host.journal())


def play(minutes: float, count: int) -> str:
    """Returns a summary of the play; an AssertionError or TimeoutError says what went wrong."""
    with RealCluster.start() as cluster:
        cluster.run_signer(f"{LIVES_SECONDS}s")
        with LeaderStage.on(cluster, count, **AS_INSTALLED) as stage:
            renewals = Renewals(cluster, stage)
            *steady, absent = stage.begin()
            watched, began_at = Watched(steady), now()
            absent.kill()
            ends_at, rotates_at = began_at + minutes * 60, began_at + minutes * 30
            returns_at = began_at + max(LIVES_SECONDS + 10, min(3 * LIVES_SECONDS, minutes * 36))
            uses_at = NEVER
            while now() < ends_at or absent not in watched.hosts:
                watched.look()
                if rotates_at < now():
                    rotates_at, uses_at = NEVER, now() + READ_AGAIN_SECONDS
                    renewals.rotate_authority()
                if uses_at < now():
                    uses_at = NEVER
                    renewals.use_new_authority()
                if returns_at < now():
                    returns_at = NEVER
                    come_back(renewals, absent)
                    watched.hosts = [*steady, absent]
                time.sleep(0.5)
            renewed = {host.name: renewals.renewals(host) for host in steady}
            least = int((now() - began_at) / LIVES_SECONDS)
            assert min(renewed.values()) >= least, f"fewer than {least} renewals: {renewed}"
            return (
                f"{count} agents, 2 leaders, {minutes:g} minutes: {sum(renewed.values())} renewals, nobody reset, "
                f"none without a proof of its own for more than {watched.longest_seconds:.1f} s; {absent.name} was "
                "held with an ended certificate and came back by its one command; the authority rotated"
            )


def come_back(renewals: Renewals, host: Host) -> None:
    """It boots with a certificate that has ended, says so, and is enrolled once more."""
    renewals.stage.bed.boot(host.name)
    command = f"pp-leader enroll {host.name}"
    eventually(
        lambda: any(command in line for line in host.journal("gate")), f"the console of {host.name} says {command}", 60
    )
    assert not host.kubelet_started()
    renewals.enrol(host)
    eventually(lambda: renewals.stage.is_well(host), f"{host.name} is well again", 60)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--hosts", type=int, default=12)
    arguments = parser.parse_args()
    print(play(arguments.minutes, arguments.hosts), flush=True)


if __name__ == "__main__":
    main()
