"""A host alone, and hosts without a control plane: the first is reset and its pod moves, the others live on."""

from __future__ import annotations

import sys
import time
from functools import partial

import pytest

from pp_hostd.kube.resources import NODES
from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from pp_hostd.model.promise import Armed
from tests.harness.controlplane import RealCluster
from tests.machines.bed import BOUND_SECONDS, SELF_TIMEOUT_SECONDS, Bed, Plan
from tests.machines.guest import Guest
from tests.machines.package import REPOSITORY
from tests.machines.patience import eventually
from tests.scenarios.endtoend.workload import Workload

pytestmark = pytest.mark.xdist_group("real control plane")
"""One of the run's workers has one, and both cases."""
POD = "web-0"
OUTAGE_SECONDS = 5 * SELF_TIMEOUT_SECONDS
TRIO = {"worker-1": Plan(), "worker-2": Plan(), "worker-3": Plan()}


def deploy(bed: Bed) -> Workload:
    """A StatefulSet of one pod with a volume, and the storage that attaches it."""
    cluster = bed.cluster
    assert isinstance(cluster, RealCluster)
    attacher = ["env", f"PYTHONPATH={REPOSITORY}", sys.executable, "-m", "tests.scenarios.endtoend.attacher"]
    cluster.supervisor.run("attacher", [*attacher, str(cluster.kubeconfig())])
    return Workload(bed.contents, 1)


def is_schedulable(bed: Bed, guest: Guest) -> bool:
    """As `kubectl get nodes` would show it: Ready, and nothing else."""
    node = bed.contents.find(NODES, guest.name)
    if node is None or node["spec"].get("unschedulable") or node["spec"].get("taints"):
        return False
    conditions = node["status"].get("conditions", [])
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)


def is_healthy(guest: Guest) -> bool:
    return "healthy" in guest.run("systemctl status pp-hostd")


def test_a_host_whose_link_is_pulled_is_reset_in_the_bound_its_pod_moves_and_it_comes_back(real_bed: Bed) -> None:
    guests = real_bed.gather(TRIO)
    real_bed.start_armed(*guests)
    workload = deploy(real_bed)
    lost_name = eventually(lambda: workload.node_of(POD), "the pod runs", 60)
    lost = real_bed.guests[lost_name]
    with real_bed.leader():
        eventually(lambda: "leads, as" in real_bed.leader_said(), "somebody leads")
        last_boot, since = lost.boot_id(), time.time()
        lost.set_link(False)
        real_bed.contents.patch(NODES, lost.name, {"metadata": {"annotations": {EXTERNAL_REMEDIATION: ""}}})
        reset = lost.await_reset(since, BOUND_SECONDS)
        boot = lost.await_boot_after(last_boot)
        eventually(lambda: workload.node_of(POD) not in ("", lost.name), "the pod runs elsewhere", 120)
        eventually(lambda: "held" in lost.run("systemctl status pp-hostd-gate || true"), "the gate is held", 60)
        assert boot not in lost.ticks()
        lost.set_link(True)
        eventually(lambda: boot in lost.ticks(), "its kubelet is let go", 120)
        eventually(lambda: is_schedulable(real_bed, lost), "the host is schedulable", 60)
    assert isinstance(real_bed.record(lost), Armed)
    why = lost.journal("--unit=pp-hostd", "--boot")
    assert "no peer confirms that it is healthy" in why
    assert [guest.resets() for guest in guests if guest is not lost] == [[], []]
    print(f"reset {reset.at_wallclock - since:.1f} s after its link was pulled, of {BOUND_SECONDS:g} s")


def test_when_the_control_plane_stops_for_five_times_t_nobody_is_reset(real_bed: Bed) -> None:
    guests = real_bed.gather(TRIO)
    real_bed.start_armed(*guests)
    cluster = real_bed.cluster
    assert isinstance(cluster, RealCluster)
    cluster.stop_api()
    until = time.time() + OUTAGE_SECONDS
    eventually(
        lambda: time.time() > until or any(guest.resets() for guest in guests), "five times T", OUTAGE_SECONDS + 5
    )
    assert [guest.resets() for guest in guests] == [[], [], []]
    said = [guest.run("systemctl status pp-hostd") for guest in guests]
    assert all("the control plane is out, not this host" in each for each in said), said
    cluster.start_api()
    for guest in guests:
        eventually(partial(is_healthy, guest), "all is well again", 60)
    assert [guest.resets() for guest in guests] == [[], [], []]
