"""Authentication: tokens, certificates, and credentials that prove nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from tests.contract.objects import config_map
from tests.contract.refusals import FORBIDDEN, UNAUTHORIZED, refused
from tests.harness.cluster import Cluster, token_of, write_kubeconfig
from tests.harness.pki import CertificateAuthority

Connect = Callable[[Path], ApiClient]


@pytest.fixture
def connect() -> Iterator[Connect]:
    """Makes clients from kubeconfig files, and closes them when the case is over."""
    clients = []

    def make(kubeconfig: Path) -> ApiClient:
        clients.append(ApiClient(load(str(kubeconfig)), deadline_seconds=10))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


async def test_a_token_opens_the_same_doors_as_a_certificate(
    cluster: Cluster, connect: Connect, namespace: str
) -> None:
    admin, reader = (connect(cluster.kubeconfig(user, token=True)) for user in ("admin", "reader"))
    created = await admin.create(CONFIG_MAPS, config_map("roster"), namespace=namespace)
    assert await reader.get(CONFIG_MAPS, "roster", namespace=namespace) == created
    with refused(FORBIDDEN) as caught:
        await reader.delete(CONFIG_MAPS, "roster", namespace=namespace)
    assert 'User "reader"' in caught.value.sentence


async def test_an_unknown_token_is_unauthorized(cluster: Cluster, connect: Connect, tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path / "made-up", cluster.server, cluster.ca_file.read_bytes(), token="made-up")
    with refused(UNAUTHORIZED):
        await connect(path).list(NODES)


async def test_a_certificate_of_another_authority_opens_nothing(
    cluster: Cluster, connect: Connect, tmp_path: Path
) -> None:
    """The real server lets the handshake pass and says 401; one that already refuses the handshake is as good."""
    forged = CertificateAuthority("another").issue("admin", ["system:masters"])
    path = write_kubeconfig(tmp_path / "forged", cluster.server, cluster.ca_file.read_bytes(), certificate=forged)
    with pytest.raises(ApiError) as caught:
        await connect(path).list(NODES)
    assert caught.value.outcome in (Outcome.UNAUTHORIZED, Outcome.TLS_REFUSED)


async def test_a_server_that_another_authority_vouches_for_is_refused(
    cluster: Cluster, connect: Connect, tmp_path: Path
) -> None:
    ca_pem = CertificateAuthority("another").certificate_pem
    path = write_kubeconfig(tmp_path / "misled", cluster.server, ca_pem, token=token_of("admin"))
    with pytest.raises(ApiError) as caught:
        await connect(path).list(NODES)
    assert caught.value.outcome is Outcome.TLS_REFUSED
