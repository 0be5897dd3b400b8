"""How an agent finds out whether its host starts the control plane, or is an API server's address."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from pp_hostd.agent.sense.control_plane import gate_facts, starts_control_plane
from pp_hostd.model.gate_kind import ServerFacts
from pp_hostd.model.settings import Api, Settings
from tests.harness.isolated import isolated
from tests.test_cli import run

KUBEADM = "spec:\n  containers:\n  - command:\n    - kube-apiserver\n    name: kube-apiserver\n"
OPENSHIFT = '{"spec": {"containers": [{"name": "etcd", "image": "quay.io/it"}]}}'
PROXY = "metadata:\n  name: nginx-proxy\nspec:\n  containers:\n  - name: nginx-proxy\n    args: [--to=kube-apiserver]\n"


def made(root: Path, path: str, text: str = "") -> Path:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("etc/kubernetes/manifests/kube-apiserver.yaml", KUBEADM),
        ("etc/kubernetes/manifests/etcd-pod.yaml", OPENSHIFT),
        ("var/lib/rancher/rke2/agent/pod-manifests/kube-apiserver.yaml", KUBEADM),
    ],
)
def test_a_static_pod_of_the_control_plane_is_found(tmp_path: Path, path: str, text: str) -> None:
    file = made(tmp_path, path, text)
    assert starts_control_plane("kubelet.service", str(tmp_path)) == str(file)


def test_the_kubelets_own_manifest_directory_counts(tmp_path: Path) -> None:
    made(tmp_path, "var/lib/kubelet/config.yaml", "kind: KubeletConfiguration\nstaticPodPath: /opt/pods\n")
    file = made(tmp_path, "opt/pods/it.yaml", KUBEADM)
    assert starts_control_plane("kubelet.service", str(tmp_path)) == str(file)


@pytest.mark.parametrize("unit", ["k3s.service", "rke2-server.service"])
def test_a_server_of_k3s_or_rke2_is_found(tmp_path: Path, unit: str) -> None:
    assert starts_control_plane(unit, str(tmp_path)) == unit
    assert not starts_control_plane("k3s-agent.service", str(tmp_path))
    made(tmp_path, f"etc/systemd/system/multi-user.target.wants/{unit}")
    assert starts_control_plane("kubelet.service", str(tmp_path)) == unit


def test_a_workers_own_static_pods_are_no_control_plane(tmp_path: Path) -> None:
    made(tmp_path, "etc/kubernetes/manifests/nginx-proxy.yaml", PROXY)
    assert not starts_control_plane("kubelet.service", str(tmp_path))


@isolated
def test_servers_are_told_apart_by_their_addresses(tmp_path: Path) -> None:
    subprocess.run(["ip", "address", "add", "192.0.2.7/32", "dev", "lo"], check=True)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    made(tmp_path, "etc/hosts", "192.0.2.7 me.example.org # 127.0.0.1 elsewhere\n127.0.0.1 near Local\n")
    hosts = ("192.0.2.7", "192.0.2.8", "127.0.0.1", "[::1]", "me.example.org", "local", "elsewhere")
    servers = tuple(f"https://{host}:6443" for host in hosts)
    settings = Settings(api=Api(kubeconfig="/nonexistent", servers=servers))
    assert gate_facts(settings, root=str(tmp_path)).servers == (
        ServerFacts("192.0.2.7", own=True),
        ServerFacts("192.0.2.8"),
        ServerFacts("127.0.0.1", loopback=True),
        ServerFacts("::1", loopback=True),
        ServerFacts("me.example.org", own=True),
        ServerFacts("local", loopback=True),
        ServerFacts("elsewhere"),
    )


def test_check_config_refuses_to_hold_where_every_server_is_loopback(tmp_path: Path) -> None:
    def checked(*servers: str) -> str:
        quoted = ", ".join(f'"https://{server}"' for server in servers)
        text = f'[api]\nkubeconfig = "/nonexistent"\nservers = [{quoted}]\n[agent]\ngate = "hold"\n'
        return run("pp-hostd", "check-config", "--config", str(made(tmp_path, "it.toml", text))).stderr

    refused = " ".join(checked("127.0.0.1:6443", "localhost:6443").split())
    assert "line 5" in refused
    assert '"hold" could keep this host waiting for ever' in refused
    assert "direct addresses in api.servers" in refused
    assert checked("127.0.0.1:6443", "192.0.2.8:6443") == ""
