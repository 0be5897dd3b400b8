"""`pp-leader enroll`: put a node under pp-hostd's care, and make the files that its host, or a leader's, needs."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from base64 import b64encode
from collections.abc import Sequence
from contextlib import closing
from ipaddress import ip_address
from urllib.parse import urlsplit

import yaml

from pp_hostd.errors import UserError
from pp_hostd.files import FileError, write_whole
from pp_hostd.kube.certificate import expiry
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.leader.access.manifests import KINDS
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.certificate import certified
from pp_hostd.leader.commands.host import find_node
from pp_hostd.leader.commands.peer_key import made_peer_keys
from pp_hostd.model.address import is_address
from pp_hostd.model.identities import AGENTS, LEADER_USER, LEADERS, NODE_USER, NODES
from pp_hostd.model.keys import ENROLLED, NAMESPACE
from pp_hostd.model.moment import render_moment
from pp_hostd.model.node import parse_node
from pp_hostd.model.record import Unreadable, render
from pp_hostd.service.output import filled, say
from pp_hostd.service.person import now, who

KUBELETS = "/var/lib/kubelet/pki/kubelet-client-current.pem"
"""Where a kubelet keeps its present certificate and key, in one file."""
ETC = "/etc/pp-hostd/"


def enroll(arguments: Namespace) -> int:
    if arguments.leader == (arguments.node is not None) or (arguments.leader and arguments.kubelet):
        hint = "Allowed: pp-leader enroll NODE, pp-leader enroll NODE --kubelet, pp-leader enroll --leader."
        raise UserError("name a node, or say --leader", hint)
    enroll_one = _enroll_leader if arguments.leader else _enroll_node
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        enroll_one(administrator, administrator.cluster(), arguments)
    return 0


def _enroll_node(administrator: Administrator, cluster: Json, arguments: Namespace) -> None:
    name, person, address = arguments.node, who(arguments.who), _address(administrator, arguments.node)
    groups = (NODES,) if arguments.kubelet else (NODES, AGENTS)
    _check_rights(administrator, "agent", groups)
    user: Json = {"client-certificate": KUBELETS, "client-key": KUBELETS}
    if not arguments.kubelet:
        user = _certified(administrator, NODE_USER + name, groups, arguments.wait)
    paths = _write(administrator, arguments.out or name, "kubeconfig", _kubeconfig(cluster, user))
    _enlist(administrator, name, person)
    _tell(paths, cluster, f"root@{address}", "systemctl enable pp-hostd-gate; systemctl enable --now pp-hostd")
    say(filled(f"Until its agent runs, {name} counts as a peer that is silent. To see its state:"))
    say(f"  pp-leader explain {name}")


def _enroll_leader(administrator: Administrator, cluster: Json, arguments: Namespace) -> None:
    groups = (LEADERS,)
    _check_rights(administrator, "leader", groups)
    user = _certified(administrator, LEADER_USER, groups, arguments.wait)
    paths = _write(administrator, arguments.out or "leader", "leader.kubeconfig", _kubeconfig(cluster, user))
    _tell(paths, cluster, "root@CONTROL-PLANE-HOST", "systemctl enable --now pp-leader")


def _address(administrator: Administrator, name: str) -> str:
    """Where its peers will ask it, as scp writes that."""
    node = parse_node(find_node(administrator, name))
    if isinstance(node, Unreadable):
        raise UserError(f"Node {name}: {node}", f"See: kubectl get node {name} -o yaml")
    if node.address is None:
        hint = f"Its kubelet says where it is, once it runs: kubectl get node {name} -o wide"
        raise UserError(f"Node {name} has no InternalIP, so its peers could not ask it", hint)
    return f"[{node.address}]" if ":" in node.address else node.address


def _check_rights(administrator: Administrator, role: str, groups: Sequence[str]) -> None:
    """Whether `install` has given rights to one of these groups."""
    binding = administrator.get(KINDS["ClusterRoleBinding"], f"pp-hostd:{role}")
    if binding is None:
        raise UserError("pp-hostd is not set up in this cluster", "See: pp-leader install --help")
    given = [subject["name"] for subject in binding.get("subjects", [])]
    if not set(given) & set(groups):
        hint = "To change that: pp-leader install --agents-use kubelet. Or enroll it without --kubelet."
        raise UserError(f"here the rights of the {role}s are those of {' '.join(given)}, not of {groups[0]}", hint)


def _certified(administrator: Administrator, user: str, groups: Sequence[str], wait_seconds: float) -> Json:
    made = certified(administrator, user, groups, wait_seconds)
    ends = render_moment(expiry(made.certificate.decode()))
    say(filled(f"A certificate of {user} is signed. It ends at {ends}; the daemon that uses it renews it before."))
    data = {"client-certificate-data": made.certificate, "client-key-data": made.key}
    return {key: b64encode(pem).decode() for key, pem in data.items()}


def _write(administrator: Administrator, directory: str, name: str, kubeconfig: bytes) -> list[str]:
    """The kubeconfig under this name, and the key file, for their owner alone."""
    contents = {name: kubeconfig, "peer.key": made_peer_keys(administrator).file}
    try:
        os.makedirs(directory, mode=0o700, exist_ok=True)
    except OSError as error:
        raise FileError(f"{directory}: can't be made ({error.strerror})", "Name another one with --out.") from None
    for each, content in contents.items():
        write_whole(os.path.join(directory, each), content)
    return [os.path.join(directory, each) for each in contents]


def _kubeconfig(cluster: Json, user: Json) -> bytes:
    name = "pp-hostd"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": name, "user": user}],
    }
    return yaml.safe_dump(document, sort_keys=False).encode()


def _enlist(administrator: Administrator, name: str, person: str) -> None:
    """The leader makes the roster from these."""
    data = {"data": {name: render({"who": person, "when": render_moment(now())})}}
    body = {"metadata": {"name": ENROLLED}, **data}
    if administrator.patch(CONFIG_MAPS, ENROLLED, NAMESPACE, data):
        return
    if not administrator.create(CONFIG_MAPS, body, NAMESPACE):
        raise UserError(f"somebody else writes to ConfigMap {NAMESPACE}/{ENROLLED}", "Try again.")


def _tell(paths: Sequence[str], cluster: Json, target: str, start: str) -> None:
    if _is_loopback(cluster["server"]):
        say(filled(f"First correct `server` in {paths[0]}: {cluster['server']} is another host there than here."))
    say("Copy these files to the host, and then remove them here; anyone who has them can speak for the host:")
    say(f"  {shlex.join(['scp', *paths, f'{target}:{ETC}'])}")
    say(f"  {shlex.join(['rm', *paths])}")
    say("Then, on the host:")
    say(f"  {start}")


def _is_loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    return host == "localhost" or (is_address(host) and ip_address(host).is_loopback)
