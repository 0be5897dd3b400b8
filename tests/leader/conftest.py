"""Clusters of either kind, and a troublesome server: the same ones that the contract and the client are tested with."""

from tests.contract.conftest import (
    client,
    client_of,
    clients,
    cluster,
    create_namespace,
    embedded_cluster,
    kubeconfig_of,
    namespace,
    unique,
)
from tests.kube.conftest import dial, identity, kubeconfig, trouble
from tests.leader.power.clusters import clusters

__all__ = [
    "client",
    "client_of",
    "clients",
    "cluster",
    "clusters",
    "create_namespace",
    "dial",
    "embedded_cluster",
    "identity",
    "kubeconfig",
    "kubeconfig_of",
    "namespace",
    "trouble",
    "unique",
]
