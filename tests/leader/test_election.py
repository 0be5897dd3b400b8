"""A candidate and the Lease: taken, renewed and given up, and what others do to it. On either API, in real time."""

from __future__ import annotations

import asyncio
import os
import signal

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import LEASES
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.lease import LEASE, LONGEST_SECONDS
from tests.harness.embedded import EmbeddedCluster
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial
from tests.leader.campaign import (
    DURATION_SECONDS,
    GIVEN_UP,
    annotate,
    candidate,
    lease_of,
    no_lease,
    put_lease,
)


async def test_a_missing_lease_is_created_and_whoever_did_so_leads_only_a_duration_later(client: ApiClient) -> None:
    await no_lease(client)
    async with candidate(client) as ada:
        began_at = ada.clock()
        await ada.until(lambda: ada.acting)
        assert ada.clock() >= began_at + DURATION_SECONDS
        spec = (await lease_of(client))["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == (
        ada.election.holder,
        2,
        1,
    )


async def test_a_lease_that_was_given_up_is_taken_at_once_and_the_rest_of_it_left_alone(client: ApiClient) -> None:
    found = await put_lease(client, {**GIVEN_UP, "strategy": "OldestEmulationVersion"}, labels={"who": "cares"})
    async with candidate(client, duration_seconds=60.0) as ada:
        await asyncio.wait_for(ada.until(lambda: ada.acting), 30.0)
        lease = await lease_of(client)
    assert ada.election.holder == ada.election.identity == lease["spec"]["holderIdentity"]
    assert ada.election.term == 1 and lease["spec"]["leaseTransitions"] == GIVEN_UP["leaseTransitions"] + 1
    assert lease["spec"]["acquireTime"] == lease["spec"]["renewTime"]
    assert lease["metadata"]["labels"] == {"who": "cares"}
    assert lease["spec"].get("strategy") == found["spec"].get("strategy")  # which an API may refuse to keep


async def test_a_leader_renews_and_its_term_goes_on(client: ApiClient) -> None:
    await put_lease(client, GIVEN_UP)
    async with candidate(client, duration_seconds=2 * DURATION_SECONDS) as ada:
        await ada.until(lambda: ada.acting)
        taken, first_end_at = await lease_of(client), ada.election.acting_until_at
        await asyncio.sleep(first_end_at - ada.clock() + 0.1)
        assert ada.acting and ada.election.term == 1
        renewed = await lease_of(client)
    same = ("holderIdentity", "acquireTime", "leaseTransitions", "leaseDurationSeconds")
    assert [renewed["spec"][key] for key in same] == [taken["spec"][key] for key in same]
    assert renewed["spec"]["renewTime"] > taken["spec"]["renewTime"]


@pytest.mark.parametrize(
    "spec",
    [
        {"holderIdentity": "mallory", "leaseDurationSeconds": 2**31 - 1, "leaseTransitions": 2**31 - 1},
        {"holderIdentity": "mallory\nroot", "renewTime": "2999-01-01T00:00:00.000000Z"},
        {"holderIdentity": "mallory", "renewTime": "1970-01-01T00:00:00.000000Z"},
        {},
    ],
    ids=["for ever", "from the future", "from long ago", "empty"],
)
async def test_a_lease_with_garbage_is_taken_after_the_longest_duration_that_a_leader_may_have(
    client: ApiClient, spec: Json
) -> None:
    await put_lease(client, spec)
    async with candidate(client) as ada:
        began_at = ada.clock()
        await ada.until(lambda: ada.looked)
        ada.clock.jumped_seconds = LONGEST_SECONDS - 1.0
        await ada.until(lambda: ada.acting)
        assert ada.clock() >= began_at + LONGEST_SECONDS


async def test_a_leader_whose_lease_is_deleted_stops_and_may_lead_again_a_duration_later(client: ApiClient) -> None:
    await put_lease(client, GIVEN_UP)
    async with candidate(client) as ada:
        await ada.until(lambda: ada.acting)
        await client.delete(LEASES, LEASE, namespace=NAMESPACE)
        deleted_at = ada.clock()
        await ada.until(lambda: not ada.acting)
        await ada.until(lambda: ada.acting)
        assert ada.election.term == 2 and ada.clock() >= deleted_at + DURATION_SECONDS


async def test_a_renewal_after_somebody_else_wrote_ends_the_term_at_once(client: ApiClient) -> None:
    await put_lease(client, GIVEN_UP)
    async with candidate(client, duration_seconds=20.0) as ada:
        await ada.until(lambda: ada.acting)
        end_at = ada.election.acting_until_at
        await annotate(client)
        await ada.until(lambda: not ada.acting)
        assert ada.clock() < end_at and "conflict" in ada.election.trouble


async def test_one_that_resigns_stops_before_it_says_so_and_lets_others_go_first(client: ApiClient) -> None:
    await put_lease(client, GIVEN_UP)
    async with candidate(client) as ada:
        await ada.until(lambda: ada.acting)
        sent, resigned_at = client.requests, ada.clock()
        resigning = asyncio.create_task(ada.election.resign())
        await asyncio.sleep(0)
        assert not ada.acting and client.requests == sent
        await resigning
        spec = (await lease_of(client))["spec"]
        assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", 1)
        await ada.until(lambda: ada.acting)
        assert ada.clock() >= resigned_at + DURATION_SECONDS and ada.election.term == 2


async def test_one_that_leads_nothing_resigns_in_no_time(client: ApiClient) -> None:
    await put_lease(client, {"holderIdentity": "bob", "leaseDurationSeconds": 60})
    async with candidate(client, duration_seconds=60.0) as ada:
        await ada.until(lambda: ada.election.holder == "bob")
        await asyncio.wait_for(ada.election.resign(), 5.0)
    assert (await lease_of(client))["spec"]["holderIdentity"] == "bob"


async def test_a_leader_hears_of_the_end_of_its_term_while_the_api_hangs() -> None:
    with EmbeddedCluster.start() as cluster:
        client = ApiClient(load(str(cluster.kubeconfig())), deadline_seconds=60.0)
        await put_lease(client, GIVEN_UP)
        async with candidate(client) as ada:
            await ada.until(lambda: ada.acting)
            os.kill(cluster.pid, signal.SIGSTOP)
            await ada.until(lambda: not ada.acting)
            assert ada.clock() < ada.election.acting_until_at + 10.0 and "in time" in ada.election.trouble
        client.close()


@pytest.mark.parametrize("behaviour", ["silent", "trickled body", "403", "500", "not JSON", "wrong kind", "reset"])
async def test_a_candidate_outlives_an_api_that_makes_trouble_and_says_so(
    behaviour: str, trouble: TroubleServer, dial: Dial
) -> None:
    server = trouble.listen(behaviour, "401")
    async with candidate(dial(server.url), duration_seconds=DURATION_SECONDS) as ada:
        await ada.until(lambda: ada.election.trouble != "")
        assert "Lease pp-hostd/pp-leader: " in ada.election.trouble
        await ada.until(lambda: "unauthorized" in ada.election.trouble)
        assert not ada.acting
