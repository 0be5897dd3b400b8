"""One host that is installed from the packages, as its administrator sets it up, and the cluster that it belongs to."""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import socket
from collections.abc import Iterator

import yaml

from pp_hostd.model.promise import AgentRecord, Armed
from pp_hostd.model.record import Unreadable
from tests.harness.bed.contents import Contents
from tests.harness.cluster import token_of
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.packaging.guest import Guest

NODE = "guest"
WATCHDOG_SECONDS = 60
"""Far longer than a new agent takes to start, on however busy a machine."""
SETTINGS = f"""
[api]
read_deadline_seconds = 3
[watchdog]
timeout_seconds = {WATCHDOG_SECONDS}
[agent]
arm_pairs = true
node_name = "{NODE}"
self_timeout_seconds = 120
metrics_port = 0
[leader]
metrics_port = 0
page_port = 0
"""
KUBELET = """
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""
TOKEN_FILE = "/etc/pp-hostd/token"
CONFIG_FILE, OVERRIDES = "/etc/pp-hostd/pp-hostd.toml", "/etc/pp-hostd/conf.d/site.toml"


class Site:
    """The guest, its Node, and what a person does to both."""

    def __init__(self, guest: Guest, cluster: EmbeddedCluster, contents: Contents) -> None:
        self.guest, self._cluster, self._contents = guest, cluster, contents

    def install(self, *packages: str) -> None:
        self.guest.run("rpm", "--upgrade", "--nodeps", *(f"/rpms/{package}.noarch.rpm" for package in packages))

    def configure(self, settings: str = SETTINGS) -> None:
        """Writes the files that `pp-leader enroll` and an editor leave in /etc."""
        config = yaml.safe_load(self._cluster.kubeconfig("admin", token=True).read_text())
        config["users"][0]["user"] = {"tokenFile": TOKEN_FILE}
        self.guest.write("/etc/pp-hostd/kubeconfig", yaml.safe_dump(config), "600")
        self.act_as("admin")
        self.guest.write("/etc/pp-hostd/peer.key", secrets.token_hex(32), "600")
        self.guest.write(OVERRIDES, f"{settings}[peers]\nport = {free_port()}\naddress = '127.0.0.1'\n")

    def act_as(self, user: str) -> None:
        """Gives the agent the rights of that user from now on; `reader` may not write."""
        self.guest.write(TOKEN_FILE, token_of(user), "600")

    def give_leader_credentials(self) -> None:
        kubeconfig = self._cluster.directory / "leader.kubeconfig"
        self._contents.write_leader_kubeconfig(kubeconfig, self._cluster.server)
        self.guest.write("/etc/pp-hostd/leader.kubeconfig", kubeconfig.read_text(), "600")

    def add_kubelet(self) -> None:
        self.guest.write("/etc/systemd/system/kubelet.service", KUBELET)
        self.guest.run("systemctl", "daemon-reload")

    def start(self) -> None:
        """As docs/install.md says; returns when the host is armed and its kubelet runs."""
        self.add_kubelet()
        self.guest.run("systemctl", "enable", "--now", "pp-hostd.service", "pp-hostd-gate.service")
        self.guest.run("systemctl", "start", "kubelet.service")
        eventually(self.is_armed, "the host is armed", 60)

    def record(self) -> AgentRecord | None:
        """Returns the record that the agent has written on its Node; None if there is none."""
        agent = self._contents.node(NODE).agent
        assert not isinstance(agent, Unreadable), agent
        return agent

    def is_armed(self) -> bool:
        return isinstance(self.record(), Armed)

    def kubelet(self) -> str:
        """Which run of it this is; another one, or none, if it was stopped."""
        return self.guest.shows("kubelet.service", "InvocationID") if self.guest.is_active("kubelet.service") else ""

    @contextlib.contextmanager
    def without_api(self) -> Iterator[None]:
        """It accepts, and is silent."""
        os.kill(self._cluster.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._cluster.pid, signal.SIGCONT)


@contextlib.contextmanager
def prepared(guest: Guest) -> Iterator[Site]:
    """A cluster that knows the host and another one, which is off."""
    with EmbeddedCluster.start() as cluster, contextlib.closing(Contents(cluster, "node")) as contents:
        contents.fill({NODE: "127.0.0.1", "another": "127.0.0.2"})
        yield Site(guest, cluster, contents)


def free_port() -> int:
    """On loopback, which the guest shares."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
