"""A troublesome server, and clients that trust it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Callable

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig, endpoint, load
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import NODES
from tests.harness.cluster import write_kubeconfig
from tests.harness.pki import Issued
from tests.harness.trouble import TroubleServer

PATIENT_SECONDS = 20.0
"""A deadline that only a hang reaches."""

Dial = Callable[..., ApiClient]
"""dial(url, ..., deadline_seconds=PATIENT_SECONDS): a client of these servers."""


@pytest.fixture(scope="session")
def trouble() -> Iterator[TroubleServer]:
    server = TroubleServer()
    yield server
    server.close()


@pytest.fixture(scope="session")
def identity(trouble: TroubleServer) -> Issued:
    """The client certificate of user `worker`."""
    return trouble.authority.issue("worker")


@pytest.fixture(scope="session")
def kubeconfig(trouble: TroubleServer, identity: Issued, tmp_path_factory: pytest.TempPathFactory) -> Kubeconfig:
    """Right in everything but the server."""
    path = tmp_path_factory.mktemp("kube") / "kubeconfig"
    authority = trouble.authority.certificate_pem
    return load(str(write_kubeconfig(path, "https://192.0.2.1", authority, certificate=identity)))


@pytest.fixture
def dial(kubeconfig: Kubeconfig) -> Iterator[Dial]:
    clients: list[ApiClient] = []

    def make(*urls: str, deadline_seconds: float = PATIENT_SECONDS) -> ApiClient:
        servers = replace(kubeconfig, endpoints=tuple(endpoint(url, "the test") for url in urls))
        clients.append(ApiClient(servers, deadline_seconds=deadline_seconds))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


async def outcome_of(client: ApiClient) -> Outcome | None:
    """The outcome of a read, or None if all went well."""
    try:
        await client.get(NODES, "worker")
    except ApiError as error:
        return error.outcome
    return None
