"""A bed that scenarios share: each begins with as many hosts as it wants, all of them well."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pp_hostd.model.promise import AgentRecord, Armed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member, Roster
from tests.harness.bed.cluster_bed import SETTINGS, ClusterBed
from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.harness.cluster import Cluster, token_of, write_kubeconfig
from tests.harness.eventually import eventually
from tests.harness.pki import Issued

WATCHDOG_SECONDS = 6
"""More than the shortest: the machine that runs the tests may be busy, and here it is agents that reset hosts."""
SLOW_WATCHDOG_SECONDS = 20
"""Longer than a new agent takes to start, on however busy a machine."""
SELF_TIMEOUT_SECONDS = SETTINGS["agent.self_timeout_seconds"]
DEAD_SECONDS = SELF_TIMEOUT_SECONDS + 2 * WATCHDOG_SECONDS
"""T + 2W: nobody lives longer than this without a proof."""
LONG_SECONDS = 2 * SELF_TIMEOUT_SECONDS
"""A host whose watchdog is still fed after this time has found new proof."""
TOKEN_FILE = "/etc/pp-hostd/token"


def now() -> float:
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Stage:
    """`hosts` sets it; what a scenario breaks is mended for the next."""

    def __init__(self, bed: ClusterBed, settings: Mapping[str, Any]) -> None:
        self.bed, self.contents = bed, bed.contents
        self._settings = settings
        self._listed, self._version = list(bed.hosts), 1
        self._altered: set[str] = set()
        self._without_machine: set[str] = set()

    @classmethod
    @contextlib.contextmanager
    def on(cls, cluster: Cluster, hosts: int, machines: str = "node", **more: Any) -> Iterator[Stage]:
        """`more` are settings, by their name with `__` for the dot."""
        own = {key.replace("__", "."): value for key, value in more.items()}
        settings = {**SETTINGS, "watchdog.timeout_seconds": WATCHDOG_SECONDS, "api.machines": machines, **own}
        with ClusterBed.start(cluster, hosts, settings=settings) as bed:
            yield cls(bed, settings)

    def hosts(self, count: int, *, patient: int = 0, dead: int = 0, tokens: int = 0) -> list[Host]:
        """So many, each promised in this boot and its kubelet started. The watchdogs of the first, so many, leave a new
        agent the time to start; the last, so many, show tokens. In the roster are so many more that are off."""
        everyone = list(self.bed.hosts.values())
        chosen = everyone[:count]
        self.bed.heal()
        self.bed.set_api(Mode.PASS)
        patient_ones, with_tokens = chosen[:patient], chosen[count - tokens :]
        for host in everyone:
            changes = host in patient_ones or host in with_tokens or host.name in self._altered
            if host.is_up() and (host not in chosen or changes):
                host.kill()
        for host in chosen:
            self._mend(host)
        for host in patient_ones:
            self.configure(host, {"watchdog.timeout_seconds": SLOW_WATCHDOG_SECONDS})
        for host in with_tokens:
            self._use_token(host)
        self.list_in_roster(everyone[: count + dead])
        down = [host.name for host in chosen if not host.is_up()]
        if down:
            self.bed.boot(*down)
        eventually(lambda: all(map(self.is_well, chosen)), f"{count} hosts are well", 60)
        return chosen

    def _mend(self, host: Host) -> None:
        if host.name in self._without_machine:
            self.contents.make_machine(host.name)
            self._without_machine.discard(host.name)
            self._listed = []  # the roster names it by its uid
        self.contents.lift(host.name)
        if host.name in self._altered:
            self.bed.configure(host, self._settings)
            self.contents.write_kubeconfig(host.name, host.etc / "kubeconfig", self.bed.api_url(1))
        self._altered.discard(host.name)

    def list_in_roster(self, hosts: Iterable[Host]) -> None:
        """A new version of the roster, of these alone, unless they are in force already."""
        names = [host.name for host in hosts]
        if names != self._listed:
            self._listed, self._version = names, self._version + 1
            members = [self._member(self.bed.hosts[name]) for name in names]
            self.contents.write_roster(Roster.of(self._version, self._version, members))

    def _member(self, host: Host) -> Member:
        metadata = self.contents.machine(host.name)["metadata"]
        machine_key = f"{metadata['namespace']}/{host.name}" if "namespace" in metadata else None
        return Member(host.name, machine_key, host.address, metadata["uid"], since=self._version, until=None)

    # Changes of a scenario to a host; the next scenario finds the host mended.

    def alter(self, host: Host) -> Path:
        """Have it mended and booted again for the next scenario; its /etc/pp-hostd."""
        self._altered.add(host.name)
        return host.etc

    def delete_machine(self, host: Host) -> None:
        self._without_machine.add(host.name)
        self.contents.delete(self.contents.machines, host.name)

    def configure(self, host: Host, changes: Mapping[str, Any]) -> None:
        """Rewrite its settings, with these changed."""
        self.alter(host)
        self.bed.configure(host, {**self._settings, **changes})

    def write_token(self, host: Host, token: str) -> None:
        """Writes the token that the host shows from now on, if it uses tokens."""
        (host.etc / "token").write_text(token)

    def _use_token(self, host: Host) -> None:
        token = token_of("admin")
        self.write_token(host, token)
        path = self.write_credential(host, token=token)
        path.write_text(path.read_text().replace(f"token: {token}", f"tokenFile: {TOKEN_FILE}"))

    def write_credential(self, host: Host, *, certificate: Issued | None = None, token: str | None = None) -> Path:
        """Writes a kubeconfig with this credential, for the host from its next boot on; returns the file's path."""
        path, authority = self.alter(host) / "kubeconfig", self.contents.cluster.authority
        write_kubeconfig(path, self.bed.api_url(1), authority.certificate_pem, certificate=certificate, token=token)
        path.write_text(path.read_text().replace("    server:", "    tls-server-name: localhost\n    server:"))
        return path

    # The stage's view of a host.

    def record(self, host: Host) -> AgentRecord | Unreadable | None:
        """Returns the agent's record on the host's Node; None if there is none."""
        return self.contents.node(host.name).agent

    def is_well(self, host: Host) -> bool:
        record = self.record(host)
        promised = isinstance(record, Armed) and (record.boot, record.roster_version) == (host.boot_id, self._version)
        return promised and host.kubelet_started() and host.status_text().startswith("healthy: its machine")


def outlive(hosts: Sequence[Host], seconds: float) -> None:
    """See all of them up, and still feeding their watchdogs, so many seconds from now."""
    until_at = now() + seconds

    def fed() -> bool:
        for host in hosts:
            assert host.is_up(), f"{host.name} went down by {host.down()['how']}: {host.journal()[-3:]}"
        return all(host.watchdog("feed")[-1]["at"] > until_at for host in hosts)

    eventually(fed, f"all are fed after {seconds:g} s", seconds + DEAD_SECONDS)


def reset_within(host: Host, since_at: float, seconds: float = DEAD_SECONDS) -> float:
    """Wait until it has reset itself, in time and by its own hand; how long that took."""
    down = host.await_down()
    took_seconds: float = down["at"] - since_at
    assert down["how"] == "reboot", (down, host.journal()[-3:])
    assert took_seconds < seconds, (took_seconds, host.journal()[-3:])
    return took_seconds


def says(host: Host, words: str) -> str:
    """Wait until the host's journal of this boot holds these words; the line."""
    return eventually(
        lambda: next((line for line in host.journal() if words in line), ""), f"{host.name} says {words!r}"
    )


def shows(host: Host, words: str, within_seconds: float = 30) -> None:
    """Wait until systemd shows these words as the agent's status."""
    eventually(lambda: words in host.status_text(), f"{host.name} shows {words!r}", within_seconds)
