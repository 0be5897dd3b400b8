"""A read of a machine says only what the API itself says of that very machine, and is dated by its beginning."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable
from dataclasses import replace
from typing import Callable

import pytest

from pp_hostd.agent.sense.api import MachineReader, OwnMachine, backup_exists
from pp_hostd.kube.client import MERGE_PATCH, ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError, Outcome, is_missing, is_unserved
from pp_hostd.kube.resources import CAPI_MACHINES, CONFIG_MAPS, NODES, Resource
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.evidence import Read
from pp_hostd.model.keys import EXTERNAL_REMEDIATION, NAMESPACE, backup_name
from pp_hostd.model.machine import Machine
from tests.agent.objects import KINDS, SINCE, Home, boottime, create_our_namespace
from tests.contract.objects import annotate, config_map, sample, uid_of, version_of
from tests.harness.controlplane import DEFINITIONS, RealCluster
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial

ClientOf = Callable[[str], ApiClient]
DEADLINE_SECONDS = 10.0
with_machines = pytest.mark.parametrize("machines", ["openshift", "cluster-api"])


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, client: ApiClient, namespace: str) -> Home:
    return Home(client, request.param, namespace)


async def reader_of(home: Home, client: ApiClient | None = None) -> MachineReader:
    """One that has found out which version is served here."""
    reader = MachineReader(client or home.client, home.machines, boottime)
    await reader.read(home.machine_key("nobody"), DEADLINE_SECONDS)
    return reader


async def own_machine(home: Home, node: str) -> OwnMachine:
    return OwnMachine(await reader_of(home), node, DEADLINE_SECONDS)


def failure_of(read: Read) -> str:
    assert (read.machine, read.missing) == (None, False)
    return read.failure


async def test_a_host_finds_its_own_machine_through_its_node(home: Home, unique: str) -> None:
    created = await home.enrol(unique)
    before = boottime()
    own = await own_machine(home, unique)
    read = await own.read()
    assert before < read.began_at < read.ended_at < boottime()
    assert read.machine == Machine(
        home.where, unique, uid_of(created), version_of(created), NotRequested(0), node=unique
    )
    assert own.machine_key == home.machine_key(unique) == read.machine.machine_key
    assert (read.missing, read.failure) == (False, "")


async def test_a_read_is_dated_by_when_it_began(home: Home, unique: str) -> None:
    await home.enrol(unique)
    a_second_a_step = itertools.count(0.0)
    reader = MachineReader(home.client, home.machines, lambda: next(a_second_a_step))
    read = await reader.read(home.machine_key(unique), DEADLINE_SECONDS)
    assert (read.began_at, read.ended_at) == (0.0, 1.0)


async def test_a_condemnation_is_read_with_its_id(home: Home, unique: str) -> None:
    await home.enrol(unique)
    await home.condemn(unique, 12)
    read = await (await own_machine(home, unique)).read()
    assert read.machine is not None
    assert read.machine.condemnation == Condemned(12, SINCE)


async def test_a_machine_that_does_not_exist_is_missing(home: Home, unique: str) -> None:
    read = await (await reader_of(home)).read(home.machine_key(unique), DEADLINE_SECONDS)
    assert (read.machine, read.missing, read.failure) == (None, True, "")


async def test_what_contradicts_itself_is_a_failed_read(home: Home, unique: str) -> None:
    await home.enrol(unique)
    without_id = {"metadata": {"annotations": {EXTERNAL_REMEDIATION: "2026-03-01T12:00:00Z"}}}
    await home.client.patch(home.kind, unique, without_id, namespace=home.where)
    failure = failure_of(await (await own_machine(home, unique)).read())
    assert failure.startswith(
        f"reading {home.machine_key(unique)}: the condemnation is unreadable: {EXTERNAL_REMEDIATION}"
    )


async def test_whoever_may_not_read_has_a_failed_read(home: Home, client_of: ClientOf, unique: str) -> None:
    await home.enrol(unique)
    reader = await reader_of(home, client_of("nobody"))
    assert "forbidden" in failure_of(await reader.read(home.machine_key(unique), DEADLINE_SECONDS))
    if home.kind is not NODES:
        failure = failure_of(await OwnMachine(reader, unique, DEADLINE_SECONDS).read())
        assert failure.startswith(f"finding the machine of Node {unique}: reading Node {unique}: forbidden")


async def test_a_question_about_another_kind_of_machine_is_a_failed_read(home: Home, unique: str) -> None:
    machine_key = unique if home.where else f"{home.namespace}/{unique}"
    failure = failure_of(await (await reader_of(home)).read(machine_key, DEADLINE_SECONDS))
    assert failure.endswith(f"it is not that of a {home.kind.kind}, and api.machines is {home.machines}")


@with_machines
async def test_a_machine_of_another_node_is_no_proof_and_the_own_one_is_found_again(
    client: ApiClient, namespace: str, unique: str, machines: str
) -> None:
    home = Home(client, machines, namespace)
    await home.enrol(unique)
    own = await own_machine(home, unique)
    assert (await own.read()).machine is not None
    taken = {"status": {"nodeRef": {"kind": "Node", "name": "another"}}}
    await client.patch(home.kind, unique, taken, namespace=namespace, subresource="status")
    failure = failure_of(await own.read())
    assert failure == f"machine {namespace}/{unique} belongs to Node another, not to {unique}"
    await home.create_machine(f"{unique}-2", node=unique)
    await client.patch(NODES, unique, annotate(**home.names_machine(f"{unique}-2")))
    read = await own.read()
    assert read.machine is not None
    assert (read.machine.name, own.machine_key) == (f"{unique}-2", f"{namespace}/{unique}-2")


@with_machines
async def test_a_machine_that_names_no_node_is_no_proof(
    client: ApiClient, namespace: str, unique: str, machines: str
) -> None:
    home = Home(client, machines, namespace)
    await client.create(NODES, sample(NODES, unique, annotations=home.names_machine(unique)))
    await home.create_machine(unique, node=None)
    failure = failure_of(await (await own_machine(home, unique)).read())
    assert failure == f"machine {namespace}/{unique} belongs to no Node, not to {unique}"


@with_machines
async def test_after_its_machine_was_deleted_a_host_looks_for_it_again(
    client: ApiClient, namespace: str, unique: str, machines: str
) -> None:
    home = Home(client, machines, namespace)
    await home.enrol(unique)
    own = await own_machine(home, unique)
    await own.read()
    await client.delete(home.kind, unique, namespace=namespace)
    assert [(await own.read()).missing for _ in range(2)] == [True, True]
    await client.patch(NODES, unique, annotate(**home.names_machine(f"{unique}-2")))
    await home.create_machine(f"{unique}-2", node=unique)
    read = await own.read()
    assert read.machine is not None
    assert read.machine.name == f"{unique}-2"


@with_machines
async def test_a_node_that_names_no_machine_is_a_failed_read(
    client: ApiClient, namespace: str, unique: str, machines: str
) -> None:
    await client.create(NODES, sample(NODES, unique))
    own = await own_machine(Home(client, machines, namespace), unique)
    failure = failure_of(await own.read())
    assert failure.startswith(f"finding the machine of Node {unique}: the Node's machine is unreadable: ")
    assert "is missing" in failure
    assert own.machine_key == ""


async def test_a_version_that_is_not_served_says_nothing_about_a_machine_and_the_next_read_takes_another(
    client: ApiClient, namespace: str, unique: str
) -> None:
    home = Home(client, "cluster-api", namespace)
    await home.enrol(unique)
    reader = MachineReader(client, "cluster-api", boottime)
    assert "not found (404" in failure_of(await reader.read(home.machine_key(unique), DEADLINE_SECONDS))
    for _ in range(2):
        assert (await reader.read(home.machine_key(unique), DEADLINE_SECONDS)).machine is not None


async def test_reads_that_miss_a_version_at_the_same_time_lose_none(
    client: ApiClient, namespace: str, unique: str
) -> None:
    home = Home(client, "cluster-api", namespace)
    await home.enrol(unique)
    reader = MachineReader(client, "cluster-api", boottime)
    missed = await asyncio.gather(*(reader.read(home.machine_key(unique), DEADLINE_SECONDS) for _ in range(3)))
    assert all("not found (404" in failure_of(read) for read in missed)
    assert (await reader.read(home.machine_key(unique), DEADLINE_SECONDS)).machine is not None


async def test_finding_takes_its_time_from_the_read_s_deadline(home: Home, unique: str) -> None:
    await home.enrol(unique)
    given: list[float] = []

    class Noting(MachineReader):
        async def read(self, machine_key: str, deadline_seconds: float, *, may_rest: bool = False) -> Read:
            given.append(deadline_seconds)
            return await super().read(machine_key, deadline_seconds, may_rest=may_rest)

    four_seconds_a_step = itertools.count(0.0, 4.0)
    await OwnMachine(Noting(home.client, home.machines, lambda: next(four_seconds_a_step)), unique, 10.0).read()
    assert given == [6.0]


async def test_a_read_asks_for_no_version_and_ends_by_its_own_deadline(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("silent")
    read = await MachineReader(dial(port.url), "node", boottime).read("worker", 2.0)
    assert "timed out" in failure_of(read)
    assert 2.0 <= read.ended_at - read.began_at < 30
    assert [seen.target for seen in port.requests] == ["/api/v1/nodes/worker"]


async def test_a_404_that_is_not_the_api_s_own_is_a_failed_read(trouble: TroubleServer, dial: Dial) -> None:
    read = await MachineReader(dial(trouble.listen("404").url), "node", boottime).read("worker", DEADLINE_SECONDS)
    assert "not found (404" in failure_of(read)


async def test_an_object_without_identity_is_a_failed_read(trouble: TroubleServer, dial: Dial) -> None:
    read = await MachineReader(dial(trouble.listen("good").url), "node", boottime).read("worker", DEADLINE_SECONDS)
    assert failure_of(read) == "reading worker: the machine is unreadable: uid is missing, not one word of ASCII"


async def serve_only(client: ApiClient, version: str) -> Resource:
    """Machines of Cluster API in another version than the harness has, once the server has taken that up."""
    definition = next(each for each in DEFINITIONS if each["metadata"]["name"] == "machines.cluster.x-k8s.io")
    [known] = definition["spec"]["versions"]
    versions = [{**known, "served": False}, {**known, "name": version, "storage": False}]
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{definition['metadata']['name']}"
    await client.request("PATCH", path, json.dumps({"spec": {"versions": versions}}).encode(), MERGE_PATCH)
    served = replace(CAPI_MACHINES, version=version)
    for kind, taken_up in ((served, is_missing), (CAPI_MACHINES, is_unserved)):
        while not taken_up(await error_of(client.get(kind, "nobody", namespace="default"))):
            pass
    return served


async def error_of(exchange: Awaitable[object]) -> ApiError:
    with pytest.raises(ApiError) as caught:
        await exchange
    return caught.value


async def test_where_only_the_newest_version_is_served_the_first_read_finds_the_machine(unique: str) -> None:
    with RealCluster.start() as cluster:
        client = ApiClient(load(str(cluster.kubeconfig())), deadline_seconds=DEADLINE_SECONDS)
        kind = await serve_only(client, "v1beta2")
        await client.create(kind, sample(CAPI_MACHINES, unique), namespace="default")
        read = await MachineReader(client, "cluster-api", boottime).read(f"default/{unique}", DEADLINE_SECONDS)
        client.close()
    assert read.machine is not None
    assert read.machine.name == unique


async def test_a_backup_exists_or_does_not_or_that_cannot_be_told(
    client: ApiClient, client_of: ClientOf, unique: str
) -> None:
    await create_our_namespace(client)
    assert await backup_exists(client, unique) is False
    await client.create(CONFIG_MAPS, config_map(backup_name(unique)), namespace=NAMESPACE)
    assert await backup_exists(client, unique) is True
    assert (await error_of(backup_exists(client_of("nobody"), unique))).outcome is Outcome.FORBIDDEN
