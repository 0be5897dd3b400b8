"""Hosts that can't reach each other say so on their Nodes, in seconds, and nobody is reset for it."""

from __future__ import annotations

import signal

from pp_hostd.kube.resources import NODES
from pp_hostd.model.keys import SUSPECTS
from pp_hostd.model.suspicion import Suspicion
from tests.harness.bed.host import Host
from tests.harness.eventually import eventually
from tests.scenarios.faults import status
from tests.scenarios.stage import LONG_SECONDS, Stage, outlive


def suspects(stage: Stage, host: Host) -> str | None:
    """Returns the suspects that the host's agent names on its Node; None if none."""
    found: str | None = stage.contents.machine(host.name)["metadata"].get("annotations", {}).get(SUSPECTS)
    return found


def test_hosts_that_are_cut_from_each_other_name_each_other_and_live_on(stage: Stage) -> None:
    one, two, three = stage.hosts(3)
    stage.bed.cut_pairs((one.name, two.name), (two.name, one.name))
    for host, other in ((one, two), (two, one)):
        named = Suspicion((other.name,)).render()
        eventually(lambda: suspects(stage, host) == named, f"{host.name} names {other.name}")  # noqa: B023
    assert status(one)["suspects"] == [two.name]
    assert suspects(stage, three) is None
    outlive([one, two, three], LONG_SECONDS)
    stage.bed.heal()
    eventually(lambda: suspects(stage, one) is suspects(stage, two) is None, "nobody is named any more")


def test_an_agent_that_is_killed_makes_nobody_name_its_host(stage: Stage) -> None:
    """Its kernel refuses connections meanwhile; and its next run removes what the run before it named."""
    one, *_ = stage.hosts(3, patient=1)
    stage.contents.patch(NODES, one.name, {"metadata": {"annotations": {SUSPECTS: Suspicion(("gone",)).render()}}})
    one.signal_agent(signal.SIGKILL)
    eventually(lambda: suspects(stage, one) is None, "the next run has removed it")
