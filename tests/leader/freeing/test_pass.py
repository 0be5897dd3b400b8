"""Freeing a dead node's workloads: what is deleted, what is spared, how fast, and what is left for the next pass."""

from __future__ import annotations

from typing import Callable

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import NODES, PODS, VOLUME_ATTACHMENTS, Resource
from pp_hostd.leader.steps.port import Freed
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from pp_hostd.model.keys import FREEING
from pp_hostd.model.step import Written
from tests.agent.objects import Home, boottime
from tests.contract.objects import annotate, sample, uid_of
from tests.leader.applying import Actuators, with_leader
from tests.leader.freeing.deeds import FAST, Eventful, attach, attachments, bind, freed, pods

MIRROR = {"annotations": {"kubernetes.io/config.mirror": "digest"}}
DAEMON = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "net", "uid": "uid-1"}]}
STATEFUL = {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "uid-2"}]}
HELD = {"finalizers": ["example.com/hold"]}


async def fill(home: Home, node: str) -> None:
    """A node with one workload of each sort, and another node with some too."""
    await bind(home, "daemon", node, DAEMON)
    await bind(home, "mirror", node, MIRROR)
    await bind(home, "stateful", node, STATEFUL)
    await bind(home, "terminating", node)
    await home.client.delete(PODS, "terminating", namespace=home.namespace)  # its kubelet is awaited
    await bind(home, "elsewhere", "another")
    await attach(home.client, f"{node}-1", node)
    await attach(home.client, f"{node}-2", "another")


async def test_of_a_node_that_is_gone_everything_is_deleted(home: Home, actuators: Actuators, unique: str) -> None:
    await fill(home, unique)
    assert await freed(actuators, unique, Freeing.ALL) == 0
    assert await pods(home) == ["elsewhere"]
    assert await attachments(home, unique) == [f"{unique}-2"]


async def test_of_a_node_that_is_there_again_nothing_is_deleted(home: Home, actuators: Actuators, unique: str) -> None:
    await fill(home, unique)
    await home.client.create(NODES, sample(NODES, unique))
    assert await freed(actuators, unique, Freeing.ALL) == 0
    assert len(await pods(home)) == 5
    assert len(await attachments(home, unique)) == 2


async def test_of_a_node_that_stays_what_belongs_to_it_is_spared(home: Home, actuators: Actuators, unique: str) -> None:
    await home.client.create(NODES, sample(NODES, unique, annotations={FREEING: "7"}))
    await fill(home, unique)
    assert await freed(actuators, unique, Freeing.SPARING) == 0
    assert await pods(home) == ["daemon", "elsewhere", "mirror"]
    assert await attachments(home, unique) == [f"{unique}-2"]


async def test_where_the_cluster_frees_what_is_there_is_only_counted(
    home: Home, actuators: Actuators, unique: str
) -> None:
    await home.client.create(NODES, sample(NODES, unique))
    await fill(home, unique)
    assert await freed(actuators, unique, Freeing.AWAIT) == 3
    assert len(await pods(home)) == 5
    for name in ("stateful", "terminating"):
        await home.client.delete(PODS, name, namespace=home.namespace, grace_period_seconds=0)
    await home.client.delete(VOLUME_ATTACHMENTS, f"{unique}-1")
    assert await freed(actuators, unique, Freeing.AWAIT) == 0


async def test_deletions_are_paced(home: Home, unique: str) -> None:
    actuators = Actuators(home, settings=with_leader(deletions_per_second=10.0))
    for number in range(5):
        await bind(home, f"web-{number}", unique)
    began_at = boottime()
    assert await freed(actuators, unique, Freeing.ALL) == 0
    assert boottime() - began_at >= 0.4
    assert await pods(home) == []


async def test_what_a_pass_does_not_come_to_is_left_for_the_next(home: Home, unique: str) -> None:
    actuators = Actuators(home, settings=with_leader(deletions_per_second=0.1))
    for number in range(2):
        await bind(home, f"web-{number}", unique)
    assert await freed(actuators, unique, Freeing.ALL) == 1
    assert len(await pods(home)) == 1


async def test_whoever_may_not_list_tells_no_number(
    home: Home, client_of: Callable[[str], ApiClient], unique: str
) -> None:
    await bind(home, "web", unique)
    actuators = Actuators(home, client_of("reader"))
    ended = await actuators.do(FreeWorkloads(unique, Freeing.ALL))
    assert (ended.written, actuators.news) == (Written.NOT_DONE, [ended])
    assert "listing volumeattachments: forbidden" in ended.sentence


async def test_what_only_a_finalizer_keeps_is_deleted_once_and_not_left(
    home: Home, eventful: Eventful, unique: str
) -> None:
    deleted: list[str] = []

    async def notes(_resource: Resource, name: str) -> None:
        deleted.append(name)

    eventful.before = notes
    await bind(home, "held", unique, HELD)
    await attach(home.client, unique, unique, **HELD)
    for _ in range(2):
        assert await freed(Actuators(home, eventful, FAST), unique, Freeing.ALL) == 0
    assert (deleted, await pods(home)) == (["held", unique], ["held"])
    unhold = {"metadata": {"finalizers": None}}
    await home.client.patch(PODS, "held", unhold, namespace=home.namespace)
    await home.client.patch(VOLUME_ATTACHMENTS, unique, unhold)


async def test_a_node_that_comes_back_in_the_middle_keeps_its_other_pods(
    home: Home, eventful: Eventful, unique: str
) -> None:
    for number in range(3):
        await bind(home, f"web-{number}", unique)

    async def comes_back(_resource: Resource, _name: str) -> None:
        await home.client.create(NODES, sample(NODES, unique))

    eventful.before = comes_back
    assert await freed(Actuators(home, eventful, FAST), unique, Freeing.ALL) == 0
    assert len(await pods(home)) == 2


async def test_a_pod_that_changes_meanwhile_is_left_for_the_next_pass(
    home: Home, actuators: Actuators, eventful: Eventful, unique: str
) -> None:
    for number in range(2):
        await bind(home, f"web-{number}", unique)

    async def changes(_resource: Resource, name: str) -> None:
        if name == "web-0":
            await home.client.patch(PODS, name, annotate(note="new"), namespace=home.namespace)

    eventful.before = changes
    assert await freed(Actuators(home, eventful, FAST), unique, Freeing.ALL) == 1
    assert await pods(home) == ["web-0"]
    assert await freed(actuators, unique, Freeing.ALL) == 0


async def test_another_incarnation_of_an_attachment_is_left_alone(home: Home, eventful: Eventful, unique: str) -> None:
    first = await attach(home.client, unique, unique)

    async def made_anew(_resource: Resource, _name: str) -> None:
        await home.client.delete(VOLUME_ATTACHMENTS, unique)
        await attach(home.client, unique, unique)

    eventful.before = made_anew
    assert await freed(Actuators(home, eventful, FAST), unique, Freeing.ALL) == 1
    assert uid_of(await home.client.get(VOLUME_ATTACHMENTS, unique)) != uid_of(first)


async def test_what_is_gone_already_is_freed(home: Home, eventful: Eventful, unique: str) -> None:
    await bind(home, "web", unique)

    async def vanishes(_resource: Resource, name: str) -> None:
        await home.client.delete(PODS, name, namespace=home.namespace, grace_period_seconds=0)

    eventful.before = vanishes
    assert await freed(Actuators(home, eventful, FAST), unique, Freeing.ALL) == 0


async def test_one_pod_that_may_not_be_deleted_does_not_keep_the_others(
    home: Home, eventful: Eventful, unique: str
) -> None:
    for number in range(2):
        await bind(home, f"web-{number}", unique)

    async def denies(_resource: Resource, name: str) -> None:
        if name == "web-0":
            raise ApiError(Outcome.FORBIDDEN, f"deleting {name}: forbidden")

    eventful.before = denies
    actuators = Actuators(home, eventful, FAST)
    ended = await actuators.do(FreeWorkloads(unique, Freeing.ALL))
    assert (ended.written, ended.sentence) == (Written.DONE, "deleting web-0: forbidden")
    assert isinstance(actuators.news[0], Freed) and actuators.news[0].left == 1
    assert await pods(home) == ["web-0"]
