"""A home where Nodes are the machines, hands that delete fast, and a client to whose deletions something happens."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Callable

import pytest

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig
from tests.agent.objects import Home
from tests.leader.applying import Actuators
from tests.leader.freeing.deeds import FAST, Eventful


@pytest.fixture
def home(client: ApiClient, namespace: str) -> Home:
    return Home(client, "node", namespace)


@pytest.fixture
def actuators(home: Home) -> Actuators:
    return Actuators(home, settings=FAST)


@pytest.fixture
def eventful(kubeconfig_of: Callable[[str], Kubeconfig]) -> Iterator[Eventful]:
    client = Eventful(kubeconfig_of("admin"), deadline_seconds=10)
    yield client
    client.close()
