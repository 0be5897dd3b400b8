"""The real control plane under the tests: it comes up, and its users, resources and kubelets are as promised."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pp_hostd.kube import resources
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NODES, OPENSHIFT_MACHINES, PODS, Resource
from tests.harness.build import CONTROL_PLANE, binaries
from tests.harness.cluster import Cluster, write_kubeconfig
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.harness.pki import CertificateAuthority

OUR_RESOURCES = [value for value in vars(resources).values() if isinstance(value, Resource)]


def kubectl(kubeconfig: Path, verb: str, path: str, obj: Any = None) -> subprocess.CompletedProcess[str]:
    """One raw request by the reference client."""
    argv = [str(binaries() / "kubectl"), f"--kubeconfig={kubeconfig}", verb, f"--raw={path}"]
    if obj is not None:
        argv.append("--filename=-")
    return subprocess.run(
        argv, input=json.dumps(obj), capture_output=True, text=True, timeout=HANGS_SECONDS, check=False
    )


def create(cluster: Cluster, path: str, obj: Any) -> Any:
    done = kubectl(cluster.kubeconfig(), "create", path, obj)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def read(cluster: Cluster, path: str) -> Any:
    done = kubectl(cluster.kubeconfig(), "get", path)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refusal(kubeconfig: Path, path: str) -> str:
    """Returns kubectl's message to the user; the server must refuse to read."""
    done = kubectl(kubeconfig, "get", path)
    assert done.returncode != 0, done.stdout
    return done.stderr


def test_it_is_the_kubernetes_that_the_module_names(real_cluster: RealCluster) -> None:
    version = read(real_cluster, "/version")
    assert f"k8s.io/kubernetes {version['gitVersion']}" in (CONTROL_PLANE.directory / "go.mod").read_text()


@pytest.mark.parametrize("resource", OUR_RESOURCES, ids=lambda resource: resource.path())
def test_every_resource_that_we_use_is_served(real_cluster: RealCluster, resource: Resource) -> None:
    assert read(real_cluster, resource.path())["kind"] == f"{resource.kind}List"


def test_a_custom_resource_keeps_what_its_definition_does_not_name(real_cluster: RealCluster) -> None:
    machine = {
        "apiVersion": OPENSHIFT_MACHINES.api_version,
        "kind": "Machine",
        "metadata": {"generateName": "machine-"},
        "spec": {
            "providerID": "baremetalhost:///hosts/rack-1",
            "taints": [{"key": "dedicated", "effect": "NoSchedule"}],
        },
    }
    assert create(real_cluster, OPENSHIFT_MACHINES.path("default"), machine)["spec"] == machine["spec"]


@pytest.mark.parametrize("token", [True, False], ids=["token", "certificate"])
def test_admin_may_do_everything(real_cluster: RealCluster, token: bool) -> None:
    assert kubectl(real_cluster.kubeconfig("admin", token=token), "get", "/api/v1/secrets").returncode == 0


@pytest.mark.parametrize("token", [True, False], ids=["token", "certificate"])
def test_reader_reads_what_it_may_and_nothing_else(real_cluster: RealCluster, token: bool) -> None:
    reader = real_cluster.kubeconfig("reader", token=token)
    for resource in (NODES, CONFIG_MAPS, PODS, LEASES):
        assert kubectl(reader, "get", resource.path()).returncode == 0
    assert '(Forbidden): secrets is forbidden: User "reader"' in refusal(reader, "/api/v1/secrets")
    written = kubectl(reader, "create", CONFIG_MAPS.path("default"), {"metadata": {"name": "by-reader"}})
    assert "(Forbidden)" in written.stderr


@pytest.mark.parametrize("token", [True, False], ids=["token", "certificate"])
def test_nobody_may_do_nothing(real_cluster: RealCluster, token: bool) -> None:
    assert 'User "nobody"' in refusal(real_cluster.kubeconfig("nobody", token=token), NODES.path())


def test_a_node_reads_its_own_node_and_no_other(real_cluster: RealCluster) -> None:
    for name in ("own", "other"):
        create(real_cluster, NODES.path(), {"metadata": {"name": name}})
    node = real_cluster.kubeconfig("system:node:own")
    assert kubectl(node, "get", NODES.path(name="own")).returncode == 0
    assert "node 'own' cannot read 'other'" in refusal(node, NODES.path(name="other"))


def test_a_node_creates_no_node_but_its_own(real_cluster: RealCluster) -> None:
    node = real_cluster.kubeconfig("system:node:created-by-itself")
    assert kubectl(node, "create", NODES.path(), {"metadata": {"name": "created-by-itself"}}).returncode == 0
    refused = kubectl(node, "create", NODES.path(), {"metadata": {"name": "created-by-another"}})
    assert 'node "created-by-itself" is not allowed to modify node "created-by-another"' in refused.stderr


def test_who_is_not_known_is_unauthorized(real_cluster: RealCluster, tmp_path: Path) -> None:
    foreign = CertificateAuthority("foreign").issue("admin", ("system:masters",))
    expired = real_cluster.authority.issue("admin", ("system:masters",), valid_seconds=60)
    ca_pem = real_cluster.authority.certificate_pem
    for kubeconfig in (
        write_kubeconfig(tmp_path / "token", real_cluster.server, ca_pem, token="guessed"),
        write_kubeconfig(tmp_path / "foreign", real_cluster.server, ca_pem, certificate=foreign),
        write_kubeconfig(tmp_path / "expired", real_cluster.server, ca_pem, certificate=expired),
    ):
        assert "(Unauthorized)" in refusal(kubeconfig, NODES.path())


def test_forgotten_history_is_gone(real_cluster: RealCluster) -> None:
    for resource in (CONFIG_MAPS, OPENSHIFT_MACHINES):
        for _ in range(2):
            created = create(
                real_cluster,
                resource.path("default"),
                {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": {"generateName": "history-"}},
            )
    before = created["metadata"]["resourceVersion"]
    pages = {path: read(real_cluster, f"{path}?limit=1") for path in (CONFIG_MAPS.path(), OPENSHIFT_MACHINES.path())}
    real_cluster.forget_history()
    admin = real_cluster.kubeconfig()
    for path, page in pages.items():
        assert "(Expired)" in refusal(admin, f"{path}?limit=1&continue={page['metadata']['continue']}")
        assert "(Expired)" in refusal(admin, f"{path}?resourceVersion={before}&resourceVersionMatch=Exact")
        event = read(real_cluster, f"{path}?watch=true&timeoutSeconds=5&resourceVersion={before}")
        assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


@pytest.fixture
def populated_cluster() -> Iterator[RealCluster]:
    with RealCluster.start(controllers=True, kwok=True) as cluster:
        yield cluster


def test_the_scheduler_places_a_pod_on_a_node_of_kwok_where_it_runs(populated_cluster: RealCluster) -> None:
    create(populated_cluster, NODES.path(), {"metadata": {"name": "worker"}})
    pod = {"metadata": {"name": "sleeper"}, "spec": {"containers": [{"name": "sleeper", "image": "none"}]}}
    create(populated_cluster, PODS.path("default"), pod)

    def running_pod() -> Any:
        pod = read(populated_cluster, PODS.path("default", "sleeper"))
        return pod if pod["status"]["phase"] == "Running" else None

    assert eventually(running_pod, "the pod runs")["spec"]["nodeName"] == "worker"
    conditions = read(populated_cluster, NODES.path(name="worker"))["status"]["conditions"]
    assert [condition["status"] for condition in conditions if condition["type"] == "Ready"] == ["True"]
    assert read(populated_cluster, LEASES.path("kube-node-lease", "worker"))["spec"]["leaseDurationSeconds"] == 40
