"""From `pp-leader install --flows node-fence` to the NodeFence: on the real API, with just the rights that it grants,
and on the embedded one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from typing import Any

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.resources import EVENTS, NAMESPACES, NODE_FENCES, NODE_REMEDY_CONFIGURATIONS, NODES
from pp_hostd.leader.definition import DEFINITIONS
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.settings import Api, Leader, Settings
from tests.agent.objects import until_found
from tests.harness.cluster import Cluster
from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import LEADER, pp_leader
from tests.leader.in_term import client_for, term, unless_there

Json = dict[str, Any]
LONG_AGO = "2026-01-01T00:00:00Z"
NAMES = [f"{kind.plural}.{kind.group}" for kind in (NODE_REMEDY_CONFIGURATIONS, NODE_FENCES)]
SPEC: Json = {
    "nodeSelector": "pool=a",
    "thresholdConfigs": [{"nodeConditionType": "Ready", "nodeConditionStatus": "Unknown", "nodeConditionPeriod": "5s"}],
}


def run(cluster: Cluster, *arguments: str) -> list[str]:
    done = pp_leader(*arguments, "--kubeconfig", str(cluster.kubeconfig()))
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.replace("\n  ", " ").splitlines()


@contextmanager
def real() -> Iterator[tuple[Cluster, tuple[str, tuple[str, ...]]]]:
    """With no definitions but those that the command brings, and the leader's own user."""
    with RealCluster.start(definitions=[]) as cluster:
        said = run(cluster, "install", "--flows", "node-fence")
        assert [f"created    {DEFINITIONS.kind} {name}" in said for name in NAMES] == [True, True]
        assert {line.split()[0] for line in run(cluster, "install")} == {"unchanged"}
        with closing(World(cluster)) as world:
            for kind in (NODE_REMEDY_CONFIGURATIONS, NODE_FENCES):
                attempt = Attempt("list", kind, "")
                eventually(lambda attempt=attempt: world.make(attempt, LEADER).ok, f"{kind.kind}s are served")  # type: ignore[misc]
        yield cluster, LEADER


@contextmanager
def embedded() -> Iterator[tuple[Cluster, tuple[str, tuple[str, ...]]]]:
    with EmbeddedCluster.start() as cluster:
        yield cluster, ("admin", ("system:masters",))


async def add_node(client: ApiClient, name: str, ready: str) -> None:
    await client.create(NODES, {"metadata": {"name": name, "labels": {"pool": "a"}}})
    condition = {"type": "Ready", "status": ready, "lastTransitionTime": LONG_AGO}
    await client.patch(NODES, name, {"status": {"conditions": [condition]}}, subresource="status")


async def status(client: ApiClient) -> Json:
    found: Json = (await client.get(NODE_REMEDY_CONFIGURATIONS, "pool")).get("status") or {}
    return found


@asynccontextmanager
async def led(cluster: Cluster, who: tuple[str, tuple[str, ...]]) -> AsyncIterator[None]:
    settings = Settings(api=Api(machines="node"), leader=Leader(start_grace_seconds=0.0))
    with closing(client_for(str(cluster.kubeconfig(*who)))) as leader:
        async with term(leader, settings):
            yield


@pytest.mark.parametrize("start", [embedded, real], ids=["embedded", "real"])
async def test_a_condition_creates_one_node_fence(start: Any) -> None:
    with start() as (cluster, who), closing(client_for(str(cluster.kubeconfig()))) as client:
        await unless_there(client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}}))
        for name in ("one", "two", "three"):
            await add_node(client, name, "True")
        await client.create(NODE_REMEDY_CONFIGURATIONS, {"metadata": {"name": "pool"}, "spec": SPEC})
        async with led(cluster, who):

            async def is_judged() -> bool:
                return (await status(client)).get("selectedNodes") == 3

            await until_found(is_judged, "the configuration is judged")
            assert not (await client.list(NODE_FENCES)).items
            silent = {"type": "Ready", "status": "Unknown", "lastTransitionTime": LONG_AGO}
            await client.patch(NODES, "two", {"status": {"conditions": [silent]}}, subresource="status")

            async def is_told() -> bool:
                messages = [each["message"] for each in (await client.list(EVENTS)).items]
                return sum("has Node two fenced (NodeFence node-fence-two)" in each for each in messages) == 2

            await until_found(is_told, "an Event about the Node and one about the configuration say it")

            async def is_counted() -> bool:
                return (await status(client)).get("matchingNodes") == 1

            await until_found(is_counted, "its status counts it")
        (fence,) = (await client.list(NODE_FENCES)).items
        cause = {"configuration": "pool", "condition": "Ready", "status": "Unknown"}
        assert (fence["metadata"]["name"], fence["node"], fence["cause"]) == ("node-fence-two", "two", cause)
        told = run(cluster, "explain", "two", "--machines", "node")
        assert any("NodeRemedyConfiguration pool has it fenced (NodeFence node-fence-two)" in line for line in told)
