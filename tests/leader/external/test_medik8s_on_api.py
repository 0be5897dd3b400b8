"""Objects exactly as medik8s' NodeHealthCheck makes them, by what a leader writes to an API."""

from __future__ import annotations

import asyncio
from contextlib import closing

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NODES, OPENSHIFT_MACHINES
from pp_hostd.model.keys import REQUESTED_BY
from tests.agent.objects import until_found
from tests.leader.external.enrolled import (
    LABELS,
    MACHINES_IN,
    OBJECTS,
    TEMPLATES,
    EnrolledNodes,
    enrolled,
    settings_for,
)
from tests.leader.external.medik8s import TEMPLATE
from tests.leader.in_term import client_for, term
from tests.leader.power.clusters import Clusters, Place
from tests.leader.power.test_killed import Moment, Mortal, late_write

ON_EACH = pytest.mark.parametrize(
    ("cluster", "machines"),
    [
        ("embedded", "node"),
        ("real", "node"),
        ("embedded", "openshift"),
        ("real", "openshift"),
        ("published", "openshift"),
    ],
)
MEDIK8S = "medik8s"


def template_in(namespace: str, **spec: int) -> Json:
    metadata = {**TEMPLATE["metadata"], "namespace": namespace}
    return {**TEMPLATE, "metadata": metadata, **({"spec": {"template": {"spec": spec}}} if spec else {})}


async def applied(nodes: EnrolledNodes, template: Json) -> Json:
    await nodes.client.create(TEMPLATES, template, namespace=template["metadata"]["namespace"])
    return template


@ON_EACH
@pytest.mark.parametrize("namespace", [MEDIK8S, MACHINES_IN])
async def test_its_object_has_the_node_remedied_once_and_goes_when_it_is_deleted(
    clusters: Clusters, cluster: str, machines: str, namespace: str
) -> None:
    """In the namespace of OpenShift's Machines the Machine owns the object, too."""
    with clusters.place(cluster, machines) as place:
        async with enrolled(place, MEDIK8S) as nodes:
            with closing(client_for(place.leader)) as leader:
                async with term(leader, settings_for(machines)):
                    machine = await nodes.add("worker")
                    before = await nodes.client.get(NODES, "worker")
                    await nodes.make("worker", await applied(nodes, template_in(namespace)), machine)
                    found = await nodes.until_reason("worker", namespace, "Succeeded")
                    assert found["status"]["phase"] == "Waiting"
                    node = await nodes.client.get(NODES, "worker")
                    assert node["metadata"]["uid"] != before["metadata"]["uid"]
                    assert LABELS.items() <= node["metadata"]["labels"].items()
                    assert [each["type"] for each in node["status"]["conditions"]] == ["Ready"]
                    assert REQUESTED_BY not in node["metadata"]["annotations"]
                    if machine is not None:
                        after = await nodes.client.get(OPENSHIFT_MACHINES, "worker", namespace=MACHINES_IN)
                        assert REQUESTED_BY not in after["metadata"].get("annotations", {})
                    await nodes.client.delete(OBJECTS, "worker", namespace=namespace)
                    assert await nodes.find(OBJECTS, "worker", namespace) is None
                    assert nodes.deleted["worker"] == 1


@pytest.mark.parametrize("cluster", ["embedded", "real"])
async def test_a_node_that_stays_silent_fails_at_last_and_no_machine_is_written_to_it(
    clusters: Clusters, cluster: str
) -> None:
    with clusters.place(cluster, "node") as place:
        async with enrolled(place, MEDIK8S) as nodes:
            nodes.silent.add("worker")
            with closing(client_for(place.leader)) as leader:
                async with term(leader, settings_for("node")):
                    await nodes.add("worker")
                    template = await applied(nodes, template_in(MEDIK8S, retryLimit=1, timeoutSeconds=1))
                    await nodes.make("worker", template, None)
                    found = await nodes.until_reason("worker", MEDIK8S, "NotEscalated")
                    assert (found["status"]["phase"], found["status"]["retryCount"]) == ("Failed", 1)
                    assert "there is no Machine" in found["status"]["conditions"][0]["message"]
                    node = await nodes.client.get(NODES, "worker")
                    assert [each["type"] for each in node["status"]["conditions"]] == ["Ready"]
                    assert REQUESTED_BY not in node["metadata"]["annotations"]
                    assert nodes.deleted["worker"] == 1  # whose host has not come back since: nothing is left to reset


async def survived(nodes: EnrolledNodes, place: Place, template: Json, ends_at: int, moment: Moment) -> bool:
    """Whether a leader ended at that write; another has finished it then."""
    name = f"worker-{ends_at}-{moment.name.lower()}"
    await nodes.add(name)

    async def done() -> None:
        await nodes.until_reason(name, MEDIK8S, "Succeeded")

    with closing(Mortal(place.leader, ends_at, moment)) as mortal, closing(client_for(place.leader)) as next_one:
        async with term(mortal, settings_for("node")):
            await nodes.make(name, template, None)
            doing, ending = asyncio.ensure_future(done()), asyncio.ensure_future(mortal.ended.wait())
            await asyncio.wait({doing, ending}, return_when=asyncio.FIRST_COMPLETED)
            doing.cancel(), ending.cancel()
        async with term(next_one, settings_for("node")):
            await done()
            if mortal.late is not None:
                await late_write(mortal.late)
                await all_seen(nodes, template, f"after-{name}")
                await done()
    assert nodes.deleted[name] == 1
    await nodes.client.delete(OBJECTS, name, namespace=MEDIK8S)
    return mortal.ended.is_set()


async def all_seen(nodes: EnrolledNodes, template: Json, name: str) -> None:
    """When the leader has dealt with this one, it has looked at all others before."""
    await nodes.add(name)
    await nodes.make(name, template, None)
    await nodes.until_reason(name, MEDIK8S, "Succeeded")


@pytest.mark.parametrize("moment", [Moment.NEVER, Moment.UNTOLD, Moment.LATE])
async def test_leaders_that_end_at_any_write_have_the_node_deleted_once(clusters: Clusters, moment: Moment) -> None:
    with clusters.place("embedded", "node") as place:
        async with enrolled(place, MEDIK8S) as nodes:
            template, ends_at = await applied(nodes, template_in(MEDIK8S)), 1
            while await survived(nodes, place, template, ends_at, moment):
                ends_at += 1
            assert ends_at > 10


async def test_an_object_that_medik8s_deletes_while_the_node_is_missing_goes_once_that_is_back(
    clusters: Clusters,
) -> None:
    with clusters.place("embedded", "node") as place:
        async with enrolled(place, MEDIK8S) as nodes:
            with closing(client_for(place.leader)) as leader:
                async with term(leader, settings_for("node")):
                    await nodes.add("worker")
                    await nodes.make("worker", await applied(nodes, template_in(MEDIK8S)), None)
                    await until_found(lambda: is_deleted(nodes, "worker"), "the Node was deleted")
                    await nodes.client.delete(OBJECTS, "worker", namespace=MEDIK8S)
                    await until_found(lambda: is_gone(nodes, "worker"), "the object is gone")
                    assert await nodes.find(NODES, "worker") is not None


async def is_deleted(nodes: EnrolledNodes, name: str) -> bool:
    return nodes.deleted[name] == 1


async def is_gone(nodes: EnrolledNodes, name: str) -> bool:
    return await nodes.find(OBJECTS, name, MEDIK8S) is None
