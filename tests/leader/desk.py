"""An administrator's desk: pp-leader as a person runs it, with a terminal or without, and what is in the cluster."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, NAMESPACES, NODES, Resource
from pp_hostd.model.keys import AGENT, ENROLLED, NAMESPACE, ROSTER
from pp_hostd.model.promise import Armed, GateKind, WatchdogKind
from pp_hostd.model.roster import Member, Roster
from tests.agent.objects import KINDS
from tests.contract.objects import annotate, sample
from tests.harness.cluster import Cluster
from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.forked import pp_leader

PP_LEADER = Path(sys.executable).with_name("pp-leader")
ENVIRONMENT = {"LC_ALL": "C", "COLUMNS": "80", "HOME": "/nonexistent", "SUDO_USER": "eve"}
WHEN = datetime(2026, 3, 1, 12, 0, tzinfo=timezone.utc)
CLUSTERS: dict[str, type[EmbeddedCluster] | type[RealCluster]] = {"embedded": EmbeddedCluster, "real": RealCluster}
PROMPT = b"Type the node's name to go on: "


@dataclass(frozen=True)
class Said:
    """The exit code and the output of a command; `prose` is its standard output as one line."""

    code: int
    output: str
    complaint: str

    @property
    def prose(self) -> str:
        return re.sub(r"\s+", " ", self.output)


class Desk:
    """`world` shows what is in the cluster, and changes it."""

    def __init__(self, cluster: Cluster) -> None:
        self.world = World(cluster)
        self.kubeconfig = str(cluster.kubeconfig())

    def run(self, *arguments: str) -> Said:
        """Without a terminal."""
        done = pp_leader(*arguments, "--kubeconfig", self.kubeconfig, environment=ENVIRONMENT)
        assert "Traceback" not in done.stderr, done.stderr
        return Said(done.returncode, done.stdout, done.stderr)

    @contextmanager
    def asked(self, *arguments: str) -> Iterator[Dialogue]:
        """At a terminal, up to where the command waits for an answer."""
        outer, inner = pty.openpty()
        with subprocess.Popen(
            self._command(arguments), stdin=inner, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
        ) as process:
            os.close(inner)
            try:
                dialogue = Dialogue(process, outer)
                dialogue.listen()
                yield dialogue
            finally:
                process.kill()
                os.close(outer)

    def _command(self, arguments: tuple[str, ...]) -> list[str]:
        return [str(PP_LEADER), *arguments, "--kubeconfig", self.kubeconfig]

    def install(self) -> None:
        """The Namespace, as far as these commands need it."""
        self.world.create(NAMESPACES, "", {"metadata": {"name": NAMESPACE}})

    def enrol(self, name: str, machines: str = "node", namespace: str = "default") -> Armed:
        """A Node, its machine and its promise, in a roster of its own."""
        home = {"openshift": {"machine.openshift.io/machine": f"{namespace}/{name}"}, "node": {}}
        capi = {"cluster.x-k8s.io/machine": name, "cluster.x-k8s.io/cluster-namespace": namespace}
        self.world.create(NODES, "", sample(NODES, name, annotations=home.get(machines, capi)))
        kind, where = KINDS[machines], None if machines == "node" else namespace
        if machines != "node":
            self.world.create(kind, "", sample(kind, name), namespace)
            status: Json = {"status": {"nodeRef": {"kind": "Node", "name": name}}}
            assert self.world.make(Attempt("patch", kind, name, status, namespace, "status")).ok
        uid = self.world.read(kind, name, where)["metadata"]["uid"]
        promise = Armed("boot-1", 22, 10, WatchdogKind.HARDWARE, GateKind.HOLD, uid, 3)
        self.annotate(name, **{AGENT: promise.render()})
        roster = Roster.of(3, 3, [Member(name, None, "192.0.2.1", uid, 3, None)])
        self.store(ENROLLED, {name: '{"v":1}'})
        self.store(ROSTER, {ROSTER: roster.render()})
        return promise

    def annotate(self, node: str, **annotations: str | None) -> None:
        assert self.world.make(Attempt("patch", NODES, node, annotate(**annotations))).ok

    def store(self, name: str, data: dict[str, str]) -> None:
        """A ConfigMap of ours."""
        self.put(CONFIG_MAPS, {"metadata": {"name": name}, "data": data})

    def put(self, kind: Resource, body: Json) -> None:
        """In our namespace, in place of what was there."""
        name = body["metadata"]["name"]
        self.world.make(Attempt("delete", kind, name, namespace=NAMESPACE))
        assert self.world.make(Attempt("create", kind, name, body, NAMESPACE)).status_code == 201

    def remove(self, kind: Resource, name: str, namespace: str | None = NAMESPACE) -> None:
        self.world.make(Attempt("delete", kind, name, namespace=namespace))

    def close(self) -> None:
        self.world.close()


@dataclass
class Dialogue:
    """A command that waits for an answer; `heard` is what it has said so far."""

    process: subprocess.Popen[bytes]
    terminal: int
    heard: bytes = b""

    def listen(self) -> None:
        """Until it asks."""
        assert self.process.stdout is not None
        while PROMPT not in self.heard:
            part = os.read(self.process.stdout.fileno(), 4096)
            assert part, (self.heard, self.process.communicate())
            self.heard += part

    def answer(self, text: str) -> Said:
        os.write(self.terminal, text.encode())
        return self._end()

    def interrupt(self) -> Said:
        """Ctrl-C, once it sleeps: Python may miss a signal that comes just before a read begins."""
        stat = Path(f"/proc/{self.process.pid}/stat")
        eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "S", "it waits for the answer")
        self.process.send_signal(signal.SIGINT)
        return self._end()

    def _end(self) -> Said:
        output, complaint = self.process.communicate(timeout=HANGS_SECONDS)
        return Said(self.process.returncode, (self.heard + output).decode(), complaint.decode())


def annotations_of(world: World, kind: Resource, name: str, namespace: str | None = None) -> dict[str, Any]:
    return dict(world.read(kind, name, namespace)["metadata"].get("annotations", {}))


@pytest.fixture(scope="module")
def desk() -> Iterator[Desk]:
    """Of an embedded cluster that no other module's tests disturb."""
    yield from _desk(EmbeddedCluster.start())


@pytest.fixture(scope="module", params=CLUSTERS)
def any_desk(request: pytest.FixtureRequest) -> Iterator[Desk]:
    """Where it matters what a real API server makes of it."""
    yield from _desk(CLUSTERS[request.param].start())


def _desk(cluster: Cluster) -> Iterator[Desk]:
    with cluster, closing(Desk(cluster)) as desk:
        desk.install()
        yield desk
