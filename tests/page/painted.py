"""A cluster as a test paints it, of any size and in any state, and a real pp-leader that stands by and shows it."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta, timezone

import requests

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NAMESPACES, NODES, Resource
from pp_hostd.model.agent_info import AgentInfo
from pp_hostd.model.control import Pause
from pp_hostd.model.keys import (
    AGENT,
    AGENT_INFO,
    CONDEMNED,
    CONTROL,
    ENROLLED,
    HISTORY,
    LEADER,
    NAMESPACE,
    PAUSED,
    PROTECTED,
    STATUS,
)
from pp_hostd.model.leader_status import CourseTold, LeaderStatus, Told, render_history
from pp_hostd.model.lease import LEASE, LONGEST_SECONDS, renewed_spec
from pp_hostd.model.promise import Armed, GateKind, WatchdogKind
from tests.harness.bed.host import PP_LEADER
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.leader.access.attempts import Attempt, World

HOLDER = "control-1"
PROMISE = Armed("5d9c6e9e-8f0b-4f43-9a55-0f3f9b1c7a10", 22.0, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, "uid", 3)
INFO = AgentInfo("1.2.3", datetime(2027, 3, 1, 12, tzinfo=timezone.utc))
ARMED = "resets itself within 42 s of its last proof: T 22 s, watchdog hardware, W 10 s"


STOPPED_CLOCK = """
import sys
from datetime import datetime, timezone
from pp_hostd.cli import leader
from pp_hostd.leader.page import live
at = datetime.fromtimestamp(float(sys.argv.pop(1)), timezone.utc)
live._now = lambda: at
sys.exit(leader())
"""


def ago(seconds: float, at: datetime | None = None) -> datetime:
    """Before `at`, or before now."""
    return (at or datetime.now(timezone.utc).replace(microsecond=0)) - timedelta(seconds=seconds)


def node(name: str, why_not: tuple[str, str] | None = None, *, condemned: bool = False, ready: bool = True) -> Json:
    """A Node whose host is protected, or why it is not: reason and message."""
    reason, message = why_not or ("Armed", ARMED)
    protected = {"type": PROTECTED, "status": str(why_not is None), "reason": reason, "message": message}
    role = "control-plane" if name.startswith("control") else "worker"
    taints = [{"key": CONDEMNED, "value": "1", "effect": "NoExecute"}] if condemned else []
    return {
        "metadata": {
            "name": name,
            "annotations": {AGENT: PROMISE.render(), AGENT_INFO: INFO.render()},
            "labels": {f"node-role.kubernetes.io/{role}": ""},
        },
        "spec": {"taints": taints},
        "status": {"conditions": [protected, {"type": "Ready", "status": str(ready)}]},
    }


def course(
    name: str, stage: str, sentence: str, ago_seconds: float, *, refused: bool = False, at: datetime | None = None
) -> CourseTold:
    """One that has gone on for so long, of 44 s that are promised."""
    began = ago(ago_seconds, at)
    dead_by = began + timedelta(seconds=44)
    return CourseTold(name, name, stage, sentence, refused, began, None, began, dead_by)


class Painted:
    """A cluster of these Nodes. Somebody else leads, by its own word, and nobody else takes the Lease meanwhile. The
    time in it is always `at`, if that is given."""

    def __init__(self, cluster: EmbeddedCluster, nodes: Iterable[Json], at: datetime | None = None) -> None:
        self.cluster, self._world, self._at = cluster, World(cluster), at
        created = list(nodes)
        self._world.create(NAMESPACES, NAMESPACE, {"metadata": {"name": NAMESPACE}})
        for each in created:
            self._world.create(NODES, each["metadata"]["name"], each)
        enrolled = {each["metadata"]["name"]: "{}" for each in created}
        for name, data in {ENROLLED: enrolled, LEADER: {}, CONTROL: {}}.items():
            self._world.create(CONFIG_MAPS, name, {"metadata": {"name": name}, "data": data}, NAMESPACE)
        self._world.create(LEASES, LEASE, {"metadata": {"name": LEASE}, "spec": _spec(ago(-3600, self._at))}, NAMESPACE)
        self.says()

    def close(self) -> None:
        self._world.close()

    def nobody_leads(self) -> None:
        """It has not renewed the Lease for long."""
        self._patch(LEASES, LEASE, {"spec": _spec(ago(1000, self._at))}, NAMESPACE)

    def says(self, *courses: CourseTold, history: Sequence[Told] = (), held: str = "") -> None:
        """The leader's own words."""
        status = LeaderStatus(
            HOLDER, ago(86400, self._at), "enforce", 12, 3, "", courses, None, 3, 3 - len(courses), "", held
        )
        self._patch(
            CONFIG_MAPS, LEADER, {"data": {STATUS: status.render(), HISTORY: render_history(history)}}, NAMESPACE
        )

    def pauses(self, who: str, why: str) -> None:
        self._patch(CONFIG_MAPS, CONTROL, {"data": {PAUSED: Pause(who, ago(600, self._at), why).render()}}, NAMESPACE)

    def changes(self, found: Json) -> None:
        """A Node is so from now on."""
        name = found["metadata"]["name"]
        self._patch(NODES, name, {"spec": found["spec"]})
        self._patch(NODES, name, {"status": found["status"]}, subresource="status")

    def _patch(
        self, kind: Resource, name: str, body: Json, namespace: str | None = None, subresource: str = ""
    ) -> None:
        reply = self._world.make(Attempt("patch", kind, name, body, namespace, subresource or None))
        assert reply.status_code == 200, reply.text


def _spec(renewed: datetime) -> Json:
    return renewed_spec(f"{HOLDER}_0123456789abcdef", LONGEST_SECONDS, renewed)


class Onlooker:
    """A real pp-leader that stands by and shows the page; `url` is where."""

    def __init__(self, cluster: EmbeddedCluster, at: datetime | None = None) -> None:
        """It believes that it is always `at`, if that is given."""
        self._supervisor = cluster.supervisor
        number = free_port()
        self.url = f"http://127.0.0.1:{number}/"
        config = cluster.directory / "onlooker.toml"
        config.write_text(
            f'agent.node_name = "control-2"\npeers.auth = "none"\nleader.kubeconfig = "{cluster.kubeconfig()}"\n'
            f"leader.metrics_port = 0\nleader.page_port = {number}\n"
        )
        stopped = [sys.executable, "-c", STOPPED_CLOCK, str(at and at.timestamp())]
        self._command = [*(PP_LEADER if at is None else stopped), "run", "--config", str(config)]
        self.start()

    def start(self) -> None:
        self._supervisor.run("onlooker", self._command)
        eventually(self._answers, "the page is served")

    def stop(self) -> None:
        self._supervisor.kill("onlooker")

    def _answers(self) -> bool:
        try:
            return requests.get(self.url, timeout=HANGS_SECONDS).ok
        except requests.ConnectionError:
            exit_status = self._supervisor.processes()["onlooker"]["exit"]
            assert exit_status is None, self._supervisor.log_tails()
            return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])
