"""A bed in front of a cluster that holds what agents need: for scenarios with the real agent."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from tests.harness.bed.bed import Bed
from tests.harness.bed.contents import Contents
from tests.harness.bed.host import Design, Host
from tests.harness.cluster import Cluster

SETTINGS: Mapping[str, Any] = {
    "api.read_interval_seconds": 1.0,
    "api.read_deadline_seconds": 1.0,
    "api.retry_seconds": 0.5,
    "peers.rounds": 4,
    "peers.round_seconds": 1.0,
    "agent.self_timeout_seconds": 10.0,
    "agent.arm_pairs": True,
    "watchdog.timeout_seconds": 3,
}
"""About twice the shortest that timing.py allows, since a busy machine makes agents late: dead within T + 2W = 16 s."""


class ClusterBed(Bed):
    """`start` is how to get one; its hosts are enrolled, and not yet booted."""

    contents: Contents

    @classmethod
    def start(
        cls,
        cluster: Cluster,
        hosts: int = 3,
        *,
        control_plane: int = 0,
        settings: Mapping[str, Any] | None = None,
        api_servers: int = 1,
        design: Design | None = None,
        contents: type[Contents] = Contents,
    ) -> ClusterBed:
        """So many workers, and hosts of the control plane before them.

        Settings are named as in `check-config`; `api.machines` also says what machines the cluster holds, and
        `contents` who makes them.
        """
        merged = {**SETTINGS, **(settings or {})}
        counts = {"control-plane": control_plane, "worker": hosts}
        port = urlsplit(cluster.server).port
        assert port is not None
        names = [f"{kind}-{number}" for kind, count in counts.items() for number in range(1, count + 1)]
        bed = cls(names, port, api_servers=api_servers, design=design)
        try:
            bed._enrol(contents(cluster, merged.get("api.machines", "node")), merged)
        except BaseException:
            bed.close()
            raise
        return bed

    def _enrol(self, contents: Contents, settings: Mapping[str, Any]) -> None:
        self.contents = contents
        contents.fill({host.name: host.address for host in self.hosts.values()})
        key = secrets.token_hex(32)
        for host in self.hosts.values():
            self.configure(host, settings)
            contents.write_kubeconfig(host.name, host.etc / "kubeconfig", self.api_url(1))
            contents.write_leader_kubeconfig(host.etc / "leader.kubeconfig", self.api_url(1))
            (host.etc / "peer.key").write_text(f"{key}\n")
            (host.etc / "peer.key").chmod(0o600)

    def configure(self, host: Host, settings: Mapping[str, Any]) -> None:
        """Write its pp-hostd.toml."""
        servers = [self.api_url(number) for number in self.api_servers[1:]]
        # JSON's numbers, texts and lists are TOML's too.
        lines = [f"{key} = {json.dumps(value)}\n" for key, value in {"api.servers": servers, **settings}.items()]
        (host.etc / "pp-hostd.toml").write_text("".join(lines))

    def close(self) -> None:
        super().close()
        if hasattr(self, "contents"):
            self.contents.close()
