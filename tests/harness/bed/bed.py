"""The bed as a test sees it: hosts, the network between them, and the API as they find it."""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from tests.harness.bed.channel import OrderFailed, ask
from tests.harness.bed.host import Design, Host
from tests.harness.bed.relay import Mode
from tests.harness.bed.wires import API_PORT, addresses_of, hardware_address
from tests.harness.eventually import eventually
from tests.harness.supervise import Supervisor

REPOSITORY = Path(__file__).parents[3]
FIRST_HOST = 10
API = "api"
"""All API servers, where a host's name is expected."""

SomeBed = TypeVar("SomeBed", bound="Bed")


class Bed:
    """A network with hosts that are not yet booted, in front of whatever listens on that port of 127.0.0.1."""

    def __init__(
        self, names: Sequence[str], upstream_port: int, *, api_servers: int = 1, design: Design | None = None
    ) -> None:
        self.supervisor = Supervisor()
        try:
            self.api_servers = range(1, api_servers + 1)
            self.upstream_port = upstream_port
            self._start(upstream_port)
            self._lost: set[tuple[str, str]] = set()
            numbers = itertools.count(FIRST_HOST)
            self.hosts = {name: self._add(name, next(numbers), design or Design()) for name in names}
        except BaseException:
            self.supervisor.close()
            raise
        self._apply_losses(API)

    def _start(self, upstream_port: int) -> None:
        directory = self.supervisor.directory
        program = [sys.executable, "-m", "tests.harness.bed.switch", str(directory)]
        arguments = [str(upstream_port), str(len(self.api_servers))]
        isolated = ["unshare", "--user", "--map-root-user", "--mount", "env", f"PYTHONPATH={REPOSITORY}"]
        self.supervisor.run("bed", [*isolated, *program, *arguments])
        eventually(self._is_ready, "the bed is ready")

    def _is_ready(self) -> bool:
        if self.supervisor.processes()["bed"]["exit"] is not None:
            raise ChildProcessError(f"the bed ended: {self.supervisor.log_tails()['bed']}")
        return all((self.supervisor.directory / name).exists() for name in ("switch", "relay"))

    def _add(self, name: str, number: int, design: Design) -> Host:
        host = Host(name, number, self.supervisor.directory / name, dataclasses.replace(design))
        self._order("add", name)
        return host

    # Power.

    def boot(self, *names: str) -> None:
        """Boot these hosts, or all; returns when their process 1 has started the agent."""
        boots = []
        for name in names or self.hosts:
            host = self.hosts[name]
            assert not host.is_up(), f"{name} is up"
            boots.append({**host.next_boot(), "neighbours": self._neighbours(name), "lost": self._lost_to(name)})
        try:
            self._order("boot", boots)
        except OrderFailed as error:
            raise OrderFailed(f"{error}\n{self.supervisor.log_tails(30)['bed']}") from None
        for boot in boots:
            eventually(self.hosts[boot["name"]].is_up, f"{boot['name']} is up")

    # The network. It loses packets without a word, in one direction; a host that boots finds the network as it is.

    def cut_pairs(self, *pairs: tuple[str, str]) -> None:
        """Lose all packets from the first to the second of each pair: names of hosts, or API."""
        self._lost.update(pairs)
        self._apply_losses(*{source for source, _ in pairs})

    def cut(self, *names: str) -> None:
        """Lose all packets between these hosts and everyone else, the API servers too; not those among them."""
        others = [other for other in (*self.hosts, API) if other not in names]
        self.cut_pairs(*(pair for name in names for other in others for pair in ((name, other), (other, name))))

    def heal(self) -> None:
        """Lose nothing any more."""
        sources = {source for source, _ in self._lost}
        self._lost.clear()
        self._apply_losses(*sources)

    def set_carrier(self, name: str, up: bool) -> None:
        """Pull a host's cable, or put it back."""
        self._order("set_carrier", self.hosts[name].number, up)

    # The API.

    def set_api(self, mode: Mode, hosts: Iterable[str] = (), servers: Iterable[int] = ()) -> None:
        """Sets the mode that these hosts (or all) find at these API servers (or all; they count from 1)."""
        numbers = [self.hosts[name].number for name in hosts or self.hosts]
        ask(self.supervisor.directory / "relay", "set_mode", numbers, list(servers or self.api_servers), mode.value)

    def divert_api(self, port: int, hosts: Iterable[str]) -> None:
        """Lead these hosts to what listens on that port of 127.0.0.1; `upstream_port` leads them back."""
        numbers = [self.hosts[name].number for name in hosts]
        ask(self.supervisor.directory / "relay", "divert", numbers, list(self.api_servers), port)

    def api_url(self, server: int) -> str:
        return f"https://{addresses_of(server)[0]}:{API_PORT}"

    def close(self) -> None:
        self.supervisor.close()

    def __enter__(self: SomeBed) -> SomeBed:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _order(self, command: str, *arguments: Any) -> None:
        ask(self.supervisor.directory / "switch", command, *arguments)

    def _apply_losses(self, *sources: str) -> None:
        for source in sources:
            if source == API:
                self._order("set_neighbours", self._neighbours(API), self._lost_to(API))
            elif self.hosts[source].is_up():
                self._apply_losses_to(self.hosts[source])

    def _apply_losses_to(self, host: Host) -> None:
        try:
            host.order("set_neighbours", self._lost_to(host.name))
        except ConnectionError:
            eventually(lambda: not host.is_up(), f"{host.name}, which hears nothing, is down")

    def _addresses(self, name: str) -> list[str]:
        numbers = self.api_servers if name == API else [self.hosts[name].number]
        return [address for number in numbers for address in addresses_of(number)]

    def _lost_to(self, source: str) -> list[str]:
        return [address for each, target in self._lost if each == source for address in self._addresses(target)]

    def _neighbours(self, name: str) -> dict[str, str]:
        """By address: the hardware of everyone else."""
        hosts = {other: hardware_address(host.number) for other, host in self.hosts.items()}
        everyone = {API: hardware_address(1), **hosts}
        return {
            address: hardware
            for other, hardware in everyone.items()
            if other != name
            for address in self._addresses(other)
        }
