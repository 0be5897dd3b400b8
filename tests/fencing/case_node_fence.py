"""A NodeFence from end to end, with nothing of ours in place of a real part: the host really dies, and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pp_hostd.fencing.call import Power, power_of
from pp_hostd.kube.resources import NODES
from tests.bmc.rig import NODE
from tests.fencing.bmcs import Bmc, Redfish
from tests.fencing.site import FenceSite
from tests.harness.eventually import eventually

LONG_SECONDS = 240


class RedfishSite(FenceSite):
    """Its BMC speaks Redfish."""

    def bmc_of_host(self) -> Bmc:
        return Redfish(self.supervisor)


@pytest.fixture
def site(tmp_path: Path) -> Iterator[FenceSite]:
    with FenceSite.begin(tmp_path) as site:
        site.switch_on()
        yield site


def test_a_host_whose_node_is_unknown_dies_is_freed_and_comes_back(site: FenceSite) -> None:
    pid = site.pid
    site.report("Unknown", "boot-1")
    eventually(lambda: site.pid != pid, "the host is off", LONG_SECONDS)
    eventually(lambda: not site.has_pod(), "its workloads are freed", LONG_SECONDS)
    eventually(lambda: bool(site.pid), "the host is on again", LONG_SECONDS)
    assert site.pid != pid
    site.report("True", "boot-2")
    eventually(site.is_over, "the flow is over", LONG_SECONDS)
    assert site.fence()["cleaned"] is True
    node = site.find(NODES, NODE)
    assert node is not None
    eventually(lambda: not (site.find(NODES, NODE) or {})["spec"].get("unschedulable"), "it can be used", 60)
    assert "secret" not in str(site.fence())


def test_a_host_that_redfish_switches_is_off_when_it_is_freed_and_then_on(tmp_path: Path) -> None:
    with RedfishSite.begin(tmp_path) as site:
        site.switch_on()
        site.report("Unknown", "boot-1")
        eventually(lambda: power_of(site.act("status")) is Power.OFF, "the host is off", LONG_SECONDS)
        eventually(lambda: not site.has_pod(), "its workloads are freed", LONG_SECONDS)
        eventually(lambda: power_of(site.act("status")) is Power.ON, "the host is on again", LONG_SECONDS)
        site.report("True", "boot-2")
        eventually(site.is_over, "the flow is over", LONG_SECONDS)
        assert site.fence()["cleaned"] is True
        assert site.fence()["restarts"] == 0


def test_an_off_that_is_accepted_and_never_done_frees_nothing(site: FenceSite) -> None:
    site.set_wires("dead")
    pid = site.pid
    site.report("Unknown", "boot-1")
    eventually(lambda: site.fence().get("restarts", 0) >= 1, "the flow has failed once", LONG_SECONDS)
    assert site.pid == pid
    assert site.has_pod()
    assert "method bmc of Power-Management" in site.fence()["reason"]
