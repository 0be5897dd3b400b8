"""Guests on a network, in front of a cluster that knows them, and a leader beside them where a case needs one."""

from __future__ import annotations

import contextlib
import json
import secrets
import sys
import threading
from base64 import b64decode
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from pp_hostd.model.promise import AgentRecord, Armed
from pp_hostd.model.record import Unreadable
from tests.harness.bed.channel import ask
from tests.harness.bed.contents import Contents
from tests.harness.bed.relay import Mode
from tests.harness.bed.wires import API_PORT, addresses_of
from tests.harness.cluster import Cluster
from tests.harness.supervise import Supervisor
from tests.machines.debian import NEWEST
from tests.machines.guest import Guest
from tests.machines.package import REPOSITORY, package
from tests.machines.patience import eventually
from tests.machines.snapshot import snapshot
from tests.machines.switch import API_SERVER, FIRST_GUEST

CABLES = 5
SELF_TIMEOUT_SECONDS, WATCHDOG_SECONDS, MARGIN_SECONDS = 13.0, 8, 2.0
SETTINGS: Mapping[str, Any] = {
    "api.read_interval_seconds": 2.0,
    "api.read_deadline_seconds": 1.5,
    "api.retry_seconds": 0.5,
    "peers.rounds": 3,
    "peers.round_seconds": 1.5,
    "agent.self_timeout_seconds": SELF_TIMEOUT_SECONDS,
    "agent.arm_pairs": True,
    "watchdog.timeout_seconds": WATCHDOG_SECONDS,
    "leader.lease_seconds": 10.0,
    "leader.margin_seconds": MARGIN_SECONDS,
    "leader.start_grace_seconds": 0.0,
    "leader.max_unhealthy": "100%",
    "leader.resets_per_hour": "1000",
}
"""Short, and yet long enough that no emulated machine is reset for being slow."""
BOUND_SECONDS = SELF_TIMEOUT_SECONDS + 2 * WATCHDOG_SECONDS
ARM_SECONDS = 300
ETC = "/etc/pp-hostd"
API_URL = f"https://{addresses_of(API_SERVER)[0]}:{API_PORT}"
PP_LEADER = [sys.executable, "-c", "import sys; from pp_hostd.cli import leader; sys.exit(leader())"]


@dataclass(frozen=True)
class Plan:
    """How a guest differs from the others."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)
    before: str = "true"
    """The script that runs in the guest before its units start."""
    suite: str = NEWEST


class Bed:
    """A network in front of that cluster; `gather` brings guests into it."""

    def __init__(self, cluster: Cluster, directory: Path) -> None:
        self.cluster, self.directory = cluster, directory
        self.contents = Contents(cluster, "node")
        self.guests: dict[str, Guest] = {}
        self._key = f"{secrets.token_hex(32)}\n".encode()
        self._condemning = threading.Lock()
        self.supervisor = Supervisor()
        try:
            self._network_pid = self._lay_network()
        except BaseException:
            self.supervisor.close()
            raise

    def _lay_network(self) -> int:
        port, directory = urlsplit(self.cluster.server).port, self.supervisor.directory
        program = ["env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "tests.machines.switch"]
        self.supervisor.run("switch", [*program, str(directory), str(port), str(CABLES)])

        def ready() -> bool:
            if self.supervisor.processes()["switch"]["exit"] is not None:
                raise ChildProcessError(f"the switch ended: {self.supervisor.log_tails()['switch']}")
            return all((directory / name).exists() for name in ("ready", "relay"))

        eventually(ready, "the network is laid")
        pid = self.supervisor.processes()["switch"]["pid"]
        assert pid is not None
        return pid

    # Guests.

    def gather(self, plans: Mapping[str, Plan], absent: tuple[str, ...] = ()) -> list[Guest]:
        """Begin these guests, up to where their units may start; the cluster knows the absent ones too."""
        self.dismiss()
        numbers = {name: FIRST_GUEST + place for place, name in enumerate((*plans, *absent))}
        self.contents.fill({name: addresses_of(number)[0] for name, number in numbers.items()})
        self.guests = {name: Guest(name, numbers[name], self.directory / name) for name in plans}
        self.set_api(Mode.PASS, *self.guests.values())
        with ThreadPoolExecutor() as pool:
            list(pool.map(lambda guest: self._begin(guest, plans[guest.name]), self.guests.values()))
        return list(self.guests.values())

    def _begin(self, guest: Guest, plan: Plan) -> None:
        files = {**self._files(guest, plan.settings), **plan.files}
        guest.begin(snapshot(plan.suite, package()), self.supervisor, self._network_pid, files)
        guest.run(plan.before)

    def dismiss(self) -> None:
        """Switch all guests off."""
        for guest in self.guests.values():
            guest.end()
        self.guests = {}

    def start_armed(self, *guests: Guest) -> None:
        """Start their units, and wait until all are armed and their kubelets run."""
        for guest in guests:
            guest.start_units()
        for guest in guests:
            self.await_armed(guest)
            eventually(guest.ticks, f"{guest.name}'s kubelet runs", ARM_SECONDS)

    def await_armed(self, guest: Guest) -> Armed:
        """Until its Node holds its promise of this boot; the promise."""
        boot = guest.boot_id()

        def promise() -> Armed | None:
            record = self.record(guest)
            return record if isinstance(record, Armed) and record.boot == boot else None

        found = eventually(promise, f"{guest.name} is armed", ARM_SECONDS)
        assert found is not None
        return found

    def record(self, guest: Guest) -> AgentRecord | None:
        """Returns the record of the guest's agent on its Node; None if there is none."""
        found = self.contents.node(guest.name).agent
        assert not isinstance(found, Unreadable), found
        return found

    def condemn(self, guest: Guest) -> None:
        """As a leader does."""
        with self._condemning:
            self.contents.condemn(guest.name)

    # The surroundings of the guests.

    def set_api(self, mode: Mode, *guests: Guest) -> None:
        """Sets the mode that these guests find at the API's address."""
        ask(self.supervisor.directory / "relay", "set_mode", [each.number for each in guests], [API_SERVER], mode.value)

    @contextlib.contextmanager
    def leader(self) -> Iterator[None]:
        """A leader, on a host that is none of the guests."""
        etc = self.supervisor.directory / "leader"
        etc.mkdir(exist_ok=True)
        self.contents.write_leader_kubeconfig(etc / "kubeconfig", API_URL)
        (etc / "peer.key").write_bytes(self._key)
        (etc / "peer.key").chmod(0o600)
        own = {"leader.kubeconfig": f"{etc}/kubeconfig", "peers.key_file": f"{etc}/peer.key"}
        (etc / "pp-hostd.toml").write_bytes(_toml({**SETTINGS, **own, "agent.node_name": "outside"}))
        command = ["nsenter", f"--net=/proc/{self._network_pid}/ns/net", "env", f"PYTHONPATH={REPOSITORY}", *PP_LEADER]
        self.supervisor.run("pp-leader", [*command, "run", "--config", f"{etc}/pp-hostd.toml"])
        try:
            yield
        finally:
            self.supervisor.kill("pp-leader")

    def leader_said(self) -> str:
        return self.supervisor.log_tails(200).get("pp-leader", "")

    def keep_logs(self, directory: Path) -> None:
        for guest in self.guests.values():
            guest.keep_logs(directory)
        for name, tail in self.supervisor.log_tails(300).items():
            (directory / f"{name}.log").write_text(tail)

    def close(self) -> None:
        self.dismiss()
        self.supervisor.close()
        self.contents.close()

    # The content of a guest's /etc.

    def _files(self, guest: Guest, settings: Mapping[str, Any]) -> dict[str, bytes]:
        own = self.supervisor.directory / f"{guest.name}.kubeconfig"
        self.contents.write_kubeconfig(guest.name, own, API_URL)
        return {
            f"{ETC}/kubeconfig": own.read_bytes(),
            f"{ETC}/peer.key": self._key,
            f"{ETC}/pp-hostd.toml": self.settings_file(settings),
            **self._kubelet_files(guest),
        }

    def settings_file(self, settings: Mapping[str, Any]) -> bytes:
        """SETTINGS, and these over them."""
        return _toml({**SETTINGS, **settings})

    def _kubelet_files(self, guest: Guest) -> dict[str, bytes]:
        path = self.supervisor.directory / f"{guest.name}.kubelet.kubeconfig"
        self.contents.write_credentials(f"system:node:{guest.name}", ("system:nodes",), path, API_URL)
        config = yaml.safe_load(path.read_text())
        user = config["users"][0]["user"]
        client = b64decode(user["client-certificate-data"]) + b64decode(user["client-key-data"])
        host, port = addresses_of(API_SERVER)[0], API_PORT
        settings = {"node": guest.name, "address": guest.address, "host": host, "port": port}
        return {
            "/etc/kubelet/ca.crt": b64decode(config["clusters"][0]["cluster"]["certificate-authority-data"]),
            "/etc/kubelet/client.pem": client,
            "/etc/kubelet/settings.json": json.dumps(settings).encode(),
        }


def _toml(settings: Mapping[str, Any]) -> bytes:
    """JSON's numbers, texts and lists are TOML's too."""
    return "".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()).encode()
