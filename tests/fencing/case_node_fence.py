"""A NodeFence from end to end, with nothing of ours in place of a real part: the host really dies, and comes back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pp_hostd.kube.resources import NODES
from tests.bmc.rig import NODE
from tests.fencing.site import FenceSite
from tests.harness.eventually import eventually

LONG_SECONDS = 240


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


def test_an_off_that_is_accepted_and_never_done_frees_nothing(site: FenceSite) -> None:
    site.set_wires("dead")
    pid = site.pid
    site.report("Unknown", "boot-1")
    eventually(lambda: site.fence().get("restarts", 0) >= 1, "the flow has failed once", LONG_SECONDS)
    assert site.pid == pid
    assert site.has_pod()
    assert "ipmi" in site.fence()["reason"]
