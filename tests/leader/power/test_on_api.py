"""Every row of the document's table, and what follows the last one, by what a leader writes to an API."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing

import pytest

from pp_hostd.kube.resources import BARE_METAL_HOSTS, NODES
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import PowerRequest
from pp_hostd.leader.remedies.power_cycle.table import TABLE, Action
from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from pp_hostd.model.observed import CONTROL_PLANE_LABELS
from tests.agent.objects import running, until, until_found
from tests.leader.in_term import client_for, term
from tests.leader.power.clusters import CLUSTERS, Clusters, Place
from tests.leader.power.site import KEY, PLACE, Site, on_site, settings_for

Row = tuple[int, int, int, int]
HAPPENS: dict[Action, list[str]] = {
    Action.NOTHING: [],
    Action.SWITCH_OFF: ["+kept off"],
    Action.DELETE_NODE: ["+backup", "-node", "-asked", "-kept off"],
    Action.TAKE_REQUEST: ["-asked", "-kept off"],
    Action.SWITCH_ON: ["-kept off"],
}
"""Nobody heeds requests here: a host that is on stays on, and one that is off stays off."""
TURNS_OFF = (1, 1, 0, 1)
"""The leader must have seen that the host turned off: till then this row's host is on."""
LAST = "requested-last"
BARE = "bare-key"


def row_name(row: Row) -> str:
    return "row-" + "".join(map(str, row))


async def in_situation(site: Site, row: Row) -> None:
    node, requested, powered_on, kept_off = row
    name = row_name(row)
    asked = {EXTERNAL_REMEDIATION: ""} if requested else {}
    machine = await site.add(name, node=bool(node), on=bool(powered_on) or row == TURNS_OFF, annotations=asked)
    if kept_off:
        stamp = PowerRequest(f"{PLACE}/{name}", machine["metadata"]["uid"], name, 1)
        change = {"metadata": {"annotations": {KEY: stamp.render()}}}
        await site.client.patch(BARE_METAL_HOSTS, name, change, namespace=PLACE)


async def all_rows(place: Place) -> Site:
    """All at once. When the leader has heeded who asked last, it has looked at all others before."""
    bare = {"metadata": {"annotations": {"reboot.metal3.io": ""}}}
    with closing(client_for(place.admin)) as admin, closing(client_for(place.leader)) as leader:
        site = Site(admin, place.machines, newest=place.newest)
        await site.build()
        for row in TABLE:
            await in_situation(site, row)
        await site.add(LAST)
        await site.add(BARE)
        await admin.patch(BARE_METAL_HOSTS, BARE, bare, namespace=PLACE)
        async with site.watched(), term(leader, settings_for(place.machines)):
            await until(lambda: all(has_happened(site, row) for row in TABLE if row != TURNS_OFF), "rows are heeded")
            await site.switched(row_name(TURNS_OFF), on=False)
            await until(lambda: has_happened(site, TURNS_OFF), "the last row is heeded")
            await site.ask(LAST)
            await until(lambda: site.is_true(LAST, "kept off"), "the last is heeded")
        found = await site.find(BARE_METAL_HOSTS, BARE)
        assert found is not None and "reboot.metal3.io" in found["metadata"]["annotations"]
        return site


def has_happened(site: Site, row: Row) -> bool:
    return len(site.of(row_name(row))) >= len(HAPPENS[TABLE[row][0]])


@pytest.fixture(scope="module", params=CLUSTERS)
def site(clusters: Clusters, request: pytest.FixtureRequest) -> Iterator[Site]:
    with clusters.place(request.param, "openshift") as place:
        yield asyncio.run(all_rows(place))


@pytest.mark.parametrize("row", sorted(TABLE), ids=row_name)
def test_what_a_row_says_is_what_is_written_and_nothing_else(site: Site, row: Row) -> None:
    assert site.of(row_name(row)) == HAPPENS[TABLE[row][0]]


def test_a_key_that_is_not_ours_and_a_machine_that_nobody_asks_for_are_left_alone(site: Site) -> None:
    assert site.of(BARE) == []
    assert site.of(LAST) == ["+asked", "+kept off"]


KEPT = {
    "control-plane": ({"labels": {"machine.openshift.io/cluster-api-machine-role": "master"}}, "control-plane machine"),
    "external": ({"external": True}, "externally provisioned"),
    "unowned": ({"owned": False}, "no controller owns it"),
}


@pytest.mark.parametrize("kind", CLUSTERS)
async def test_the_machine_of_a_host_that_stays_off_is_deleted_unless_nobody_would_make_another(
    clusters: Clusters, kind: str
) -> None:
    settings = settings_for("openshift", on_timeout_seconds=1.0)
    with clusters.place(kind, "openshift") as place:
        async with on_site(place) as (site, leader), running(site.operate()), term(leader, settings):
            site.stuck |= {"owned", *KEPT}
            await site.add("owned")
            for name, (how, _) in KEPT.items():
                await site.add(name, **how)  # type: ignore[arg-type]
            for name in ("control-2", "control-3"):  # so that a quorum is left without the first one
                await leader.create(NODES, {"metadata": {"name": name, "labels": {CONTROL_PLANE_LABELS[0]: ""}}})
            for name in site.stuck:
                await site.ask(name)
            await until(lambda: "-machine" in site.of("owned"), "the owned one is deleted")
            for name, (_, why) in KEPT.items():
                await site.told(why, types=("Warning",))
                assert site.is_true(name, "machine") and not site.is_true(name, "kept off", "node")


@pytest.mark.parametrize("kind", CLUSTERS)
@pytest.mark.parametrize("stage", ["+kept off", "-node", "-asked"])
async def test_a_flow_that_is_switched_off_in_the_middle_leaves_no_host_off(
    clusters: Clusters, kind: str, stage: str
) -> None:
    with clusters.place(kind, "openshift") as place:
        async with on_site(place) as (site, leader), running(site.operate()):
            await site.add("metal")
            async with term(leader, settings_for(place.machines)):
                await site.ask("metal")
                await until(lambda: stage in site.of("metal"), stage)
            async with term(leader, settings_for(place.machines, cycle=False)):
                if stage == "+kept off":  # which the next leader can't finish if it has not seen the host turn off
                    await until_found(lambda: is_on(site, "metal"), "it is on again")
                else:
                    await site.until_restored("metal")
            assert site.of("metal").count("+kept off") == 1


async def is_on(site: Site, name: str) -> bool:
    host = await site.find(BARE_METAL_HOSTS, name)
    return host is not None and host["status"]["poweredOn"] and not site.is_true(name, "kept off", "backup")


@pytest.mark.parametrize("kind", CLUSTERS)
@pytest.mark.parametrize("from_then_on", ["-asked", "-kept off"])
async def test_a_health_check_that_asks_again_gets_one_power_cycle_for_each_fault(
    clusters: Clusters, kind: str, from_then_on: str
) -> None:
    """It asks again whenever its request is gone while the Node is missing: at once, or when the host boots already."""
    with clusters.place(kind, "openshift") as place:
        async with on_site(place) as (site, leader), running(site.operate()), term(leader, settings_for("openshift")):
            site.slow.add("metal")
            await site.add("metal")
            await site.ask("metal")
            await until(lambda: from_then_on in site.of("metal"), from_then_on)
            async with running(site.ask_again("metal")):
                await until(lambda: site.of("metal").count("+asked") > 1, "it asks again")
                await until(lambda: "-kept off" in site.of("metal"), "the host may boot")
                for number in range(3):  # each begins a power cycle, so the leader has looked at the first one too
                    await site.add(f"{LAST}-{number}")
                    await site.ask(f"{LAST}-{number}")
                    await site.until_restored(f"{LAST}-{number}")
                assert site.of("metal").count("+kept off") == 1 and site.is_true("metal", "backup", "asked")
                await site.register("metal")
                await site.until_restored("metal")
            assert site.of("metal").count("+kept off") == 1
