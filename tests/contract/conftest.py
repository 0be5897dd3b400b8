"""Every case of the contract runs twice: on the embedded API and on a real control plane."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from functools import lru_cache
from typing import Callable

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig, load
from pp_hostd.kube.resources import NAMESPACES, Resource
from tests.harness.cluster import Cluster
from tests.harness.embedded import EmbeddedCluster

DEADLINE_SECONDS = 10


@pytest.fixture(scope="session")
def embedded_cluster() -> Iterator[Cluster]:
    with EmbeddedCluster.start() as cluster:
        yield cluster


@pytest.fixture(scope="session", params=["embedded", "real"])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """One cluster of each kind serves the whole suite, so no case may count on finding it empty."""
    chosen: Cluster = request.getfixturevalue(f"{request.param}_cluster")
    return chosen


@pytest.fixture(scope="session")
def kubeconfig_of(cluster: Cluster) -> Callable[[str], Kubeconfig]:
    """A user's credentials, issued and read once."""
    return lru_cache(maxsize=None)(lambda user: load(str(cluster.kubeconfig(user))))


class Clients(dict[str, ApiClient]):
    """One client a user, made when it is first used."""

    def __init__(self, kubeconfig_of: Callable[[str], Kubeconfig]) -> None:
        super().__init__()
        self._kubeconfig_of = kubeconfig_of

    def __missing__(self, user: str) -> ApiClient:
        self[user] = ApiClient(self._kubeconfig_of(user), deadline_seconds=DEADLINE_SECONDS)
        return self[user]


@pytest.fixture(scope="session")
def clients(kubeconfig_of: Callable[[str], Kubeconfig]) -> Clients:
    return Clients(kubeconfig_of)


@pytest.fixture
def client_of(clients: Clients) -> Iterator[Callable[[str], ApiClient]]:
    """The client of a user."""
    yield clients.__getitem__
    for client in clients.values():
        client.close()  # its connections belong to the loop of the case, which has ended


@pytest.fixture
def client(client_of: Callable[[str], ApiClient]) -> ApiClient:
    """The administrator's."""
    return client_of("admin")


@pytest.fixture
def unique() -> str:
    """A name that nothing else has: for what lives in no namespace."""
    return f"contract-{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="session")
def create_namespace(kubeconfig_of: Callable[[str], Kubeconfig]) -> Iterator[Callable[[str], None]]:
    """Creates namespaces over one connection, kept for the whole run."""
    loop = asyncio.new_event_loop()
    client = ApiClient(kubeconfig_of("admin"), deadline_seconds=DEADLINE_SECONDS)

    def create(name: str) -> None:
        loop.run_until_complete(client.create(NAMESPACES, {"metadata": {"name": name}}))

    yield create
    client.close()
    loop.close()


@pytest.fixture
def namespace(create_namespace: Callable[[str], None], unique: str) -> str:
    """A new, empty namespace."""
    create_namespace(unique)
    return unique


@pytest.fixture
def where(kind: Resource, namespace: str) -> str | None:
    """The namespace of a case's objects; None for kinds that live in none. `kind` is a parameter of the case."""
    return namespace if kind.namespaced else None
