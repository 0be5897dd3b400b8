"""The clusters on which a power cycle is tried as a whole: embedded, real, and real with the definitions of others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.harness.cluster import Cluster
from tests.harness.controlplane import RealCluster
from tests.harness.embedded import EmbeddedCluster
from tests.harness.published import published
from tests.leader.access.people import LEADER, pp_leader

CLUSTERS = ("embedded", "real", "published")


@dataclass(frozen=True)
class Ground:
    """`leader` is a kubeconfig with the rights that `install` gives; `newest`: Machines are of the newest version."""

    admin: str
    leader: str
    machines: str
    newest: bool


@contextmanager
def ground(kind: str, machines: str) -> Iterator[Ground]:
    with _cluster(kind) as cluster:
        admin = str(cluster.kubeconfig())
        if kind == "embedded":  # which has no rights to give
            yield Ground(admin, admin, machines, newest=False)
            return
        flows = ["--flows", "poison-pill,power-cycle,external-remediation"]
        done = pp_leader("install", "--kubeconfig", admin, "--machines", machines, *flows)
        assert done.returncode == 0, done.stderr
        yield Ground(admin, str(cluster.kubeconfig(*LEADER)), machines, newest=kind == "published")


def _cluster(kind: str) -> Cluster:
    if kind == "embedded":
        return EmbeddedCluster.start()
    return RealCluster.start(definitions=published()) if kind == "published" else RealCluster.start()
