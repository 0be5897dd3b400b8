"""The leader's view of a cluster: every machine with its Node, and no broken condemnation as an unbroken one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Callable

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.resources import NODES
from pp_hostd.leader.observe import Observer
from pp_hostd.leader.steps.port import (
    MACHINE,
    NODE,
)
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.keys import EXTERNAL_REMEDIATION, FREEING
from pp_hostd.model.observed import MachineSeen, NodeSeen
from pp_hostd.model.record import Unreadable
from tests.agent.objects import HANG_SECONDS, KINDS, SINCE, Home, running, until
from tests.contract.objects import annotate, uid_of, version_of
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial
from tests.leader.cable import laid_cable

ClientOf = Callable[[str], ApiClient]
KubeconfigOf = Callable[[str], Kubeconfig]


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, client: ApiClient, namespace: str) -> Home:
    return Home(client, request.param, namespace)


class Looking:
    """A running observer, and the machine of one test in it."""

    def __init__(self, home: Home, name: str, client: ApiClient) -> None:
        self.events = 0
        self.observer = Observer(client, home.machines, self._count)
        self._home, self._name = home, name

    def _count(self) -> None:
        self.events += 1

    @property
    def node(self) -> NodeSeen:
        return self.observer.observed.nodes[self._name]

    @property
    def machine(self) -> MachineSeen:
        return self.observer.observed.machines[self._home.machine_key(self._name)]

    @property
    def requested(self) -> bool:
        return self._home.machine_key(self._name) in self.observer.observed.requests

    async def until_seen(self, written: Json) -> None:
        """That version of the machine, or a later one."""
        version = version_of(written)
        await until(lambda: int(self.machine.machine.resource_version) >= int(version), "the write is seen")

    async def patch(self, metadata: Json) -> None:
        home = self._home
        written = await home.client.patch(home.kind, self._name, {"metadata": metadata}, namespace=home.where)
        await self.until_seen(written)


@asynccontextmanager
async def looking(home: Home, name: str, client: ApiClient | None = None) -> AsyncIterator[Looking]:
    """From when all is listed."""
    found = Looking(home, name, client or home.client)
    async with running(found.observer.run()):
        await until(lambda: found.observer.ready, "everything is listed")
        yield found


async def test_machine_and_node_are_seen_once_everything_is_listed(home: Home, unique: str) -> None:
    created = await home.enrol(unique)
    seen = Looking(home, unique, home.client)
    assert not seen.observer.ready
    assert "nodes have not been listed yet" in seen.observer.trouble
    async with looking(home, unique) as seen:
        assert seen.node.machine_key == home.machine_key(unique)
        machine = seen.machine.machine
        assert (machine.uid, machine.node) == (uid_of(created), unique)
        assert not seen.requested
        await until(lambda: "listed" not in seen.observer.trouble, "also what not every cluster has is listed")


async def test_a_request_is_seen_for_as_long_as_it_stands(home: Home, unique: str) -> None:
    await home.enrol(unique)
    async with looking(home, unique) as seen:
        events = seen.events
        await seen.patch(annotate(**{EXTERNAL_REMEDIATION: ""})["metadata"])
        assert seen.requested
        assert seen.events > events
        await seen.patch(Condemned(7, SINCE).render())
        assert seen.requested
        assert seen.machine.machine.condemnation == Condemned(7, SINCE)
        await seen.patch(NotRequested(7).render())
        assert not seen.requested


async def test_a_condemnation_that_was_lifted_and_put_back_is_another_stretch(home: Home, unique: str) -> None:
    await home.enrol(unique)
    await home.condemn(unique, 7)
    async with looking(home, unique) as seen:
        before = seen.machine
        lifted = {"metadata": NotRequested(7).render()}
        await home.client.patch(home.kind, unique, lifted, namespace=home.where)
        await seen.until_seen(await home.condemn(unique, 7))
        assert seen.machine.machine.condemnation == before.machine.condemnation
        assert seen.machine.unbroken_since != before.unbroken_since


async def test_another_id_is_another_stretch_and_any_other_change_is_not(home: Home, unique: str) -> None:
    await home.enrol(unique)
    await home.condemn(unique, 7)
    async with looking(home, unique) as seen:
        first = seen.machine.unbroken_since
        await seen.patch({"labels": {"rack": "4"}})
        assert seen.machine.unbroken_since == first
        await seen.patch(Condemned(8, SINCE).render())
        assert seen.machine.unbroken_since != first


async def test_a_machine_made_anew_under_the_same_name_is_another_stretch(home: Home, unique: str) -> None:
    await home.enrol(unique)
    await home.condemn(unique)
    async with looking(home, unique) as seen:
        before, revision = seen.machine, seen.observer.revision_of_nodes
        await home.client.delete(home.kind, unique, namespace=home.where)
        await until(lambda: home.machine_key(unique) not in seen.observer.observed.machines, "it is seen gone")
        assert home.machine_key(unique) not in seen.observer.observed.requests
        if home.kind is NODES:
            await home.enrol(unique)
        else:
            await home.create_machine(unique, node=unique)
        await until(lambda: home.machine_key(unique) in seen.observer.observed.machines, "the new one is seen")
        await seen.until_seen(await home.condemn(unique))
        assert seen.machine.machine.uid != before.machine.uid
        assert seen.machine.unbroken_since != before.unbroken_since
        assert seen.observer.revision_of_nodes > revision


async def test_a_watch_that_goes_on_after_a_cut_keeps_the_stretch(
    home: Home, kubeconfig_of: KubeconfigOf, unique: str
) -> None:
    await home.enrol(unique)
    await home.condemn(unique, 7)
    async with laid_cable(kubeconfig_of("admin")) as cable, looking(home, unique, cable.client) as seen:
        before = seen.machine.unbroken_since
        cable.cut()
        await until(lambda: "unreachable" in seen.observer.trouble, "the cut is told")
        assert seen.observer.ready
        written = await home.client.patch(home.kind, unique, {"metadata": {"labels": {"a": "b"}}}, namespace=home.where)
        cable.mend()
        await seen.until_seen(written)
        assert seen.machine.unbroken_since == before
        assert f"watching {home.kind.plural}: " not in seen.observer.trouble


async def test_what_happened_during_a_cut_is_not_overlooked(
    home: Home, kubeconfig_of: KubeconfigOf, unique: str
) -> None:
    await home.enrol(unique)
    await home.condemn(unique, 7)
    async with laid_cable(kubeconfig_of("admin")) as cable, looking(home, unique, cable.client) as seen:
        before = seen.machine.unbroken_since
        cable.cut()
        lifted = {"metadata": NotRequested(7).render()}
        await home.client.patch(home.kind, unique, lifted, namespace=home.where)
        written = await home.condemn(unique, 7)
        cable.mend()
        await seen.until_seen(written)
        assert seen.machine.unbroken_since != before


async def test_a_condemnation_that_is_garbage_is_a_request_that_can_not_be_read(home: Home, unique: str) -> None:
    await home.enrol(unique)
    async with looking(home, unique) as seen:
        await seen.patch(annotate(**{EXTERNAL_REMEDIATION: "soon"})["metadata"])
        assert seen.requested
        assert isinstance(seen.machine.machine.condemnation, Unreadable)
        await seen.patch(NotRequested(0).render())


async def test_a_node_without_an_address_is_seen_without_one_until_it_has_one(home: Home, unique: str) -> None:
    await home.enrol(unique)
    async with looking(home, unique) as seen:
        assert seen.node.node.address is None
        revision = seen.observer.revision_of_nodes
        status = {"status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.7"}]}}
        await home.client.patch(NODES, unique, status, subresource="status")
        await until(lambda: seen.node.node.address == "192.0.2.7", "the address is seen")
        assert seen.observer.revision_of_nodes > revision


async def test_nodes_with_marks_of_the_leader_are_found_at_once(home: Home, unique: str) -> None:
    await home.enrol(unique)
    async with looking(home, unique) as seen:
        assert unique not in seen.observer.observed.marked
        for value, marked in (("7", True), ("garbage", True), (None, False)):
            await home.client.patch(NODES, unique, annotate(**{FREEING: value}))
            await until(lambda marked=marked: (unique in seen.observer.observed.marked) is marked, "it is seen")  # type: ignore[misc]


async def test_a_write_is_waited_for_until_it_is_seen(home: Home, unique: str) -> None:
    machine = await home.enrol(unique)
    async with looking(home, unique) as seen:
        machine_key, version = home.machine_key(unique), version_of(machine)
        condemned = await home.condemn(unique)
        assert await seen.observer.shows(MACHINE, machine_key, version, HANG_SECONDS)
        assert seen.requested
        assert not await seen.observer.shows(MACHINE, machine_key, version_of(condemned), 0.05)
        await home.client.delete(home.kind, unique, namespace=home.where)
        assert await seen.observer.shows(MACHINE, machine_key, version_of(condemned), HANG_SECONDS)
        assert machine_key not in seen.observer.observed.machines
        assert not await seen.observer.shows(MACHINE, machine_key, None, 0.05)


async def test_an_older_version_than_the_one_that_was_read_is_no_effect_of_a_write(home: Home, unique: str) -> None:
    await home.enrol(unique)
    async with looking(home, unique) as seen:
        later = str(int(seen.node.node.resource_version) + 1_000_000)
        assert not await seen.observer.shows(NODE, unique, later, 0.05)


async def test_whoever_may_not_list_is_never_ready_and_told_why(home: Home, client_of: ClientOf) -> None:
    observer = Observer(client_of("nobody"), home.machines, lambda: None)
    async with running(observer.run()):
        await until(lambda: "listing nodes: forbidden" in observer.trouble, "it is told")
    assert not observer.ready


async def test_machines_that_are_not_served_are_looked_for_again_and_again(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("404")
    observer = Observer(dial(port.url), "cluster-api", lambda: None)

    def asked() -> list[str]:
        found = (seen.target.partition("/machines") for seen in port.requests)
        paths = [path for path, kind, _ in found if kind]
        return [path.rpartition("/")[2] for path in paths if path.startswith("/apis/cluster.x-k8s.io/")]

    async with running(observer.run()):
        await until(lambda: len(asked()) > 2, "both versions were tried, and one again")
    assert asked()[:3] == ["v1beta2", "v1beta1", "v1beta2"]
    assert "listing machines: not found" in observer.trouble
    assert not observer.ready
