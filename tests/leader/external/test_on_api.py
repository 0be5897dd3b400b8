"""Remediation objects by power, as health checks make them, by what a leader writes to an API."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pp_hostd.kube.resources import CAPI_CLUSTERS, NODES
from pp_hostd.leader.leader_term import wallclock
from pp_hostd.model.keys import CLUSTER_NAME
from pp_hostd.model.moment import render_moment
from tests.agent.objects import running, until
from tests.leader.external.objects import DELETING, KINDS, PROPOSED, RUNNING, TODAY, WAITING, Objects
from tests.leader.in_term import term
from tests.leader.power.clusters import CLUSTERS, Clusters
from tests.leader.power.site import PLACE, Site, on_site, settings_for

ON_EACH = pytest.mark.parametrize("cluster", CLUSTERS)
OF_EACH = pytest.mark.parametrize("form", KINDS)


@asynccontextmanager
async def objects(clusters: Clusters, cluster: str, form: str) -> AsyncIterator[Objects]:
    """A leader leads; the operator is not there yet."""
    with clusters.place(cluster, "cluster-api") as place:
        async with on_site(place) as (site, leader), term(leader, settings_for(place.machines)):
            yield Objects(site, place, form)


@ON_EACH
@OF_EACH
async def test_a_host_that_is_still_on_is_left_alone_and_one_that_comes_back_is_restored(
    clusters: Clusters, cluster: str, form: str
) -> None:
    async with objects(clusters, cluster, form) as them:
        site = them.site
        await site.add("metal")
        await them.make("metal")
        await them.until("metal", phase=RUNNING[form])
        await until(lambda: site.is_true("metal", "kept off"), "it is asked to go off")
        node = await site.find(NODES, "metal")
        assert node is not None and len(node["spec"]["taints"]) == 1 and "unschedulable" not in node["spec"]
        async with running(site.operate()):
            found = await them.until("metal", phase=WAITING[form])
            assert found["status"]["lastRemediated"]
            await them.until_let_go("metal")
            await site.until_restored("metal")
            assert site.of("metal").count("-node") == 1
            await site.client.delete(them.kind, "metal", namespace=PLACE)
            assert await site.find(them.kind, "metal") is None


@pytest.mark.parametrize("cluster", ["embedded", "real"])
@OF_EACH
async def test_it_is_tried_again_below_the_limit_and_escalated_at_it(
    clusters: Clusters, cluster: str, form: str
) -> None:
    """Not with the published definitions, in which a retry has to wait for minutes."""
    async with objects(clusters, cluster, form) as them:
        site = them.site
        site.sick.add("metal")
        await site.add("metal")
        async with running(site.operate()):
            await them.make("metal")
            await them.until("metal", retryCount=1)
            if form == PROPOSED:
                await until(lambda: "-machine" in site.of("metal"), "the Machine is deleted")
            else:
                await them.until("metal", phase=DELETING[form])
                await them.until_let_go("metal")
                assert await escalation(site, "metal") == [("False", "WaitingForRemediation")]
            assert site.of("metal").count("-node") == 2
            assert not site.is_true("metal", "kept off", "asked", "backup")


async def test_todays_owners_are_told_by_both_lists_of_conditions(clusters: Clusters) -> None:
    """After the last attempt, which another leader has made."""
    async with objects(clusters, "published", TODAY) as them:
        site, moment = them.site, render_moment(wallclock())
        await site.add("metal")
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": moment}
        status = {"deprecated": {"v1beta1": {"conditions": [ready]}}}
        await site.tell(site.kind, "metal", status)
        await them.make("metal")
        await until(lambda: site.is_true("metal", "kept off"), "it is under way")
        await site.tell(them.kind, "metal", {"phase": DELETING[TODAY], "retryCount": 1})
        await them.until_let_go("metal")
        assert await escalation(site, "metal") == [("False", "WaitingForRemediation")] * 2


async def escalation(site: Site, name: str) -> list[tuple[str, str]]:
    """Status and reason of the condition for owners, in each list of conditions."""
    found = await site.find(site.kind, name)
    assert found is not None
    lists = [
        found["status"].get("conditions"),
        found["status"].get("deprecated", {}).get("v1beta1", {}).get("conditions"),
    ]
    told = [each for conditions in lists for each in conditions or () if each["type"] == "OwnerRemediated"]
    return [(each["status"], each["reason"]) for each in told]


@ON_EACH
@OF_EACH
async def test_an_object_that_is_deleted_while_its_host_is_still_on_leaves_no_trace(
    clusters: Clusters, cluster: str, form: str
) -> None:
    async with objects(clusters, cluster, form) as them:
        site = them.site
        await site.add("metal")
        await them.make("metal")
        await until(lambda: site.is_true("metal", "kept off"), "it is asked to go off")
        await site.client.delete(them.kind, "metal", namespace=PLACE)
        await them.until_let_go("metal")
        assert await site.find(them.kind, "metal") is None
        await site.until_restored("metal")
        assert "-node" not in site.of("metal")


@ON_EACH
async def test_what_the_health_check_wrote_on_the_machine_becomes_true(clusters: Clusters, cluster: str) -> None:
    async with objects(clusters, cluster, TODAY) as them:
        site, moment = them.site, render_moment(wallclock())
        await site.add("metal")
        await them.make("metal")
        mark = {"type": "ExternallyRemediated", "status": "False", "reason": "WaitingForRemediation"}
        conditions = {"conditions": [{**mark, "message": "", "lastTransitionTime": moment}]}
        newest = site.kind.version == "v1beta2"
        await site.tell(site.kind, "metal", conditions if newest else {"v1beta2": conditions})
        async with running(site.operate()):
            await them.until("metal", phase=WAITING[TODAY])
            await them.until_let_go("metal")
        machine = await site.find(site.kind, "metal")
        assert machine is not None
        (found,) = (machine["status"] if newest else machine["status"]["v1beta2"])["conditions"]
        assert (found["type"], found["status"], found["reason"]) == ("ExternallyRemediated", "True", "Succeeded")


@ON_EACH
async def test_an_object_waits_while_the_cluster_of_its_machine_is_paused(clusters: Clusters, cluster: str) -> None:
    async with objects(clusters, cluster, TODAY) as them:
        site = them.site
        await site.client.create(
            CAPI_CLUSTERS, {"metadata": {"name": "prod"}, "spec": {"paused": True}}, namespace=PLACE
        )
        await site.add("metal", labels={CLUSTER_NAME: "prod"})
        await them.make("metal")
        await site.told(f"Cluster {PLACE}/prod is paused (spec.paused)")
        assert site.of("metal").count("+asked") == 0
        async with running(site.operate()):
            await site.client.patch(CAPI_CLUSTERS, "prod", {"spec": {"paused": False}}, namespace=PLACE)
            await them.until("metal", phase=WAITING[TODAY])
            await site.until_restored("metal")


@ON_EACH
async def test_of_two_objects_for_one_machine_one_runs_and_the_other_says_why_it_waits(
    clusters: Clusters, cluster: str
) -> None:
    async with objects(clusters, cluster, TODAY) as first:
        site, second = first.site, Objects(first.site, first.place, PROPOSED)
        await site.add("metal")
        await first.make("metal")
        await until(lambda: site.is_true("metal", "kept off"), "the first runs")
        await second.make("metal")
        await site.told("waits its turn: Metal3Remediation metal/metal has the machine remedied")
        found = await site.find(second.kind, "metal")
        assert found is not None and "phase" not in found.get("status", {})
        async with running(site.operate()):
            await first.until("metal", phase=WAITING[TODAY])
            assert site.of("metal").count("-node") == site.of("metal").count("+kept off") == 1


@ON_EACH
async def test_an_object_waits_while_a_person_has_asked_before_it(clusters: Clusters, cluster: str) -> None:
    async with objects(clusters, cluster, TODAY) as them:
        site = them.site
        await site.add("metal")
        await site.ask("metal")
        await until(lambda: site.is_true("metal", "kept off"), "the annotation is heeded")
        await them.make("metal")
        await site.told("the machine's annotation requests its remediation already")
        assert site.of("metal").count("+kept off") == 1
