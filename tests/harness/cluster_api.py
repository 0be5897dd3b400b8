"""Cluster API's real manager beside a real control plane, with the rights that its own installation gives it.

Its webhook converts between the versions of its kinds. Those that admit objects are not installed.
"""

from __future__ import annotations

import contextlib
import random
import socket
from base64 import b64encode
from collections.abc import Iterator
from typing import Any

from tests.harness.build import CLUSTER_API, binaries
from tests.harness.controlplane import DEFINITIONS, RBAC, RealCluster
from tests.harness.eventually import eventually
from tests.harness.pki import LOOPBACK, CertificateAuthority
from tests.harness.published import of_cluster_api

USER = "system:serviceaccount:capi-system:capi-manager"
GATHERED = "cluster.x-k8s.io/aggregate-to-manager"
INFRASTRUCTURE = "infrastructure.cluster.x-k8s.io"
PORTS = range(20000, 30000)
"""Below those that the kernel gives to clients: nobody can hold one for a program that does not share it."""


class ClusterApi:
    """`running` is how to get one."""

    def __init__(self) -> None:
        self._port = next(port for port in random.sample(PORTS, len(PORTS)) if _is_unused(port))
        self._authority = CertificateAuthority("webhooks")

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator[RealCluster]:
        """A cluster with it, and with the controllers of Kubernetes that its rights and its objects' ends need."""
        manager = cls()
        with RealCluster.start(definitions=manager._definitions()) as cluster:
            cluster.run_controllers("clusterrole-aggregation-controller", "garbage-collector-controller")
            manager._grant(cluster)
            manager._run(cluster)
            yield cluster

    def _definitions(self) -> list[dict[str, Any]]:
        found = {each["metadata"]["name"]: each for each in DEFINITIONS}
        url, bundle = f"https://127.0.0.1:{self._port}/convert", b64encode(self._authority.certificate_pem).decode()
        webhook = {"conversionReviewVersions": ["v1"], "clientConfig": {"url": url, "caBundle": bundle}}
        for definition in of_cluster_api("bases"):
            definition["spec"]["conversion"] = {"strategy": "Webhook", "webhook": webhook}
            found[definition["metadata"]["name"]] = definition
        return [*found.values(), *map(_infrastructure, ("BedCluster", "BedMachine", "BedMachineTemplate"))]

    def _grant(self, cluster: RealCluster) -> None:
        """As its kustomization does: its manager has whatever rights bear the label, and its own role does."""
        roles = {each["metadata"]["name"]: each for each in of_cluster_api("rbac") if each["kind"] == "ClusterRole"}
        roles["manager-role"]["metadata"]["labels"] = {GATHERED: "true"}
        for role in roles.values():
            cluster.create(f"{RBAC}/clusterroles", role)
        reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "aggregated-manager-role"}
        subject = {"kind": "User", "name": USER}
        binding = {"metadata": {"name": "capi-manager"}, "subjects": [subject], "roleRef": reference}
        cluster.create(f"{RBAC}/clusterrolebindings", binding)
        gathered = f"{RBAC}/clusterroles/aggregated-manager-role"
        eventually(lambda: cluster.get(gathered).get("rules"), "the rights of Cluster API's manager are gathered")

    def _run(self, cluster: RealCluster) -> None:
        certificates = cluster.directory / "webhooks"
        certificates.mkdir()
        issued = self._authority.issue("webhooks", sans=LOOPBACK)
        (certificates / "tls.crt").write_bytes(issued.cert_pem)
        (certificates / "tls.key").write_bytes(issued.key_pem)
        flags = {
            "kubeconfig": cluster.kubeconfig(USER, ("system:serviceaccounts",)),
            "webhook-port": self._port,
            "webhook-cert-dir": certificates,
            "health-addr": 0,
            "diagnostics-address": 0,
            "insecure-diagnostics": "true",
            "feature-gates": "ReconcilerRateLimiting=false",  # else it looks at a health check every 15 s at most
        }
        program = str(binaries(CLUSTER_API) / "manager")
        cluster.supervisor.run("manager", [program, *(f"--{flag}={value}" for flag, value in flags.items())])
        eventually(lambda: not _is_unused(self._port), "Cluster API's manager listens", 60)


def _infrastructure(kind: str) -> dict[str, Any]:
    """A kind of a provider of infrastructure, which a test plays: by this contract the manager reads and clones it."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"kind": kind, "plural": f"{kind.lower()}s", "singular": kind.lower(), "listKind": f"{kind}List"}
    metadata = {"name": f"{names['plural']}.{INFRASTRUCTURE}", "labels": {"cluster.x-k8s.io/v1beta2": "v1"}}
    spec = {"group": INFRASTRUCTURE, "scope": "Namespaced", "names": names, "versions": [version]}
    return {"kind": "CustomResourceDefinition", "metadata": metadata, "spec": spec}


def _is_unused(port: int) -> bool:
    with socket.socket() as tried:
        tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            tried.bind(("", port))
        except OSError:
            return False
    return True
