"""The clusters on which a power cycle is tried as a whole: embedded, real, and real with the definitions of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest

from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.published import published
from tests.leader.access.people import LEADER, pp_leader

CLUSTERS = ("embedded", "real", "published")


OWN = ("/registry/masterleases/", "/registry/leases/kube-system/")
"""Prefixes of the keys that the API server stores for itself."""


@dataclass(frozen=True)
class Place:
    """`leader` is a kubeconfig with the rights that `install` gives; `newest`: Machines are of the newest version."""

    admin: str
    leader: str
    machines: str
    newest: bool


class Clusters:
    """A real cluster starts once, since that takes long, and has nothing but what was installed at each use."""

    def __init__(self, closing: ExitStack) -> None:
        self._closing = closing
        self._real: dict[tuple[str, str], tuple[RealCluster, frozenset[str]]] = {}

    @contextmanager
    def place(self, kind: str, machines: str) -> Iterator[Place]:
        """Has a cluster of this kind, empty."""
        if kind == "embedded":  # which has no rights to give
            with EmbeddedCluster.start() as embedded:
                admin = str(embedded.kubeconfig())
                yield Place(admin, admin, machines, newest=False)
            return
        if (kind, machines) not in self._real:
            self._real[kind, machines] = self._installed(kind, machines)
        cluster, kept = self._real[kind, machines]
        cluster.forget(key for key in cluster.stored() - kept if not key.startswith(OWN))
        yield Place(str(cluster.kubeconfig()), str(cluster.kubeconfig(*LEADER)), machines, newest=kind == "published")

    def _installed(self, kind: str, machines: str) -> tuple[RealCluster, frozenset[str]]:
        start = RealCluster.start(definitions=published()) if kind == "published" else RealCluster.start()
        cluster = self._closing.enter_context(start)
        flows = ("poison-pill", *(() if machines == "node" else ("power-cycle",)), "external-remediation")
        chosen = ["--machines", machines, "--flows", ",".join(flows)]
        done = pp_leader("install", "--kubeconfig", str(cluster.kubeconfig()), *chosen)
        assert done.returncode == 0, done.stderr
        return cluster, cluster.stored()


@pytest.fixture(scope="module")
def clusters() -> Iterator[Clusters]:
    with ExitStack() as closing:
        yield Clusters(closing)
