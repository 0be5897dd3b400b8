"""Certificates are renewed through the real API: each identity its own alone, and used without a restart."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pp_hostd.kube.certificate import Subject
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.renewing import (
    PENDING,
    RENEWED,
    REQUESTS,
    Renewing,
    approval,
    made_request,
    signing_request,
    write_at_once,
)
from pp_hostd.leader.approvals import Approvals
from pp_hostd.model.keys import AGENTS, LEADER_USER, LEADERS, NODES_GROUP
from pp_hostd.model.renewal import requests_of
from pp_hostd.service.journal import Journal
from tests.harness.cluster import write_kubeconfig
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import eventually
from tests.leader.access.attempts import Attempt, World
from tests.leader.access.people import LEADER, agent, almighty, pp_leader

ENROLLED = {"worker-1", "worker-2"}
OF_WORKER, OF_OTHER = (Subject(f"system:node:worker-{number}", frozenset({NODES_GROUP, AGENTS})) for number in (1, 2))
OF_LEADER = Subject(LEADER_USER, frozenset({LEADERS}))


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """Installed, in force, and with a signer whose certificates live for two minutes."""
    with RealCluster.start() as cluster, closing(World(cluster)) as world:
        done = pp_leader("install", "--kubeconfig", str(cluster.kubeconfig()))
        assert (done.returncode, done.stderr) == (0, "")
        cluster.run_signer("2m")
        eventually(lambda: world.make(Attempt("list", REQUESTS, ""), LEADER).ok, "the leader's rights are in force")
        eventually(lambda: _refused(world), "the policies are in force")
        yield world


def _refused(world: World) -> bool:
    foreign = signing_request("pp-hostd.worker-2.probe", asyncio.run(made_request(OF_WORKER)).request)
    by_node = world.make(Attempt("create", REQUESTS, "", foreign), almighty("worker-1"), dry=True)
    by_leader = world.make(Attempt("create", REQUESTS, "", foreign), LEADER, dry=True)
    return by_node.status_code == by_leader.status_code == 403


class Daemon:
    """A daemon that renews: a kubeconfig whose certificate ends in `left_seconds`, and a directory for later ones."""

    def __init__(self, world: World, directory: Path, subject: Subject, left_seconds: float = 300) -> None:
        cluster = world.cluster
        issued = cluster.authority.issue(
            subject.user,
            sorted(subject.groups),
            valid_seconds=10 * 3600 + left_seconds,
            starts_seconds_ago=10 * 3600,
        )
        self.directory, self.subject = directory, subject
        self.path = write_kubeconfig(
            directory / "kubeconfig", cluster.server, cluster.authority.certificate_pem, certificate=issued
        )
        self.said: list[str] = []
        self.start()

    def start(self) -> None:
        """As after a restart: it knows what is on disk."""
        kubeconfig = replace(load(str(self.path)), renewed=str(self.directory / RENEWED))
        self.client = ApiClient(kubeconfig, deadline_seconds=20)
        self.renewing = Renewing(self.client, str(self.directory), write_at_once, self.said.append)

    @property
    def ends(self) -> Any:
        assert self.client.certificate is not None
        return self.client.certificate.ends

    async def who(self) -> Json:
        """Returns the user and groups that the API takes the daemon for."""
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        reply = await self.client.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
        found: Json = reply["status"]["userInfo"]
        return found

    def requests(self, world: World) -> list[Json]:
        items = world.make(Attempt("list", REQUESTS, "")).json()["items"]
        return [each for each in items if each["metadata"]["name"].startswith(requests_of(self.subject.user))]


@pytest.fixture(autouse=True)
def no_requests(world: World) -> None:
    """Each test begins without any."""
    world.make(Attempt("deletecollection", REQUESTS, ""))


@pytest.fixture
def leader(world: World) -> Iterator[Approvals]:
    """Yields the part of the active leader that approves requests."""
    client = ApiClient(load(str(world.cluster.kubeconfig(*LEADER))), deadline_seconds=20)
    with closing(client), closing(Journal(identifier="pp-leader")) as journal:
        yield Approvals(client, lambda: ENROLLED, lambda: True, journal)


async def renew(leader: Approvals, *daemons: Daemon) -> None:
    """One turn of each, while a leader looks at what is requested."""
    turns = asyncio.ensure_future(asyncio.gather(*(daemon.renewing.turn() for daemon in daemons)))
    while not turns.done():
        await leader.look()
        await asyncio.wait({turns}, timeout=0.3)
    turns.result()


@pytest.mark.parametrize("subject", [OF_WORKER, OF_LEADER], ids=["agent", "leader"])
async def test_a_certificate_near_its_end_is_replaced_by_one_of_the_same_identity_and_used_at_once(
    world: World, leader: Approvals, tmp_path: Path, subject: Subject
) -> None:
    daemon = Daemon(world, tmp_path, subject)
    before = daemon.ends
    await renew(leader, daemon)
    assert daemon.renewing.trouble == ""
    assert daemon.ends != before
    info = await daemon.who()
    assert info["username"] == subject.user
    assert subject.groups <= set(info["groups"])
    assert os.stat(tmp_path / RENEWED).st_mode & 0o777 == 0o600
    assert not (tmp_path / PENDING).exists()
    assert daemon.said[0].startswith("the client certificate is renewed; it ends at ")
    daemon.client.close()
    daemon.start()
    assert daemon.ends != before
    daemon.client.close()


async def test_a_certificate_that_has_most_of_its_life_before_it_is_left_alone(world: World, tmp_path: Path) -> None:
    daemon = Daemon(world, tmp_path, OF_WORKER, left_seconds=40 * 3600)
    assert await daemon.renewing.turn() > 0
    assert daemon.requests(world) == []


async def test_a_kubelets_certificate_is_left_to_the_kubelet(world: World, tmp_path: Path) -> None:
    daemon = Daemon(world, tmp_path, Subject("system:node:worker-1", frozenset({NODES_GROUP})))
    assert await daemon.renewing.turn() > 0
    assert daemon.requests(world) == []


async def test_a_daemon_that_ends_while_it_waits_takes_its_request_up_again(
    world: World, leader: Approvals, tmp_path: Path
) -> None:
    daemon = Daemon(world, tmp_path, OF_WORKER)
    turn = asyncio.ensure_future(daemon.renewing.turn())
    while not (before := daemon.requests(world)):
        await asyncio.wait({turn}, timeout=0.1)
    turn.cancel()
    with suppress(asyncio.CancelledError):
        await turn
    daemon.client.close()
    daemon.start()
    await renew(leader, daemon)
    (after,) = daemon.requests(world)
    assert after["metadata"]["uid"] == before[0]["metadata"]["uid"]
    assert daemon.renewing.trouble == ""
    daemon.client.close()


@pytest.mark.parametrize("left", [b"", b"-----BEGIN PRIVATE KEY-----\nhalf"])
async def test_what_a_crash_left_half_written_is_replaced(
    world: World, leader: Approvals, tmp_path: Path, left: bytes
) -> None:
    daemon = Daemon(world, tmp_path, OF_WORKER)
    (tmp_path / PENDING).write_bytes(left)
    await renew(leader, daemon)
    assert daemon.renewing.trouble == ""
    daemon.client.close()


async def test_a_request_of_another_identity_is_refused_by_the_policy_and_denied_by_the_leader(
    world: World,
    leader: Approvals,
) -> None:
    request = (await made_request(OF_OTHER)).request
    under_its_name = world.make(Attempt("create", REQUESTS, "", signing_request("pp-hostd.worker-2.x", request)), AGENT)
    assert under_its_name.status_code == 403
    assert "under its own name only" in under_its_name.json()["message"]
    under_my_name = world.make(Attempt("create", REQUESTS, "", signing_request("pp-hostd.worker-1.x", request)), AGENT)
    assert under_my_name.ok, under_my_name.text
    await leader.look()
    found = world.read(REQUESTS, "pp-hostd.worker-1.x")
    (condition,) = found["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("Denied", "NotARenewal")
    assert condition["message"] == (
        "system:node:worker-1 wants a certificate of system:node:worker-2, and gets none but its own"
    )
    assert "certificate" not in found["status"]


AGENT = agent("worker-1")
APPROVED = approval(True, "Because", "of nothing")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"usages": ["client auth", "digital signature", "server auth"]},
            "for digital signature and client auth alone",
        ),
        ({"expirationSeconds": 86400}, "for digital signature and client auth alone"),
    ],
)
async def test_a_node_requests_nothing_but_a_plain_renewal(world: World, change: Json, said: str) -> None:
    body = signing_request("pp-hostd.worker-1.y", (await made_request(OF_WORKER)).request)
    body["spec"].update(change)
    refused = world.make(Attempt("create", REQUESTS, "", body), AGENT)
    assert refused.status_code == 403
    assert said in refused.json()["message"]


async def test_what_kubelets_request_of_their_own_signer_is_not_our_business(world: World, leader: Approvals) -> None:
    request = (await made_request(Subject("system:node:worker-1", frozenset({NODES_GROUP})))).request
    body = signing_request("csr-1", request)
    body["spec"]["signerName"] = "kubernetes.io/kube-apiserver-client-kubelet"
    assert world.make(Attempt("create", REQUESTS, "", body), AGENT).ok
    await leader.look()
    assert "conditions" not in world.read(REQUESTS, "csr-1").get("status", {})


@pytest.mark.parametrize(
    "who", [("somebody", ("system:masters",)), ("system:node:worker-1", ("system:nodes", "system:masters"))]
)
async def test_a_leaders_credential_approves_nobody_but_agents_and_leaders(
    world: World, who: tuple[str, Sequence[str]]
) -> None:
    body = signing_request(f"pp-hostd.worker-1.{abs(hash(who))}", (await made_request(OF_WORKER)).request)
    created = world.make(Attempt("create", REQUESTS, "", body), who)
    assert created.ok, created.text
    attempt = Attempt("patch", REQUESTS, body["metadata"]["name"], APPROVED, subresource="approval")
    refused = world.make(attempt, LEADER)
    assert refused.status_code == 403
    assert "a leader decides renewals of agents and leaders alone" in refused.json()["message"]


async def test_no_node_approves_anything_whatever_it_may_do_besides(world: World) -> None:
    body = signing_request("pp-hostd.worker-1.z", (await made_request(OF_WORKER)).request)
    assert world.make(Attempt("create", REQUESTS, "", body), AGENT).ok
    attempt = Attempt("patch", REQUESTS, "pp-hostd.worker-1.z", APPROVED, subresource="approval")
    refused = world.make(attempt, almighty("worker-1"))
    assert refused.status_code == 403
    assert "a node decides and deletes no request" in refused.json()["message"]


async def test_a_denied_renewal_is_told_and_tried_again_with_another_request(
    world: World, leader: Approvals, tmp_path: Path
) -> None:
    daemon = Daemon(world, tmp_path, Subject("system:node:stranger", frozenset({NODES_GROUP, AGENTS})))
    await renew(leader, daemon)
    assert "is denied (NotARenewal: stranger is not enrolled)" in daemon.renewing.trouble
    assert not (tmp_path / PENDING).exists()
    daemon.client.close()


async def test_without_the_api_the_old_pair_stays_and_the_renewal_is_tried_again(
    world: World, leader: Approvals, tmp_path: Path
) -> None:
    daemon = Daemon(world, tmp_path, OF_WORKER)
    cluster = world.cluster
    assert isinstance(cluster, RealCluster)
    cluster.stop_api()
    assert await daemon.renewing.turn() > 0
    assert "is not renewed yet: " in daemon.renewing.trouble
    cluster.start_api()
    await renew(leader, daemon)
    assert daemon.renewing.trouble == ""
    assert daemon.said
    daemon.client.close()
