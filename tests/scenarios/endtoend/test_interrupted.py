"""A remediation with interference: somebody lifts the condemnation or replaces the Node; host or kubelet is back."""

from __future__ import annotations

import asyncio

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import NODES, PODS
from tests.contract.objects import pod
from tests.harness.bed.host import Host
from tests.harness.eventually import eventually
from tests.scenarios.endtoend.kubelet import register
from tests.scenarios.endtoend.site import Site
from tests.scenarios.leading import WAIT_SECONDS, now

MACHINE = "machine.openshift.io/machine"
LABEL = {"metadata": {"labels": {"example.com/rack": "7"}}}
TAINT = {"key": "example.com/spare", "effect": "PreferNoSchedule"}


def test_a_condemnation_that_is_lifted_in_the_middle_frees_nothing(site: Site) -> None:
    site.begin()
    (spared,) = site.hosts_of("web-0")
    uid = site.uid(spared)
    site.bed.cut(spared.name)
    site.request(spared)
    site.says(f"{spared.name}: at least half of")
    site.lift(spared)
    spared.await_down()
    until_at = now() + WAIT_SECONDS
    eventually(lambda: now() > until_at, "longer than the wait", WAIT_SECONDS + 1)
    assert site.workload.attached_to("web-0") == spared.name
    site.begin()
    assert site.uid(spared) == uid
    assert site.contents.backup(spared.name) is None


def test_a_node_that_somebody_else_replaces_in_the_middle_frees_nothing_and_has_all_that_it_had(site: Site) -> None:
    site.begin()
    (lost,) = site.hosts_of("web-0")
    site.contents.patch(NODES, lost.name, {**LABEL, "spec": {"taints": [TAINT]}})
    site.bed.cut(lost.name)
    site.request(lost)
    site.says(f"{lost.name}: at least half of")
    node = site.node(lost)
    assert node is not None
    site.contents.delete(NODES, lost.name)
    lost.await_down()
    site.shows("somebody else has deleted its Node, and its host may live: nothing is freed")
    site.bed.heal()
    site.bed.boot(lost.name)
    site.contents.create(NODES, {"metadata": {"name": lost.name}})
    site.says(f"{lost.name}: the Node that somebody else has recreated has all that is in its backup")
    replaced = site.given_back(lost)
    assert replaced["metadata"]["labels"]["example.com/rack"] == "7"
    assert replaced["metadata"]["annotations"][MACHINE] == node["metadata"]["annotations"][MACHINE]
    assert TAINT in replaced["spec"]["taints"]
    site.contents.patch(NODES, lost.name, {"spec": {"taints": None}})
    site.begin()


def test_a_host_that_is_back_before_the_deletion_waits_behind_its_gate_until_it_is_freed(site: Site) -> None:
    site.begin()
    (sick,) = site.hosts_of("web-0")
    uid = site.uid(sick)
    site.bed.cut(sick.name)
    site.request(sick)
    sick.await_down()
    site.bed.heal()
    site.bed.boot(sick.name)
    site.freed(sick, uid)
    assert not sick.kubelet_started()
    assert "its gate is closed" in site.says("backing up its Node")
    site.begin()


def test_a_kubelet_that_registers_during_the_deletion_finds_its_node_completed(site: Site) -> None:
    site.begin()
    (lost,) = site.hosts_of("web-0")
    site.contents.patch(NODES, lost.name, LABEL)
    uid = site.uid(lost)
    many = [f"more-{number}" for number in range(20)]
    for name in many:
        site.contents.create(PODS, pod(name, nodeName=lost.name), "default")
    site.bed.cut(lost.name)
    site.request(lost)
    eventually(lambda: site.node(lost) is None, "its Node is gone", 2 * WAIT_SECONDS)
    _register(site, lost)
    site.says(f"{lost.name}: completing the Node that came back")
    node = site.given_back(lost)
    assert node["metadata"]["uid"] != uid
    assert node["metadata"]["labels"]["example.com/rack"] == "7"
    site.begin()


def _register(site: Site, host: Host) -> None:
    """As its kubelet does when it starts."""

    async def run() -> None:
        client = ApiClient(load(str(site.cluster.kubeconfig(f"system:node:{host.name}"))), deadline_seconds=5)
        await register(client, host.name, host.address)
        client.close()

    asyncio.run(run())
