"""A paused Cluster of Cluster API holds back the remediation of its Machines; so does one that can't be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Callable

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CAPI_CLUSTERS
from pp_hostd.leader.observe import Observer
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import PowerRequest
from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff
from pp_hostd.leader.requests.remediation_objects.remediation import METAL3, POISON_PILL, Phase
from pp_hostd.leader.requests.remediation_objects.steps import HandToOwner
from pp_hostd.leader.steps.machines import AskFor, DeleteMachine, Inspect
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.model.keys import CLUSTER_NAME, PAUSED_MACHINE
from pp_hostd.model.step import Written
from tests.agent.objects import Home, running, until
from tests.contract.objects import sample, uid_of, version_of
from tests.leader.applying import Actuators, read
from tests.leader.external.asked import AskedWorld
from tests.leader.power.powered import PoweredWorld
from tests.leader.virtual_host import World

ClientOf = Callable[[str], ApiClient]
PAUSES: dict[str, Json] = {
    "annotation": {"metadata": {"annotations": {PAUSED_MACHINE: ""}}},
    "spec.paused": {"spec": {"paused": True}},
}
ENDS: Json = {"metadata": {"annotations": {PAUSED_MACHINE: None}}, "spec": {"paused": None}}
BY_EACH = pytest.mark.parametrize("pause", PAUSES)


def settle(world: World, cluster: str = "prod") -> None:
    """Its machine belongs to this Cluster of Cluster API."""
    world.settings = replace(world.settings, api=replace(world.settings.api, machines="cluster-api"))
    world.api.patch("machines", world.machine_key, {"metadata": {"labels": {CLUSTER_NAME: cluster}}})
    world.a_term("a")


def make_cluster(world: World, pause: str = "", name: str = "prod", namespace: str = "machines") -> None:
    body = {"metadata": {"name": name, "namespace": namespace, "annotations": {}}, "spec": {"paused": False}}
    world.api.put("clusters", f"{namespace}/{name}", body)
    if pause:
        world.api.patch("clusters", f"{namespace}/{name}", PAUSES[pause])


def of_cluster(pause: str = "") -> World:
    world = World()
    make_cluster(world, pause)
    settle(world)
    return world


@BY_EACH
@pytest.mark.parametrize("steps", range(10))
def test_what_runs_stops_before_anything_is_freed_and_goes_on_when_the_pause_ends(steps: int, pause: str) -> None:
    world = of_cluster()
    world.request()
    world.run(lambda: len(world.done) == steps)
    world.api.patch("clusters", "machines/prod", PAUSES[pause])
    told = world.held()
    assert "Cluster machines/prod is paused" in told and pause in told
    assert not world.licensed()
    assert steps or not world.steps()
    world.api.patch("clusters", "machines/prod", ENDS)
    world.run(world.given_back)


@BY_EACH
def test_a_node_that_was_deleted_before_the_pause_comes_back(pause: str) -> None:
    world = of_cluster()
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))
    world.api.patch("clusters", "machines/prod", PAUSES[pause])
    world.run(world.given_back)
    assert world.restored()


def test_nothing_begins_while_it_is_not_known_whether_the_cluster_is_paused() -> None:
    world = of_cluster()
    world.api.clusters_are_late = "listing clusters: forbidden"
    world.request()
    assert "whether Cluster machines/prod is paused is not known: listing clusters: forbidden" in world.held()
    assert not world.steps()
    world.api.clusters_are_late = ""
    world.run(world.given_back)


def test_nothing_begins_while_the_cluster_that_the_machine_names_does_not_exist() -> None:
    world = World()
    settle(world)
    world.request()
    assert "whether Cluster machines/prod is paused is not known" in world.held()
    assert not world.steps()
    make_cluster(world)
    world.run(world.given_back)


@pytest.mark.parametrize("other", [{"name": "test"}, {"namespace": "elsewhere"}])
def test_another_cluster_s_pause_holds_nobody_back(other: dict[str, str]) -> None:
    world = of_cluster()
    make_cluster(world, "spec.paused", **other)
    world.request()
    world.run(world.given_back)
    assert world.steps(DeleteNode)


def test_machines_that_are_not_cluster_api_s_belong_to_no_cluster() -> None:
    world = World()
    make_cluster(world, "spec.paused")
    world.api.patch("machines", world.machine_key, {"metadata": {"labels": {CLUSTER_NAME: "prod"}}})
    world.api.clusters_are_late = "not looked at"
    world.request()
    world.run(lambda: bool(world.steps(DeleteNode)))


@BY_EACH
def test_no_host_of_a_paused_cluster_is_switched_off(pause: str) -> None:
    world = PoweredWorld()
    make_cluster(world, pause)
    settle(world)
    world.request()
    assert "Cluster machines/prod is paused" in world.held()
    assert not world.steps(SwitchOff)
    world.api.patch("clusters", "machines/prod", ENDS)
    world.run(world.is_well)


@pytest.mark.parametrize("kind", [POISON_PILL, METAL3], ids=lambda kind: str(kind.name))
def test_a_remediation_object_waits_for_the_end_of_the_pause(kind: Any) -> None:
    world = AskedWorld()
    make_cluster(world, "spec.paused")
    settle(world)
    world.make(kind)
    world.spend(300)
    assert "Cluster machines/prod is paused" in world.told(kind)
    assert not world.steps(AskFor)
    world.api.patch("clusters", "machines/prod", ENDS)
    world.run(lambda: world.phase(kind) is Phase.WAITING and world.is_well())


def test_no_machine_of_a_paused_cluster_is_handed_to_its_owner() -> None:
    world = AskedWorld("cluster-api")
    make_cluster(world)
    settle(world)
    world.sick = True
    world.make(METAL3)
    world.run(lambda: world.phase(METAL3) is Phase.DELETING, seconds=4000)
    world.api.patch("clusters", "machines/prod", PAUSES["spec.paused"])
    world.spend(300)
    assert "Cluster machines/prod is paused" in world.told(METAL3)
    assert not world.steps(HandToOwner, DeleteMachine)
    world.api.patch("clusters", "machines/prod", ENDS)
    world.run(lambda: bool(world.steps(HandToOwner)))


# The watch of Clusters, and the read just before a step.


@BY_EACH
async def test_a_leader_sees_pauses_come_and_go(client: ApiClient, namespace: str, unique: str, pause: str) -> None:
    machine_key, observer = f"{namespace}/{unique}", Observer(client, "cluster-api", lambda: None)
    assert observer.observed.clusters.late
    await client.create(CAPI_CLUSTERS, sample(CAPI_CLUSTERS, unique), namespace=namespace)
    async with running(observer.run()):
        await until(lambda: observer.observed.clusters.pauses.get(machine_key) == "", "it is seen, and not paused")
        assert not observer.observed.clusters.late
        await client.patch(CAPI_CLUSTERS, unique, PAUSES[pause], namespace=namespace)
        await until(lambda: pause in observer.observed.clusters.pauses[machine_key], "its pause is seen")
        await client.delete(CAPI_CLUSTERS, unique, namespace=namespace)
        await until(lambda: machine_key not in observer.observed.clusters.pauses, "it is seen gone")


async def test_a_leader_that_may_not_list_clusters_knows_why_it_sees_none(client_of: ClientOf) -> None:
    observer = Observer(client_of("nobody"), "cluster-api", lambda: None)
    async with running(observer.run()):
        await until(lambda: "listing clusters: forbidden" in observer.observed.clusters.late, "it is told")


async def belonging(client: ApiClient, namespace: str, name: str, pause: str) -> Home:
    """A Machine and its Node, and the Cluster of the same name."""
    home = Home(client, "cluster-api", namespace)
    await home.enrol(name)
    await client.patch(home.kind, name, {"metadata": {"labels": {CLUSTER_NAME: name}}}, namespace=namespace)
    await client.create(CAPI_CLUSTERS, sample(CAPI_CLUSTERS, name), namespace=namespace)
    if pause:
        await client.patch(CAPI_CLUSTERS, name, PAUSES[pause], namespace=namespace)
    return home


@BY_EACH
async def test_the_look_before_anything_is_done_fails_while_the_cluster_is_paused(
    client: ApiClient, namespace: str, unique: str, pause: str
) -> None:
    home = await belonging(client, namespace, unique, pause)
    look = Inspect(home.machine_key(unique), unique)
    ended = await Actuators(home).do(look)
    assert ended.written is Written.NOT_DONE
    assert f"Cluster {namespace}/{unique} is paused" in ended.sentence
    await client.patch(CAPI_CLUSTERS, unique, ENDS, namespace=namespace)
    await Actuators(home).done(look)
    await client.delete(CAPI_CLUSTERS, unique, namespace=namespace)
    ended = await Actuators(home).do(look)
    assert ended.written is not Written.DONE
    assert f"Cluster {namespace}/{unique}" in ended.sentence


@BY_EACH
async def test_a_host_is_not_switched_off_by_a_leader_that_has_not_seen_the_pause_yet(
    client: ApiClient, namespace: str, unique: str, pause: str
) -> None:
    home = await belonging(client, namespace, unique, pause)
    host = await client.create(BARE_METAL_HOSTS, sample(BARE_METAL_HOSTS, unique), namespace=namespace)
    request = PowerRequest(home.machine_key(unique), "uid", unique, 1)
    ended = await Actuators(home).do(SwitchOff(f"{namespace}/{unique}", uid_of(host), version_of(host), request))
    assert ended.written is Written.NOT_DONE
    assert f"Cluster {namespace}/{unique} is paused" in ended.sentence
    found = await read(client, BARE_METAL_HOSTS, unique, namespace)
    assert found is not None and not found["metadata"].get("annotations")
