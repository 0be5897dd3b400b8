"""The first call of a run, whichever it is, finds the credentials; without them it fails, and says so."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.sense.cluster import ClusterAccess
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.witness import Witness
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import NODES
from pp_hostd.model.settings import Settings
from tests.harness.embedded import EmbeddedCluster

NODE = "worker-1"


def access(kubeconfig: str) -> ClusterAccess:
    settings = replace(Settings(), api=replace(Settings().api, kubeconfig=kubeconfig))
    senses = AgentSenses(NODE, Witness("token"), Rosters(), time.monotonic)
    return ClusterAccess(settings, NODE, senses, time.monotonic, lambda _: None, tuple)


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


async def test_a_look_without_credentials_fails_and_says_why(tmp_path: Path) -> None:
    cluster_access = access(str(tmp_path / "absent"))
    look = await cluster_access.look()
    assert (look.node, look.missing) == (None, False)
    assert "no credential for the API" in look.failure
    assert "absent: does not exist" in look.failure
