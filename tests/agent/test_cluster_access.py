"""The first call of a run, whichever it is, finds the credentials; without them it fails, and says so."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from functools import partial
from pathlib import Path

from pp_hostd import __version__
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.sense.cluster import ANNOUNCE_AGAIN_SECONDS, ClusterAccess, refusal_of
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.witness import Unread, Witness
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import CONFIG_MAPS, NAMESPACES, NODES
from pp_hostd.model.agent_info import AgentInfo, parse_agent_info
from pp_hostd.model.control import Maintenance, parse_control
from pp_hostd.model.keys import AGENT_INFO, CONTROL, MAINTENANCE, NAMESPACE
from pp_hostd.model.promise import Withdrawn
from pp_hostd.model.settings import Settings
from pp_hostd.peers.message import MachineReference
from pp_hostd.service.journal import Journal
from tests.agent.objects import SINCE, until, until_found
from tests.harness.cluster import token_of, write_kubeconfig
from tests.harness.embedded import EmbeddedCluster
from tests.harness.pki import CertificateAuthority
from tests.kube.jumping_loop import JumpingLoop, StandingLoop

NODE = "worker-1"
SILENT = Journal(stderr=-1)
SILENT.close()
NOBODY_LISTENS = "https://127.0.0.1:1"


def access(kubeconfig: str) -> ClusterAccess:
    settings = replace(Settings(), api=replace(Settings().api, kubeconfig=kubeconfig))
    wallclock = partial(datetime.now, timezone.utc)
    senses = AgentSenses(NODE, Witness("token"), Rosters(), time.monotonic, wallclock, lambda: None)
    return ClusterAccess(settings, NODE, senses, time.monotonic, lambda _: None, tuple, "/nonexistent", SILENT)


async def test_a_look_before_the_first_read_finds_the_node() -> None:
    with EmbeddedCluster.start() as cluster:
        kubeconfig = str(cluster.kubeconfig())
        client = ApiClient(load(kubeconfig), deadline_seconds=5)
        await client.create(NODES, {"metadata": {"name": NODE}})
        client.close()
        cluster_access = access(kubeconfig)
        look = await cluster_access.look()
        await cluster_access.close()
    assert look.node is not None
    assert look.node.name == NODE


async def test_a_kubeconfig_that_changes_is_used_by_a_read_soon_after(tmp_path: Path) -> None:
    path, somebody_else = tmp_path / "kubeconfig", CertificateAuthority("nobody").certificate_pem
    write_kubeconfig(path, NOBODY_LISTENS, somebody_else, token="any")
    cluster_access = access(str(path))
    assert (await cluster_access.read()).failure
    with EmbeddedCluster.start() as cluster:
        write_kubeconfig(path, cluster.server, cluster.authority.certificate_pem, token=token_of("admin"))

        async def found() -> bool:
            return (await cluster_access.read()).missing

        await until_found(found, "the new server says that there is no such Node")
        await cluster_access.close()


async def test_a_look_without_credentials_fails_and_says_why(tmp_path: Path) -> None:
    cluster_access = access(str(tmp_path / "absent"))
    look = await cluster_access.look()
    assert (look.node, look.missing) == (None, False)
    assert "no credential for the API" in look.failure
    assert "absent: does not exist" in look.failure


def test_in_an_outage_reads_for_peers_rest_and_the_host_s_own_go_on(tmp_path: Path) -> None:
    authority = CertificateAuthority("nobody").certificate_pem
    kubeconfig = str(write_kubeconfig(tmp_path / "kubeconfig", NOBODY_LISTENS, authority, token="any"))
    loop = StandingLoop()  # so that watches, which have pauses of their own, try once

    async def story() -> None:
        cluster_access = access(kubeconfig)
        for _ in range(3):
            assert (await cluster_access.read()).failure
        client, about = cluster_access.client, MachineReference(None, "worker-2", "uid-2")
        assert client is not None
        before = client.requests
        outcomes = [await cluster_access.read_for_peer(about, 2.0) for _ in range(50)]
        assert outcomes == [Unread.FAILED] * 50
        assert client.requests == before
        assert (await cluster_access.read()).failure
        assert client.requests == before + 1
        await cluster_access.close()

    try:
        loop.run_until_complete(story())
    finally:
        loop.close()


async def test_an_order_for_all_hosts_that_is_not_obeyed_is_a_trouble_of_the_agent_s() -> None:
    with EmbeddedCluster.start() as cluster:
        kubeconfig = str(cluster.kubeconfig())
        client = ApiClient(load(kubeconfig), deadline_seconds=5)
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        await client.create(
            CONFIG_MAPS, {"metadata": {"name": CONTROL}, "data": {MAINTENANCE: "garbage"}}, namespace=NAMESPACE
        )
        cluster_access = access(kubeconfig)
        cluster_access.connect()

        def told() -> bool:
            return any("it is not obeyed" in sentence for sentence in cluster_access.troubles())

        await until(told, "the refusal is told")
        await cluster_access.close()
        client.close()


def test_an_order_for_all_hosts_that_is_longer_than_a_day_is_refused() -> None:
    day, longer = (Maintenance("eve", SINCE, "new switch", SINCE + timedelta(hours=hours)) for hours in (24, 25))
    assert (refusal_of(None), refusal_of(day)) == ("", "")
    assert "the maintenance by eve is not obeyed, since it is longer than 24 h" in refusal_of(longer)
    assert "it is not obeyed" in refusal_of(parse_control({MAINTENANCE: "garbage"}).maintenance)


async def test_the_version_is_told_on_the_node_after_each_record_that_is_stored() -> None:
    with EmbeddedCluster.start() as cluster:
        kubeconfig = str(cluster.kubeconfig())
        client = ApiClient(load(kubeconfig), deadline_seconds=5)
        cluster_access = access(kubeconfig)

        async def told() -> bool:
            found = (await client.get(NODES, NODE))["metadata"].get("annotations") or {}
            ends = None if client.certificate is None else client.certificate.ends
            return parse_agent_info(found.get(AGENT_INFO)) == AgentInfo(__version__, ends)

        for _ in range(2):
            await client.create(NODES, {"metadata": {"name": NODE}})
            look = await cluster_access.look()
            assert look.node is not None
            await cluster_access.store(Withdrawn("boot-1"), look.node)
            await until_found(told, "the version is on the Node")
            await client.delete(NODES, NODE)
        await cluster_access.close()
        client.close()


def test_a_version_that_can_t_be_told_is_a_trouble_until_it_is_told() -> None:
    loop = JumpingLoop()

    async def story() -> None:
        with EmbeddedCluster.start() as cluster:
            kubeconfig = str(cluster.kubeconfig())
            client = ApiClient(load(kubeconfig), deadline_seconds=5)
            cluster_access = access(kubeconfig)
            cluster_access.connect()

            def told() -> bool:
                return any("its version could not be written to its Node" in each for each in cluster_access.troubles())

            async def tries(untold: bool) -> None:
                await asyncio.sleep(0)  # so that it waits already
                loop.jumped_seconds += ANNOUNCE_AGAIN_SECONDS
                await until(lambda: told() == untold, f"it is told: {untold}")

            await tries(True)
            await client.create(NODES, {"metadata": {"name": NODE}})
            await tries(False)
            await cluster_access.close()
            client.close()

    try:
        loop.run_until_complete(story())
    finally:
        loop.close()
