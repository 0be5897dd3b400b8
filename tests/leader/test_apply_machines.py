"""The leader condemns and clears machines, on the version it has seen, in whatever version the cluster serves them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Callable
from uuid import uuid4

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.resources import LEASES, NAMESPACES, NODES, Resource
from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.steps.machines import Clear, Inspect
from pp_hostd.leader.steps.port import (
    MACHINE,
    Inspected,
    Inspection,
    LeaderStep,
    StepEnded,
)
from pp_hostd.model.backup import back_up
from pp_hostd.model.condemnation import Condemned, NotRequested, parse_condemnation
from pp_hostd.model.keys import AGENT, CONDEMNED, EXTERNAL_REMEDIATION
from pp_hostd.model.machine import parse_machine
from pp_hostd.model.observed import parse_node_seen
from pp_hostd.model.record import Unreadable
from pp_hostd.model.step import Written
from tests.agent.objects import KINDS, SINCE, Home, boottime
from tests.contract.objects import annotate, uid_of, version_of
from tests.leader.applying import Actuators, read

Step = Callable[[str, Json], LeaderStep]
STEPS: dict[str, Step] = {
    "condemn": lambda machine_key, machine: Condemn(machine_key, uid_of(machine), version_of(machine), 7),
    "clear": lambda machine_key, machine: Clear(machine_key, uid_of(machine), version_of(machine), 7),
}
every_step = pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, client: ApiClient, namespace: str) -> Home:
    return Home(client, request.param, namespace)


@pytest.fixture
def actuators(home: Home) -> Actuators:
    return Actuators(home)


async def machine_of(home: Home, name: str) -> Json:
    return await home.client.get(home.kind, name, namespace=home.where)


async def test_a_machine_is_condemned_and_cleared_and_its_id_stays(
    home: Home, actuators: Actuators, unique: str
) -> None:
    machine_key, machine = home.machine_key(unique), await home.enrol(unique)
    await actuators.done(STEPS["condemn"](machine_key, machine))
    condemned = await machine_of(home, unique)
    assert parse_condemnation(condemned["metadata"]) == Condemned(7, SINCE)
    assert condemned["metadata"]["labels"][CONDEMNED] == ""
    await actuators.done(STEPS["clear"](machine_key, condemned))
    assert parse_condemnation((await machine_of(home, unique))["metadata"]) == NotRequested(7)
    assert actuators.shown == [(MACHINE, machine_key, version_of(each)) for each in (machine, condemned)]


@every_step
async def test_a_machine_that_has_changed_since_is_a_conflict(
    home: Home, actuators: Actuators, unique: str, step: Step
) -> None:
    machine = await home.enrol(unique)
    changed = await home.client.patch(home.kind, unique, annotate(note="new"), namespace=home.where)
    assert await actuators.refused(step(home.machine_key(unique), machine))
    assert await machine_of(home, unique) == changed


@every_step
async def test_another_machine_of_that_name_is_a_conflict(
    home: Home, actuators: Actuators, unique: str, step: Step
) -> None:
    machine = await home.enrol(unique)
    foreign = {"metadata": {**machine["metadata"], "uid": "00000000-0000-4000-8000-000000000000"}}
    assert await actuators.refused(step(home.machine_key(unique), foreign))
    assert await machine_of(home, unique) == machine


@every_step
async def test_a_machine_that_is_gone_is_a_conflict(home: Home, actuators: Actuators, unique: str, step: Step) -> None:
    machine = await home.enrol(unique)
    await home.client.delete(home.kind, unique, namespace=home.where)
    assert "not found" in await actuators.refused(step(home.machine_key(unique), machine))


async def inspection(actuators: Actuators, home: Home, name: str) -> Inspection:
    before = boottime()
    await actuators.done(Inspect(home.machine_key(name), name), name)
    inspected = actuators.news[-2]
    assert isinstance(inspected, Inspected) and inspected.node == name
    assert before < inspected.inspection.began_at < inspected.inspection.ended_at < boottime()
    return inspected.inspection


async def failure(actuators: Actuators, home: Home, name: str) -> str:
    """Of an inspection that found nothing."""
    ended = await actuators.do(Inspect(home.machine_key(name), name))
    assert (ended.written, actuators.news) == (Written.NOT_DONE, [ended])
    return ended.sentence


async def test_an_inspection_shows_machine_node_backup_and_the_kubelet_s_lease(
    home: Home, actuators: Actuators, unique: str
) -> None:
    await home.enrol(unique)
    await home.condemn(unique, 12)
    for renewed in ("2026-03-01T12:00:00.000000Z", "2026-03-01T12:00:10.000000Z"):
        await renew_lease(home.client, unique, renewed)
        found = await inspection(actuators, home, unique)
        node = await home.client.get(NODES, unique)
        assert found.machine == parse_machine(await machine_of(home, unique))
        assert found.node == parse_node_seen(node, home.machines)
        assert found.backup == back_up(node, 12)
        assert found.kubelet_renewed == renewed


async def renew_lease(client: ApiClient, name: str, renewed: str) -> None:
    if await read(client, NAMESPACES, "kube-node-lease") is None:
        await client.create(NAMESPACES, {"metadata": {"name": "kube-node-lease"}})
    if await read(client, LEASES, name, "kube-node-lease") is None:
        await client.create(LEASES, {"metadata": {"name": name}}, namespace="kube-node-lease")
    await client.patch(LEASES, name, {"spec": {"renewTime": renewed}}, namespace="kube-node-lease")


async def test_an_inspection_says_what_does_not_exist(home: Home, actuators: Actuators, unique: str) -> None:
    found = await inspection(actuators, home, unique)
    assert (found.machine, found.node, found.backup, found.kubelet_renewed) == (None, None, None, "")


async def test_of_a_machine_that_is_not_condemned_no_backup_is_made(
    home: Home, actuators: Actuators, unique: str
) -> None:
    await home.enrol(unique)
    found = await inspection(actuators, home, unique)
    assert found.machine is not None and found.node is not None
    assert found.backup is None


async def test_a_condemnation_that_contradicts_itself_is_shown_as_such(
    home: Home, actuators: Actuators, unique: str
) -> None:
    await home.enrol(unique)
    without_id = {"metadata": {"annotations": {EXTERNAL_REMEDIATION: "2026-03-01T12:00:00Z"}}}
    await home.client.patch(home.kind, unique, without_id, namespace=home.where)
    found = await inspection(actuators, home, unique)
    assert found.machine is not None
    assert isinstance(found.machine.condemnation, Unreadable)


async def test_whoever_may_not_read_finds_nothing_out(
    home: Home, client_of: Callable[[str], ApiClient], unique: str
) -> None:
    await home.enrol(unique)
    assert "forbidden" in await failure(Actuators(home, client_of("nobody")), home, unique)


class Eventful(ApiClient):
    """Something happens to every object that is read."""

    after: Callable[[Json], Any]

    async def get(self, resource: Resource, name: str, **options: Any) -> Json:
        found = await super().get(resource, name, **options)
        await self.after(found)
        return found


@pytest.fixture
def eventful(kubeconfig_of: Callable[[str], Kubeconfig]) -> Iterator[Eventful]:
    client = Eventful(kubeconfig_of("admin"), deadline_seconds=10)
    yield client
    client.close()


async def test_what_cannot_be_read_is_a_failure(home: Home, eventful: Eventful, unique: str) -> None:
    async def garbles(found: Json) -> None:
        del found["metadata"]["resourceVersion"]

    eventful.after = garbles
    await home.enrol(unique)
    sentence = await failure(Actuators(home, eventful), home, unique)
    assert sentence.startswith(f"reading {home.machine_key(unique)}: the machine is unreadable: resourceVersion")


async def test_where_nodes_are_the_machines_both_are_seen_in_one_state(
    client: ApiClient, namespace: str, eventful: Eventful, unique: str
) -> None:
    async def changes(_found: Json) -> None:
        await client.patch(NODES, unique, annotate(note=uuid4().hex))

    eventful.after = changes
    home = Home(client, "node", namespace)
    await home.enrol(unique)
    found = await inspection(Actuators(home, eventful), home, unique)
    assert found.machine is not None and found.node is not None
    assert found.machine.resource_version == found.node.node.resource_version


async def test_a_garbled_promise_does_not_hide_the_node(home: Home, actuators: Actuators, unique: str) -> None:
    await home.enrol(unique)
    await home.client.patch(NODES, unique, annotate(**{AGENT: "garbage"}))
    found = await inspection(actuators, home, unique)
    assert found.node is not None
    assert isinstance(found.node.node.agent, Unreadable)
    assert isinstance(actuators.news[-1], StepEnded)
