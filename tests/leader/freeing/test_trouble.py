"""Freeing where it is easily got wrong: a watch that is late, lists that take long, and pods that come back at once."""

from __future__ import annotations

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NODES, PODS, Resource
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from pp_hostd.model.keys import FREEING
from pp_hostd.model.step import Written
from tests.agent.objects import Home
from tests.contract.objects import annotate, sample
from tests.leader.applying import Actuators
from tests.leader.freeing.deeds import FAST, Eventful, attach, attachments, bind, freed, pods

MARKED = {FREEING: "7"}
REQUEST_SECONDS = 6.0


@pytest.mark.parametrize("node", ["unmarked", "gone"])
async def test_of_a_node_that_stays_nothing_is_deleted_without_the_marker_that_the_watch_has_shown(
    home: Home, actuators: Actuators, unique: str, node: str
) -> None:
    if node == "unmarked":
        await home.client.create(NODES, sample(NODES, unique))
    await bind(home, "web", unique)
    await attach(home.client, unique, unique)
    ended = await actuators.do(FreeWorkloads(unique, Freeing.SPARING))
    assert (ended.written, actuators.news) == (Written.CONFLICT, [ended])
    assert ended.sentence == f"Node {unique} does not bear pp-hostd.io/freeing any more"
    assert (await pods(home), await attachments(home, unique)) == (["web"], [unique])


async def test_a_node_that_loses_its_marker_in_the_middle_keeps_its_other_pods(
    home: Home, eventful: Eventful, unique: str
) -> None:
    await home.client.create(NODES, sample(NODES, unique, annotations=MARKED))
    for number in range(3):
        await bind(home, f"web-{number}", unique)

    async def used_again(_resource: Resource, _name: str) -> None:
        await home.client.patch(NODES, unique, annotate(**{FREEING: None}))

    eventful.after = used_again
    ended = await Actuators(home, eventful, FAST).do(FreeWorkloads(unique, Freeing.SPARING))
    assert (ended.written, len(await pods(home))) == (Written.CONFLICT, 2)


async def test_what_is_put_back_onto_a_node_that_stays_is_not_waited_for(
    home: Home, eventful: Eventful, unique: str
) -> None:
    """A pod that tolerates every taint, and the attachment of a daemon's: their controllers recreate them at once."""
    await home.client.create(NODES, sample(NODES, unique, annotations=MARKED))
    await bind(home, "tolerant", unique)
    await attach(home.client, unique, unique)

    async def made_anew(resource: Resource, name: str) -> None:
        if resource is PODS:
            await bind(home, name, unique)
        else:
            await attach(home.client, name, unique)

    eventful.after = made_anew
    assert await freed(Actuators(home, eventful, FAST), unique, Freeing.SPARING) == 0
    assert (await pods(home), await attachments(home, unique)) == (["tolerant"], [unique])


async def test_what_appears_on_a_node_that_is_gone_is_left_for_the_next_pass(
    home: Home, eventful: Eventful, unique: str
) -> None:
    await bind(home, "web", unique)

    async def bound_late(_resource: Resource, _name: str) -> None:
        await bind(home, "late", unique)

    eventful.after = bound_late
    assert await freed(Actuators(home, eventful, FAST), unique, Freeing.ALL) == 1


async def test_a_pass_gets_further_however_long_the_lists_take(home: Home, unique: str) -> None:
    for number in range(3):
        await bind(home, f"web-{number}", unique)

    def clock() -> float:
        return home.client.requests * REQUEST_SECONDS

    assert await freed(Actuators(home, settings=FAST, clock=clock), unique, Freeing.ALL) == 2


TOLERANT = {"operator": "Exists"}


@pytest.mark.parametrize(
    ("toleration", "left"),
    [
        (TOLERANT, 0),
        ({**TOLERANT, "effect": "NoExecute"}, 0),
        ({**TOLERANT, "effect": "NoSchedule"}, 1),
        ({**TOLERANT, "effect": "NoExecute", "tolerationSeconds": 60}, 1),
        ({**TOLERANT, "key": "node.kubernetes.io/unreachable"}, 1),
    ],
    ids=["all", "all that evict", "none that evict", "for a minute", "another"],
)
async def test_where_the_cluster_frees_a_pod_that_tolerates_all_taints_is_not_waited_for(
    home: Home, actuators: Actuators, unique: str, toleration: Json, left: int
) -> None:
    await home.client.create(NODES, sample(NODES, unique, annotations=MARKED))
    await bind(home, "web", unique, tolerations=[toleration])
    assert await freed(actuators, unique, Freeing.AWAIT) == left
    await home.client.delete(PODS, "web", namespace=home.namespace)
    assert await freed(actuators, unique, Freeing.AWAIT) == 1  # somebody has: that one goes
