"""An agent with its memory locked, which a user namespace does not allow: so a dry run, which touches nothing.

Only its /run and /var/lib are its own, in a mount namespace, which takes root.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import requests

from pp_hostd.kube.resources import CONFIG_MAPS, NAMESPACES, NODES
from pp_hostd.model.keys import NAMESPACE, ROSTER
from pp_hostd.model.roster import Member, Roster
from tests.bench.running import Running
from tests.harness.cluster import token_of
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually

NODE = "bench"
PORTS = {"peers.port": 19478, "agent.metrics_port": 19479}
STEADY_REQUESTS = 12
SCRIPT = (
    "mount -t tmpfs tmpfs /run && mount -t tmpfs tmpfs /var/lib && "
    'exec "$0" -c "import sys; from pp_hostd.cli import agent; sys.exit(agent())" run --config "$1"'
)


@contextmanager
def locked_agent(nodes: int) -> Iterator[Running]:
    """In steady state, with so many nodes in its roster."""
    if os.geteuid() != 0:
        sys.exit("bench: the agent's memory can be locked, and its /run replaced, by root alone")
    with EmbeddedCluster.start() as cluster, tempfile.TemporaryDirectory() as directory:
        _fill(cluster, nodes)
        command = ["unshare", "--mount", "sh", "-c", SCRIPT, sys.executable, _configured(cluster, Path(directory))]
        with subprocess.Popen(command, cwd=directory, stderr=subprocess.DEVNULL) as process:
            try:
                agent = Running(process.pid, PORTS["agent.metrics_port"])
                eventually(lambda: agent.requests() >= STEADY_REQUESTS, "the agent has read a few times", 60)
                assert agent.is_locked(), "the agent's memory is not locked"
                yield agent
            finally:
                process.kill()


def _fill(cluster: EmbeddedCluster, nodes: int) -> None:
    with requests.Session() as session:
        session.trust_env, session.verify = False, str(cluster.ca_file)
        session.headers["Authorization"] = f"Bearer {token_of('admin')}"

        def create(path: str, body: object) -> str:
            reply = session.post(cluster.server + path, json=body, timeout=10)
            reply.raise_for_status()
            return str(reply.json()["metadata"]["uid"])

        uid = create(NODES.path(), {"metadata": {"name": NODE}})
        create(NAMESPACES.path(), {"metadata": {"name": NAMESPACE}})
        members = [Member(NODE, None, "127.78.255.254", uid, 1, None), *map(_member, range(nodes - 1))]
        roster = Roster.of(1, 1, members).render()
        create(CONFIG_MAPS.path(NAMESPACE), {"metadata": {"name": ROSTER}, "data": {ROSTER: roster}})


def _member(number: int) -> Member:
    """On loopback, where nobody listens: the agent probes some of them."""
    uid = f"{number:08x}-0000-4000-8000-{number * 7919:012x}"
    return Member(f"node-{number:04}", None, f"127.78.{number >> 8}.{number & 255}", uid, 1, None)


def _configured(cluster: EmbeddedCluster, directory: Path) -> str:
    kubeconfig = cluster.kubeconfig("admin")
    ports = "".join(f"{key} = {port}\n" for key, port in PORTS.items())
    path = directory / "pp-hostd.toml"
    path.write_text(
        f'agent.mode = "dry-run"\nagent.node_name = "{NODE}"\napi.kubeconfig = "{kubeconfig}"\n'
        f'peers.auth = "none"\npeers.address = "127.0.0.1"\napi.read_interval_seconds = 1\n'
        f"api.read_deadline_seconds = 1\n{ports}"
    )
    return str(path)
