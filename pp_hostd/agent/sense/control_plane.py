"""Whether this host starts a part of the control plane, or is an API server's address: what its gate depends on.

Nothing here waits for a network: names are looked up in /etc/hosts, unless a caller who may wait brings a resolver.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterable
from ipaddress import ip_address
from typing import Callable

from pp_hostd.errors import UserError
from pp_hostd.files import FileError, read_whole
from pp_hostd.frozen import replace
from pp_hostd.kube.kubeconfig import load
from pp_hostd.model.endpoint import is_address, parse_endpoint
from pp_hostd.model.gate_kind import GateFacts, ServerFacts, gate_kind, hindrance
from pp_hostd.model.settings import Settings

Resolve = Callable[[str], Iterable[str]]

MANIFESTS = (
    "/etc/kubernetes/manifests",
    "/var/lib/rancher/rke2/agent/pod-manifests",
    "/var/lib/rancher/k3s/agent/pod-manifests",
)
KUBELET_CONFIGS = ("/var/lib/kubelet/config.yaml", "/etc/kubernetes/kubelet.conf")
SERVER_UNITS = ("k3s.service", "rke2-server.service")
WANTED = "/etc/systemd/system/multi-user.target.wants"
HOSTS = "/etc/hosts"
LIMIT_BYTES = 1024 * 1024
_STATIC_POD_PATH = re.compile(r"^\s*\"?staticPodPath\"?\s*:\s*\"?([^\s\",]+)", re.MULTILINE)
_CONTROL_PLANE = re.compile(r"\"?name\"?\s*:\s*\"?(kube-apiserver|etcd)(?=[\"\s,}]|$)")


def with_gate_in_force(settings: Settings) -> tuple[Settings, str]:
    """The settings with the kind of gate that this host really has, and why it may not have "hold"; agent and gate
    unit both go by this."""
    hindered_by = hindrance(gate_facts(settings))
    kind = gate_kind(settings.agent.gate, hindered_by)
    return replace(settings, agent=replace(settings.agent, gate=kind.value)), hindered_by


def gate_facts(settings: Settings, resolve: Resolve | None = None, root: str = "/") -> GateFacts:
    found = resolve or (lambda host: in_hosts_file(host, os.path.join(root, HOSTS[1:])))
    servers = tuple(_server(host, found(host)) for host in _server_hosts(settings))
    return GateFacts(starts_control_plane(settings.agent.kubelet_unit, root), servers)


def starts_control_plane(kubelet_unit: str, root: str = "/") -> str:
    """The file or unit by which this host starts an API server or etcd; empty if there is none."""
    if kubelet_unit in SERVER_UNITS:
        return kubelet_unit
    for unit in SERVER_UNITS:
        if os.path.lexists(os.path.join(root, WANTED[1:], unit)):
            return unit
    directories = [*MANIFESTS, *(path for config in KUBELET_CONFIGS for path in _static_pod_path(root, config))]
    for directory in dict.fromkeys(directories):
        for path in _files(os.path.join(root, directory.lstrip("/"))):
            if _CONTROL_PLANE.search(_text(path)):
                return path
    return ""


def by_name_service(host: str) -> list[str]:
    """As the resolver of this host knows it; this may take long."""
    try:
        return list(dict.fromkeys(str(entry[4][0]) for entry in socket.getaddrinfo(host, None)))
    except OSError:
        return []


def in_hosts_file(host: str, path: str = HOSTS) -> list[str]:
    lines = (line.partition("#")[0].split() for line in _text(path).splitlines())
    return [words[0] for words in lines if host in (word.lower() for word in words[1:])]


def _server_hosts(settings: Settings) -> list[str]:
    """Of the kubeconfig, as far as it can be read, and of api.servers."""
    try:
        first = [endpoint.host for endpoint in load(settings.api.kubeconfig).endpoints]
    except UserError:
        first = []
    more = [endpoint.host for endpoint in map(parse_endpoint, settings.api.servers) if endpoint is not None]
    return list(dict.fromkeys([*first, *more]))


def _server(host: str, resolved: Iterable[str]) -> ServerFacts:
    addresses = [ip_address(each) for each in ([host] if is_address(host) else resolved) if is_address(each)]
    loopback = bool(addresses) and all(each.is_loopback for each in addresses)
    own = any(not each.is_loopback and _is_own(str(each)) for each in addresses)
    return ServerFacts(host, own=own, loopback=loopback)


def _is_own(address: str) -> bool:
    """Only an address of one's own can be bound."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _static_pod_path(root: str, config: str) -> list[str]:
    return _STATIC_POD_PATH.findall(_text(os.path.join(root, config[1:])))[:1]


def _files(directory: str) -> list[str]:
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return []
    return [os.path.join(directory, name) for name in names if not name.startswith(".")]


def _text(path: str) -> str:
    try:
        return read_whole(path, LIMIT_BYTES).decode("utf-8", "replace")
    except FileError:
        return ""
