"""The figures of real daemons, and what Prometheus makes of them, while all is well and in each trouble in turn."""

from __future__ import annotations

import contextlib
import math
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from pp_hostd.kube.resources import NODE_HEALTH_CHECKS
from pp_hostd.leader.requests.health_checks.definitions import default_check
from tests.harness.bed.host import Host
from tests.harness.bed.relay import Mode
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.metrics.dashboard import Query, queries
from tests.metrics.doors import Doors
from tests.metrics.prometheus import Prometheus
from tests.scenarios.leading import LEADERS, LeaderStage

AGENT, LEADER = 9479, 9480
UNHURRIED = [{"type": "Ready", "status": "False", "timeout": "1h"}]
"""Of a health check that finds every node healthy for as long as the course takes."""
PATIENT_SECONDS = 60.0


class Course:
    """`played` plays it whole. `outputs` are what daemons served, by the state in which they were; `shown` the queries
    that had data in each part."""

    def __init__(self, stage: LeaderStage, doors: Doors, prometheus: Prometheus) -> None:
        self.outputs: dict[str, str] = {}
        self.shown: dict[str, set[Query]] = {}
        self.alerts: dict[str, set[str]] = {}
        self._stage, self._doors, self._prometheus = stage, doors, prometheus

    @classmethod
    @contextlib.contextmanager
    def begin(cls, directory: Path) -> Iterator[Course]:
        with EmbeddedCluster.start() as cluster, LeaderStage.on(cluster, 4, leader__max_at_once=1) as stage:
            check = default_check()
            check["spec"] = {"selector": {}, "unhealthyConditions": UNHURRIED}
            stage.contents.create(NODE_HEALTH_CHECKS, check)
            hosts = {host.name: host for host in stage.begin()}
            doors = Doors({name: (AGENT, LEADER) if name in LEADERS else (AGENT,) for name in hosts})
            doors.open(list(hosts.values()))
            jobs = {
                "pp-hostd": {name: doors.address(name, AGENT) for name in hosts},
                "pp-leader": {name: doors.address(name, LEADER) for name in LEADERS},
            }
            try:
                with Prometheus.on(directory, jobs) as prometheus:
                    yield cls(stage, doors, prometheus)
            finally:
                doors.close()

    def play(self) -> None:
        self._all_is_well()
        self._a_host_in_maintenance()
        self._a_remediation()
        self._the_control_plane_is_out()

    def _all_is_well(self) -> None:
        lasting = {each for each in queries() if not each.may_be_empty}
        self._shows("all is well", lasting)
        leads = self._stage.leader()
        self.outputs["armed"] = self._figures("worker-3", AGENT)
        self.outputs["leading"] = self._figures(leads, LEADER)
        (stands_by,) = set(LEADERS) - {leads}
        self.outputs["standing by"] = self._figures(stands_by, LEADER)

    def _a_host_in_maintenance(self) -> None:
        host = self._host("worker-4")
        host.run("pp-hostd", "maintenance", "on", "--why", "a new fan", "--until", "10m")
        self._shows("maintenance", _of("Unprotected hosts"))
        self.outputs["unarmed"] = self._figures(host.name, AGENT)
        host.run("pp-hostd", "maintenance", "off")
        eventually(lambda: self._stage.is_well(host), "it is armed again", PATIENT_SECONDS)

    def _a_remediation(self) -> None:
        """The host resets itself, and boots again."""
        host, leads = self._host("worker-3"), self._stage.leader()
        uid = self._stage.uid(host)
        self._stage.request(host)
        eventually(lambda: _sum(self._figures(leads, LEADER), "pp_leader_nodes"), "the leader works", PATIENT_SECONDS)
        self.outputs["leading, with a remediation"] = self._figures(leads, LEADER)
        host.await_down()
        self._shows("a remediation", _of("Nodes by stage", "Limits that hold", "Steps", "Suspects"))
        self._stage.freed(host, uid)
        self._stage.bed.boot(host.name)
        self._stage.given_back(host)
        self._doors.open([host])
        self._shows("a remediation is over", _of("A remediation takes", "A stage takes", "Resets on record"))
        self.outputs["after a reset"] = self._figures(host.name, AGENT)

    def _the_control_plane_is_out(self) -> None:
        self._stage.bed.set_api(Mode.SWALLOW)
        self._shows("outage", _of("Failed reads", "Inquiries"))
        state = 'pp_hostd_state{state="control-plane outage"}'
        eventually(lambda: _sum(self._figures("worker-4", AGENT), state), "it says so", PATIENT_SECONDS)
        self.outputs["in an outage"] = self._figures("worker-4", AGENT)
        self.outputs["nobody leads"] = self._figures(LEADERS[0], LEADER)
        expected = {"PpHostdControlPlaneOutage", "PpHostdNobodyLeads"}
        eventually(lambda: expected <= self._prometheus.alerts(), "alerts are pending", PATIENT_SECONDS)
        self.alerts["outage"] = self._prometheus.alerts()

    def _shows(self, part: str, wanted: set[Query]) -> None:
        """Wait until these have data; all that have it are kept."""
        seen: set[Query] = set()

        def shown() -> bool:
            seen.update(each for each in queries() if self._has_data(each))
            return wanted <= seen

        try:
            eventually(shown, f"the dashboard shows {part}", PATIENT_SECONDS, 0.5)
        except TimeoutError:
            raise AssertionError((part, wanted - seen)) from None
        self.shown[part] = seen

    def _has_data(self, query: Query) -> bool:
        values = (float(each["value"][1]) for each in self._prometheus.query(query.expression))
        return any(not math.isnan(value) for value in values)

    def _figures(self, host: str, port: int) -> str:
        url = f"http://{self._doors.address(host, port)}/metrics"
        with urllib.request.urlopen(url, timeout=HANGS_SECONDS) as reply:
            return str(reply.read().decode())

    def _host(self, name: str) -> Host:
        return self._stage.bed.hosts[name]


def _of(*panels: str) -> set[Query]:
    found = {each for each in queries() if each.panel in panels}
    assert {each.panel for each in found} == set(panels)
    return found


def _sum(figures: str, name: str) -> float:
    """Of the samples whose line begins so."""
    return sum(float(line.rpartition(" ")[2]) for line in figures.splitlines() if line.startswith(name))
