"""The process of a leader as a whole: what it does when a part of it dies, and when nobody else will lead."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.leader.daemon import Daemon
from pp_hostd.leader.election import Election
from pp_hostd.model.keys import AGENT, ENROLLED, EXTERNAL_REMEDIATION, NAMESPACE
from pp_hostd.model.promise import Armed, GateKind, WatchdogKind
from pp_hostd.model.settings import Agent, Api, Leader, Peers, Settings
from tests.contract.objects import annotate, uid_of
from tests.harness.embedded import EmbeddedCluster
from tests.harness.eventually import HANGS_SECONDS
from tests.leader.campaign import GIVEN_UP, lease_of, put_lease
from tests.leader.test_shell_leader_term import are_listed, enrol, eventually

HOST = "leader-host"
LEASE_SECONDS = 2.0


@asynccontextmanager
async def a_daemon(spec: dict[str, Any]) -> AsyncIterator[tuple[asyncio.Task[int], ApiClient]]:
    """On this Lease; it is stopped at the end if it still runs."""
    with EmbeddedCluster.start() as cluster:
        client = ApiClient(load(str(cluster.kubeconfig())), deadline_seconds=10)
        await put_lease(client, spec)
        leader = Leader(
            kubeconfig=str(cluster.kubeconfig()),
            lease_seconds=LEASE_SECONDS,
            start_grace_seconds=0.0,
            max_unhealthy="100%",
            resets_per_hour="1000",
            metrics_port=0,
            page_port=0,
        )
        settings = Settings(
            agent=Agent(node_name=HOST), api=Api(machines="node"), peers=Peers(auth="none"), leader=leader
        )
        daemon = asyncio.create_task(Daemon(settings).run())
        try:
            yield daemon, client
        finally:
            daemon.cancel()
            await asyncio.gather(daemon, return_exceptions=True)
            client.close()


async def test_a_leader_that_stands_by_and_no_longer_campaigns_ends() -> None:
    """systemd starts it again; otherwise it would say that it lives, and never lead."""
    async with a_daemon({"holderIdentity": "somebody", "leaseDurationSeconds": 60}) as (daemon, _):
        campaign = await _campaign()
        campaign.cancel()
        done, _pending = await asyncio.wait({daemon}, timeout=HANGS_SECONDS)
        assert done == {daemon}


async def _campaign() -> asyncio.Task[None]:
    while True:
        for task in asyncio.all_tasks():
            if getattr(task.get_coro(), "cr_code", None) is Election.run.__code__:
                return task
        await asyncio.sleep(0.01)


async def test_a_leader_on_a_host_that_is_asked_for_gives_the_lease_up_once_and_then_serves_the_others() -> None:
    async with a_daemon(GIVEN_UP) as (_daemon, client):
        await client.create(CONFIG_MAPS, {"metadata": {"name": ENROLLED}, "data": {}}, namespace=NAMESPACE)
        await enrol(client, HOST)
        await eventually(lambda: are_listed(client, 1))
        uid = uid_of(await client.get(NODES, HOST))
        promise = Armed("b", 22.0, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, uid, 1)
        await client.patch(NODES, HOST, annotate(**{AGENT: promise.render(), EXTERNAL_REMEDIATION: ""}))
        await eventually(lambda: began(client, 2))
        await asyncio.sleep(2.5 * LEASE_SECONDS)
        assert not await began(client, 3)
        assert (await lease_of(client))["spec"]["holderIdentity"].startswith(f"{HOST}_")


async def began(client: ApiClient, terms: int) -> bool:
    """Whether so many terms have begun since."""
    transitions = (await lease_of(client))["spec"]["leaseTransitions"]
    return bool(transitions >= GIVEN_UP["leaseTransitions"] + terms)
