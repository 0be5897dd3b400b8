"""Files that rotate on disk are used by the next exchange, never within one, and never half of them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Material
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import NODES
from tests.harness.controlplane import RealCluster
from tests.harness.trouble import Trouble, TroubleServer
from tests.kube.conftest import PATIENT_SECONDS
from tests.kube.credential_files import Files


@pytest.fixture
def server(trouble: TroubleServer) -> Trouble:
    return trouble.listen("good")


@pytest.fixture
def files(tmp_path: Path, server: Trouble, trouble: TroubleServer) -> Files:
    return Files(tmp_path, server.url, trouble.authority)


@pytest.fixture
def client(files: Files) -> Iterator[ApiClient]:
    made = ApiClient(files.kubeconfig, deadline_seconds=PATIENT_SECONDS)
    yield made
    made.close()


async def test_a_rotated_certificate_is_shown_in_the_next_exchange(
    server: Trouble, files: Files, client: ApiClient
) -> None:
    await client.get(NODES, "worker")
    files.rotate("second")
    await client.get(NODES, "worker")
    assert [(seen.connection, seen.user) for seen in server.requests] == [(1, "first"), (2, "second")]


async def test_files_that_did_not_change_keep_the_connection(server: Trouble, client: ApiClient) -> None:
    for _ in range(3):
        await client.get(NODES, "worker")
    assert [seen.connection for seen in server.requests] == [1, 1, 1]


async def test_a_pair_rotated_half_way_keeps_the_old_identity_and_says_so(
    server: Trouble, files: Files, client: ApiClient
) -> None:
    await client.get(NODES, "worker")
    second = files.authority.issue("second")
    files.write("client-certificate", second.cert_pem)
    await client.get(NODES, "worker")
    assert client.trouble == (
        f"kubeconfig: client-key ({files.directory}/client-key) can't be used with the client certificate: "
        "key values mismatch"
    )
    files.write("client-key", second.key_pem)
    await client.get(NODES, "worker")
    assert client.trouble == ""
    assert [seen.user for seen in server.requests] == ["first", "first", "second"]


@pytest.mark.parametrize("name", ["certificate-authority", "client-certificate", "client-key"])
async def test_a_file_that_vanishes_keeps_the_old_identity_until_it_is_back(
    server: Trouble, files: Files, client: ApiClient, name: str
) -> None:
    await client.get(NODES, "worker")
    (files.directory / name).rename(files.directory / "aside")
    await client.get(NODES, "worker")
    assert client.trouble == f"kubeconfig: {name}: {files.directory}/{name}: does not exist"
    (files.directory / "aside").rename(files.directory / name)
    await client.get(NODES, "worker")
    assert client.trouble == ""
    assert [seen.user for seen in server.requests] == ["first"] * 3


async def test_an_exchange_ends_with_the_identity_that_it_began_with(trouble: TroubleServer, tmp_path: Path) -> None:
    """Also when it has to connect a second time, because the kept connection turned out to be closed."""
    server = trouble.listen("good, then closed a moment after the next request", "good")
    files = Files(tmp_path, server.url, trouble.authority)
    client = ApiClient(files.kubeconfig, deadline_seconds=PATIENT_SECONDS)
    await client.get(NODES, "worker")
    exchange = asyncio.create_task(client.get(NODES, "worker"))
    await asyncio.sleep(0)  # it has begun, and waits for the reply
    files.rotate("second")
    await exchange
    await client.get(NODES, "worker")
    client.close()
    assert [(seen.connection, seen.user) for seen in server.requests] == [(1, "first"), (2, "first"), (3, "second")]


async def test_a_rotated_token_is_shown_in_the_next_exchange_on_the_same_connection(
    server: Trouble, files: Files
) -> None:
    client = ApiClient(files.with_token_file("First\n"), deadline_seconds=PATIENT_SECONDS)
    await client.get(NODES, "worker")
    files.write("tokenFile", b"Second")
    await client.get(NODES, "worker")
    files.write("tokenFile", b"")
    await client.get(NODES, "worker")
    assert client.trouble == f"kubeconfig: tokenFile ({files.directory}/tokenFile) is not a token"
    files.write("tokenFile", b"Third")
    await client.get(NODES, "worker")
    assert client.trouble == ""
    client.close()
    assert [(seen.connection, seen.token) for seen in server.requests] == [
        (1, "First"),
        (1, "Second"),
        (1, "Second"),
        (1, "Third"),
    ]


async def test_a_file_rewritten_in_place_is_noticed_too(server: Trouble, files: Files) -> None:
    client = ApiClient(files.with_token_file("first"), deadline_seconds=PATIENT_SECONDS)
    await client.get(NODES, "worker")
    (files.directory / "tokenFile").write_bytes(b"other")
    await client.get(NODES, "worker")
    client.close()
    assert [seen.token for seen in server.requests] == ["first", "other"]


async def test_a_rotated_authority_decides_about_the_next_exchange_even_where_a_connection_is_kept(
    trouble: TroubleServer, files: Files, client: ApiClient
) -> None:
    await client.get(NODES, "worker")
    files.trust(trouble.foreign_authority)
    with pytest.raises(ApiError) as caught:
        await client.get(NODES, "worker")
    assert caught.value.outcome is Outcome.TLS_REFUSED
    files.trust(trouble.authority)
    await client.get(NODES, "worker")


async def test_a_kubelets_file_with_certificate_and_key_behind_a_link_is_taken_as_it_is(
    server: Trouble, files: Files
) -> None:
    link, kubeconfig = files.directory / "current.pem", files.kubeconfig
    for user in ("first", "second"):
        issued = files.authority.issue(user)
        files.write(f"{user}.pem", issued.cert_pem + issued.key_pem)
    link.symlink_to("first.pem")
    material = Material("kubeconfig: client-certificate", path=str(link))
    client = ApiClient(replace(kubeconfig, certificate=material, key=material), deadline_seconds=PATIENT_SECONDS)
    await client.get(NODES, "worker")
    link.unlink()
    link.symlink_to("second.pem")
    await client.get(NODES, "worker")
    client.close()
    assert [seen.user for seen in server.requests] == ["first", "second"]


async def test_a_real_api_server_knows_us_by_such_a_file(real_cluster: RealCluster, tmp_path: Path) -> None:
    files = Files(tmp_path, real_cluster.server, real_cluster.authority)
    issued = real_cluster.authority.issue("system:node:worker", ["system:nodes"])
    files.write("current.pem", issued.cert_pem + issued.key_pem)
    material = Material("kubeconfig: client-certificate", path=str(tmp_path / "current.pem"))
    kubeconfig = replace(files.kubeconfig, certificate=material, key=material)
    client = ApiClient(kubeconfig, deadline_seconds=PATIENT_SECONDS)
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    reply = await client.request("POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", review)
    client.close()
    assert reply["status"]["userInfo"]["username"] == "system:node:worker"


async def test_a_bundle_of_the_old_and_the_new_authority_trusts_servers_of_both(
    trouble: TroubleServer, server: Trouble, files: Files, client: ApiClient
) -> None:
    """As a cluster rotates its authority: both are trusted for a while, and each server changes in its own time."""
    files.trust(trouble.foreign_authority)
    with pytest.raises(ApiError):
        await client.get(NODES, "worker")
    both = trouble.foreign_authority.certificate_pem + trouble.authority.certificate_pem
    files.write("certificate-authority", both)
    await client.get(NODES, "worker")
    assert [seen.user for seen in server.requests] == ["first"]
