"""A watch that had to begin again has seen nothing without a gap; our ConfigMaps are watched like the rest."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.leader.observe import Observer
from pp_hostd.leader.steps.port import (
    CONFIG_MAP,
)
from pp_hostd.leader.watches import MAX_TOLD
from pp_hostd.model.keys import ENROLLED, LEADER, NAMESPACE
from tests.agent.objects import HANG_SECONDS, KINDS, Home, create_our_namespace, running, until
from tests.contract.objects import version_of
from tests.harness.embedded import EmbeddedCluster
from tests.leader.cable import laid_cable


@pytest.fixture
def own_cluster() -> Iterator[EmbeddedCluster]:
    """Empty, and free to forget."""
    with EmbeddedCluster.start() as cluster:
        yield cluster


@pytest.mark.parametrize("machines", KINDS)
async def test_a_new_list_is_another_stretch_for_every_machine(own_cluster: EmbeddedCluster, machines: str) -> None:
    kubeconfig = load(str(own_cluster.kubeconfig()))
    admin = ApiClient(kubeconfig, deadline_seconds=10)
    home = Home(admin, machines, "default")
    for name in ("worker-1", "worker-2"):
        await home.enrol(name)
    await home.condemn("worker-1", 7)
    async with laid_cable(kubeconfig) as cable:
        observer = Observer(cable.client, machines, lambda: None)
        async with running(observer.run()):
            await until(lambda: observer.ready and observer.trouble == "", "everything is listed")
            before = {machine_key: seen.unbroken_since for machine_key, seen in observer.observed.machines.items()}
            cable.cut()
            own_cluster.forget_history()
            cable.mend()
            await until(lambda: "gone" in observer.trouble, "the gap is told")
            await until(lambda: observer.trouble == "", "everything is listed again")
            after = {machine_key: seen.unbroken_since for machine_key, seen in observer.observed.machines.items()}
    assert set(before) == set(after) == {home.machine_key(name) for name in ("worker-1", "worker-2")}
    assert not set(before.values()) & set(after.values())
    assert observer.observed.requests == (home.machine_key("worker-1"),)
    admin.close()


async def test_our_config_maps_are_seen_but_not_what_the_leader_says_of_itself(own_cluster: EmbeddedCluster) -> None:
    client = ApiClient(load(str(own_cluster.kubeconfig())), deadline_seconds=10)
    await create_our_namespace(client)
    events = []
    observer = Observer(client, "node", lambda: events.append(observer.observed.enrolled))
    async with running(observer.run()):
        await until(lambda: all(each.listed for each in observer.watches), "everything is listed, needed or not")
        await client.create(CONFIG_MAPS, {"metadata": {"name": LEADER}}, namespace=NAMESPACE)
        enrolled = {"metadata": {"name": ENROLLED}, "data": {"worker-1": "{}"}}
        created = await client.create(CONFIG_MAPS, enrolled, namespace=NAMESPACE)
        assert await observer.shows(CONFIG_MAP, ENROLLED, None, HANG_SECONDS)
        assert observer.version(CONFIG_MAP, LEADER) is None, "it came before the other, and is not seen"
        assert events[-1] == {"worker-1"}
        await client.delete(CONFIG_MAPS, ENROLLED, namespace=NAMESPACE)
        assert await observer.shows(CONFIG_MAP, ENROLLED, version_of(created), HANG_SECONDS)
        assert events[-1] == frozenset()
    client.close()


async def test_machines_that_can_not_be_read_are_told_of_and_hide_no_other(own_cluster: EmbeddedCluster) -> None:
    client = ApiClient(load(str(own_cluster.kubeconfig())), deadline_seconds=10)
    home = Home(client, "openshift", "default")
    await home.enrol("good")
    for number in range(MAX_TOLD + 5):
        await home.create_machine(f"bad-{number}", node="")
    observer = Observer(client, "openshift", lambda: None)
    async with running(observer.run()):
        await until(lambda: observer.ready, "everything is listed")
    assert list(observer.observed.machines) == ["default/good"]
    of_nodes, of_machines = observer.faults
    assert (len(of_nodes), len(of_machines)) == (0, MAX_TOLD + 5)
    assert of_machines["default/bad-0"].sentence.startswith("the machine is unreadable: name is ''")
    assert of_machines["default/bad-0"].uid
    assert observer.trouble.startswith("machine default/bad-0: the machine is unreadable: name is ''")
    assert observer.trouble.endswith("; and 5 more")
    client.close()
