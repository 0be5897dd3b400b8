"""A wall clock that is stepped by hours: no bound is measured by it, and only a person's order ends by it."""

from __future__ import annotations

from pp_hostd.model.promise import Withdrawn
from tests.harness.bed.host import Host
from tests.harness.eventually import eventually
from tests.scenarios.faults import agent_after, dies_by_the_bound, isolate, rebuilt
from tests.scenarios.stage import SELF_TIMEOUT_SECONDS, Stage, outlive, shows

STEPPED = """
import datetime, time
real_time, real_datetime = time.time, datetime.datetime
def step_seconds():
    with open("/etc/pp-hostd/step") as file:
        return float(file.read() or 0)
class Stepped(real_datetime):
    @classmethod
    def now(cls, tz=None):
        return cls.fromtimestamp(real_time() + step_seconds(), tz)
time.time = lambda: real_time() + step_seconds()
datetime.datetime = Stepped
"""
"""The wall clock of this process: as far ahead as the file says. OpenSSL looks at the real one."""


def step(host: Host, hours: float) -> None:
    """How far its wall clock is ahead from now on."""
    (host.etc / "step").write_text(str(hours * 3600))


def test_a_wall_clock_that_is_stepped_by_hours_costs_no_proof_and_gains_no_time(stage: Stage) -> None:
    well, cut_off = stage.bed.hosts["worker-1"], stage.bed.hosts["worker-2"]
    with rebuilt(stage, dict.fromkeys((well.name, cut_off.name), agent_after(STEPPED))):
        for host in (well, cut_off):
            step(host, 0)
        stage.hosts(3)
        lines = len(well.journal())
        proofs_at = isolate(stage, [cut_off])
        for hours in (5, -7, 0):
            for host in (well, cut_off):
                step(host, hours)
            outlive([well], SELF_TIMEOUT_SECONDS)
        assert well.journal()[lines:] == []
        dies_by_the_bound(cut_off, proofs_at[cut_off])


def test_an_order_of_maintenance_ends_by_the_wall_clock(stage: Stage) -> None:
    host = stage.bed.hosts["worker-1"]
    with rebuilt(stage, {host.name: agent_after(STEPPED)}):
        step(host, 0)
        stage.hosts(3)
        host.run("pp-hostd", "maintenance", "on", "--until", "2h", "--why", "a new fan")
        assert isinstance(stage.record(host), Withdrawn)
        step(host, 1)
        shows(host, "a new fan")
        step(host, 3)
        eventually(lambda: stage.is_well(host), "it is armed again, and promises")
