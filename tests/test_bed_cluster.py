"""The cluster as a bed prepares it for agents, seen with an agent's eyes: from a host, with its own credentials."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from pp_hostd import timing
from pp_hostd.config import load
from pp_hostd.kube.resources import NODES
from pp_hostd.model.condemnation import Condemned, NotRequested, parse_condemnation
from pp_hostd.model.roster import Roster, parse_roster
from tests.harness.bed import standins
from tests.harness.bed.cluster_bed import ClusterBed
from tests.harness.bed.host import Design, Host
from tests.harness.bed.relay import Mode
from tests.harness.cluster import Cluster
from tests.harness.embedded import EmbeddedCluster

MACHINES = ["openshift", "cluster-api", "node"]
LOOK = """
import asyncio, json, socket, sys
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import CONFIG_MAPS, MACHINES, NODES
from pp_hostd.model.machine import machine_of_node

async def look(machines):
    client = ApiClient(load("/etc/pp-hostd/kubeconfig"), deadline_seconds=3)
    try:
        node = await client.get(NODES, socket.gethostname())
        subject = machine_of_node(node, machines)
        namespace, _, name = subject.rpartition("/")
        kind = MACHINES[machines][-1]
        machine = await client.get(kind, name, namespace=namespace or None)
        roster = await client.get(CONFIG_MAPS, "roster", namespace="pp-hostd")
        condemned = await client.list(kind, label_selector="pp-hostd.io/condemned")
        annotation = {"metadata": {"annotations": {"pp-hostd.io/agent": "seen"}}}
        await client.patch(NODES, socket.gethostname(), annotation)
        names = [each["metadata"]["name"] for each in condemned.items]
        return {"subject": subject, "machine": machine, "roster": roster["data"]["roster"], "condemned": names}
    except ApiError as error:
        return error.outcome.value
    finally:
        client.close()

print(json.dumps(asyncio.run(look(sys.argv[1]))))
"""


@pytest.fixture(scope="module")
def embedded_cluster() -> Iterator[Cluster]:
    with EmbeddedCluster.start() as cluster:
        yield cluster


@pytest.fixture(params=["embedded", "real"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    chosen: Cluster = request.getfixturevalue(f"{request.param}_cluster")
    return chosen


@pytest.fixture(params=MACHINES)
def machines(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def bed(cluster: Cluster, machines: str) -> Iterator[ClusterBed]:
    design = Design(agent=standins.IDLE, gate=[])
    with ClusterBed.start(cluster, hosts=2, settings={"api.machines": machines}, design=design) as bed:
        bed.boot()
        yield bed


def look(host: Host, machines: str) -> dict[str, Any] | str:
    """Returns the objects that an agent would read there, or the outcome of a call that failed."""
    seen: dict[str, Any] | str = json.loads(host.run(*standins.program(LOOK), machines).stdout)
    return seen


def test_an_agent_finds_its_machine_and_the_roster_and_writes_its_node(bed: ClusterBed, machines: str) -> None:
    one, two = bed.hosts.values()
    seen = look(one, machines)
    assert isinstance(seen, dict), seen
    machine = bed.contents.machine("worker-1")
    assert seen["machine"] == machine or machines == "node"
    roster = parse_roster(seen["roster"])
    assert isinstance(roster, Roster)
    listed = {member.name: (member.address, member.machine or member.name) for member in roster.members()}
    assert listed["worker-1"] == (one.address, seen["subject"])
    assert listed["worker-2"][0] == two.address
    assert bed.contents.node("worker-1").agent is not None


def test_a_machine_is_condemned_and_lifted_under_ids_that_grow(bed: ClusterBed, machines: str) -> None:
    for number in (1, 2):
        assert bed.contents.condemn("worker-1") == number
        condemned = parse_condemnation(bed.contents.machine("worker-1")["metadata"])
        assert isinstance(condemned, Condemned)
        assert condemned.id == number
        seen = look(bed.hosts["worker-2"], machines)
        assert isinstance(seen, dict), seen
        assert "worker-1" in seen["condemned"]  # a cluster that others use too may hold more
        bed.contents.lift("worker-1")
        assert parse_condemnation(bed.contents.machine("worker-1")["metadata"]) == NotRequested(number)


@pytest.mark.parametrize("machines", ["node"])
def test_a_host_for_which_the_api_is_refused_does_not_read_it(bed: ClusterBed, machines: str) -> None:
    bed.set_api(Mode.REFUSE, ["worker-1"])
    assert isinstance(look(bed.hosts["worker-1"], machines), str)
    assert isinstance(look(bed.hosts["worker-2"], machines), dict)


@pytest.mark.parametrize("machines", ["node"])
def test_the_next_bed_finds_nothing_of_the_last(bed: ClusterBed, cluster: Cluster) -> None:
    bed.contents.condemn("worker-2")
    uid = bed.contents.node("worker-1").uid
    design = Design(agent=standins.IDLE, gate=[])
    with ClusterBed.start(cluster, hosts=1, design=design) as following:
        assert following.contents.node("worker-1").uid != uid
        with pytest.raises(RuntimeError, match="404"):
            following.contents.machine("worker-2")
        following.contents.delete(NODES, "worker-1")


@pytest.mark.parametrize("machines", ["node"])
def test_the_settings_of_a_bed_keep_every_inequality(bed: ClusterBed) -> None:
    settings = load(str(bed.hosts["worker-1"].etc / "pp-hostd.toml")).settings
    assert timing.broken(settings) == []
    assert timing.dead_seconds(settings) == 16.0
