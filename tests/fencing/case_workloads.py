"""Workloads of fenced nodes, run by Kubernetes itself: some start elsewhere, others stay. And remedies as Jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pp_hostd.kube.resources import NODES, Resource
from tests.bmc.rig import NODE, PLACE
from tests.fencing.living import LONG_SECONDS, OTHER, LivingSite
from tests.fencing.site import UNKNOWN
from tests.harness.eventually import eventually

BUDGETS = Resource("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets")
DEADLOCK = {"nodeConditionType": "KernelDeadlock", "nodeConditionStatus": "True", "nodeConditionPeriod": "1s"}


@pytest.fixture
def site(tmp_path: Path) -> Iterator[LivingSite]:
    with LivingSite.begin(tmp_path) as site:
        assert isinstance(site, LivingSite)
        try:
            site.settle()
            yield site
        finally:
            site.end()


def test_the_pod_of_a_silent_node_moves_once_its_host_is_off(site: LivingSite) -> None:
    site.configure({"power_management": "bmc"})
    site.remedy(UNKNOWN)
    pid, uid = site.pid, site.pod()["metadata"]["uid"]
    site.stand_still()
    eventually(lambda: site.pod().get("metadata", {}).get("uid") != uid, "the pod is freed", LONG_SECONDS)
    assert site.pid != pid
    eventually(lambda: site.place() == OTHER, "the pod runs elsewhere", LONG_SECONDS)
    eventually(lambda: site.fence().get("status") == "Final", "the flow is over", LONG_SECONDS)
    assert site.is_ready()
    assert site.place() == OTHER
    assert site.times_on == 2


def test_the_pod_of_a_silent_node_that_is_only_cordoned_stays(site: LivingSite) -> None:
    site.configure({"power_management": ""})
    site.remedy(UNKNOWN)
    pid, uid = site.pid, site.pod()["metadata"]["uid"]
    site.stand_still()
    site.reaches("Power-Management", "Done")
    assert (site.find(NODES, NODE) or {})["spec"]["unschedulable"] is True
    assert not site.is_ready()
    metadata = site.pod()["metadata"]
    assert metadata["uid"] == uid and "deletionTimestamp" not in metadata
    site.go_on()
    site.reaches("Recovery", "Final")
    assert (site.pid, site.pod()["metadata"]["uid"], site.place()) == (pid, uid, NODE)
    assert not site.fence().get("cleaned")


def test_a_remedy_runs_as_a_job_on_another_node(site: LivingSite) -> None:
    """Its pod would rather run on the very node that it is about."""
    fields = [{"key": "metadata.name", "operator": "In", "values": [NODE]}]
    preferred = [{"weight": 100, "preference": {"matchFields": fields}}]
    affinity = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}
    container = {"name": "repair", "image": "repair"}
    repair = {"name": "repair", "podTemplate": {"spec": {"affinity": affinity, "containers": [container]}}}
    site.remedy({**DEADLOCK, "remedy1": {"name": "repair"}, "recovery": {"name": "mark-schedulable"}}, repair)
    uid = site.pod()["metadata"]["uid"]
    site.detect("KernelDeadlock", "True")
    site.reaches("Power-Management", "Done")
    (job,) = site.jobs()
    (pod,) = site.pods_of(job)
    assert job["status"]["succeeded"] == 1
    assert pod["spec"]["nodeName"] == OTHER
    assert {"name": "NODE_NAME", "value": NODE} in pod["spec"]["containers"][0]["env"]
    assert site.fence()["jobs"] == [job["metadata"]["name"]]
    site.detect("KernelDeadlock", "False")
    site.reaches("Recovery", "Final")
    assert len(site.jobs()) == 1
    assert (site.pod()["metadata"]["uid"], site.place()) == (uid, NODE)


def test_a_drain_moves_a_pod_once_its_disruption_budget_allows_that(site: LivingSite) -> None:
    selector = {"matchLabels": {"app": "web"}}
    site.create(BUDGETS, {"metadata": {"name": "web"}, "spec": {"minAvailable": 1, "selector": selector}}, PLACE)
    eventually(
        lambda: "observedGeneration" in (site.find(BUDGETS, "web", PLACE) or {}).get("status", {}),
        "Kubernetes has counted what the budget allows",
        LONG_SECONDS,
    )
    site.create_map(
        "fence-cluster-config",
        {"config.properties": "grace_timeout=1s\ndrain_timeout=5s\nstep_retries=0\ngiveup_retries=100\n"},
    )
    ladder = {"remedy1": {"name": "mark-unschedulable", "period": "1s"}, "remedy2": {"name": "drain"}}
    site.remedy({**DEADLOCK, **ladder, "recovery": {"name": "mark-schedulable"}})
    uid = site.pod()["metadata"]["uid"]
    site.detect("KernelDeadlock", "True")
    eventually(lambda: "disruption budget" in site.fence().get("reason", ""), "the budget objects", LONG_SECONDS)
    metadata = site.pod()["metadata"]
    assert metadata["uid"] == uid and "deletionTimestamp" not in metadata
    site.patch(BUDGETS, "web", {"spec": {"minAvailable": 0}}, PLACE)
    eventually(lambda: site.place() == OTHER, "the pod runs elsewhere", LONG_SECONDS)
    site.reaches("Power-Management", "Done")
    site.detect("KernelDeadlock", "False")
    site.reaches("Recovery", "Final")
    assert not site.fence().get("cleaned"), "its kubelet has ended the pod, and nobody had to free it"
