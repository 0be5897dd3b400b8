"""`pp-leader enroll` and `pp-leader unenroll`: put a node under pp-hostd's care, and take it out again quietly."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
from argparse import Namespace
from base64 import b64encode
from collections.abc import Sequence
from contextlib import closing
from dataclasses import field
from ipaddress import ip_address
from urllib.parse import urlsplit

import yaml

from pp_hostd.errors import UserError
from pp_hostd.files import FileError, write_whole
from pp_hostd.frozen import frozen
from pp_hostd.kube.certificate import Subject, expiry
from pp_hostd.kube.client import Json
from pp_hostd.kube.renewing import REQUESTS, approval, certificate_of, made_request, signing_request
from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.leader.access.leftovers import removal
from pp_hostd.leader.access.manifests import KINDS
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.condemn import already
from pp_hostd.leader.commands.host import find_node, own_config_maps, read_host, settings_of
from pp_hostd.leader.commands.rotate_key import made_peer_keys
from pp_hostd.leader.commands.status import read_leadership
from pp_hostd.leader.commands.waiting import awaited
from pp_hostd.model.endpoint import is_address
from pp_hostd.model.keys import (
    AGENTS,
    CONDEMNATION_ID,
    ENROLLED,
    LEADER_USER,
    LEADERS,
    NAMESPACE,
    NODE_USER,
    NODES_GROUP,
    ROSTER,
)
from pp_hostd.model.moment import render_moment
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.observed import is_early
from pp_hostd.model.promise import GateClosed, Withdrawn
from pp_hostd.model.record import Unreadable, render
from pp_hostd.model.roster import parse_roster
from pp_hostd.model.settings import Settings
from pp_hostd.service.output import confirm, filled, now, say, who


@frozen
class Certified:
    """A certificate and its key, both as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def certified(administrator: Administrator, user: str, groups: Sequence[str], wait_seconds: float) -> Certified:
    """One that the administrator has requested and approved; the key was made here, and is nowhere else."""
    made = asyncio.run(made_request(Subject(user, frozenset(groups))))
    name = f"pp-hostd-{secrets.token_hex(8)}"
    administrator.create(REQUESTS, signing_request(name, made.request))
    approved = approval(True, "Enrolled", "requested by pp-leader enroll")
    if not administrator.patch(REQUESTS, name, None, approved, "approval"):
        raise UserError(f"somebody else has changed {REQUESTS.describe(None, name)}", "Try again.")
    certificate = awaited(lambda: _issued(administrator, name), wait_seconds, f"a certificate of {user}")
    if not certificate:
        raise UserError(
            f"{user} has no certificate: after {wait_seconds:g} s nobody has signed {REQUESTS.describe(None, name)}",
            f"See: kubectl describe csr {name}. Signing needs a kube-controller-manager with "
            "--cluster-signing-cert-file and --cluster-signing-key-file. Where there is none, agents can use the "
            "kubelets' credentials: see --agents-use in pp-leader install --help.",
        )
    return Certified(certificate, made.key)


def _issued(administrator: Administrator, name: str) -> bytes:
    found = administrator.get(REQUESTS, name)
    return b"" if found is None else certificate_of(found)


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
    groups = (NODES_GROUP,) if arguments.kubelet else (NODES_GROUP, AGENTS)
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


LEFT_ON_HOST = "systemctl disable --now pp-hostd; systemctl disable pp-hostd-gate; rm -r /etc/pp-hostd"
WARNING = (
    "WARNING: you confirm that the host of Node {name} is gone for good. If it still runs, it may be reset when "
    "it loses the API, and nobody frees its workloads then."
)


def unenroll(arguments: Namespace) -> int:
    name, wait_seconds = arguments.node, arguments.wait
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        settings = settings_of(arguments, administrator)
        there = not _only_enrolled(administrator, name)
        if there:
            _check(administrator, settings, name, force=arguments.force)
        if arguments.force:
            say(filled(WARNING.format(name=name)))
            confirm(name, yes=arguments.yes)
        elif there:
            _await_withdrawal(administrator, name, wait_seconds)
        else:
            raise UserError(
                f"{name} is enrolled, and has no Node that would show whether its host is armed", _gone(name)
            )
        if there:  # again: that took time
            _check(administrator, settings, name, force=arguments.force)
        administrator.patch(CONFIG_MAPS, ENROLLED, NAMESPACE, {"data": {name: None}})
        _await_roster(administrator, name, wait_seconds)
        administrator.change(NODES, name, None, _bare)
    say(
        filled(
            f"{name} is not enrolled any more: its peers no longer count it, and the leader does nothing about it. "
            "To clean up its host:"
        )
    )
    say(f"  {LEFT_ON_HOST}")
    say(filled("Anyone who had its files still knows the peers' key. If that matters: pp-leader rotate-key"))
    return 0


def _only_enrolled(administrator: Administrator, name: str) -> bool:
    """Whether its Node is gone, and nobody gives it back."""
    ours = own_config_maps(administrator)
    given_back = {each for each, stored in ours.backups.items() if not is_early(stored)}
    return name in ours.enrolled - given_back and administrator.get(NODES, name) is None


def _gone(name: str) -> str:
    return f"If that host is gone for good: pp-leader unenroll {name} --force"


def _check(administrator: Administrator, settings: Settings, name: str, *, force: bool) -> None:
    """Refuse while the leader has to do with it."""
    host = read_host(administrator, settings, name)
    if host.node is None or host.node.node.freeing is not None:
        raise UserError(f"the workloads of {name} are being freed", f"Let the leader finish: pp-leader explain {name}")
    if force and host.machine is None:
        return  # it went with its host
    asked = already(host)
    if asked:
        raise UserError(asked, f"Let the leader finish, or take it back: pp-leader absolve {name}")


def _await_withdrawal(administrator: Administrator, name: str, wait_seconds: float) -> None:
    if _promises_nothing(administrator, name):
        return
    say(filled(f"The host of Node {name} is armed. To withdraw its promise, and to keep it unarmed, run there:"))
    say("  systemctl disable --now pp-hostd; systemctl disable pp-hostd-gate")
    say(f"The command waits at most {wait_seconds:g} s for that.")
    if not awaited(lambda: _promises_nothing(administrator, name), wait_seconds, f"the host of Node {name}"):
        raise UserError(f"nothing was changed: the host of Node {name} is still armed", _gone(name))


def _promises_nothing(administrator: Administrator, name: str) -> bool:
    node = parse_node(find_node(administrator, name))
    return isinstance(node, Node) and isinstance(node.agent, (GateClosed, Withdrawn, type(None)))


def _await_roster(administrator: Administrator, name: str, wait_seconds: float) -> None:
    """Until the leader has written one without it."""
    leadership = read_leadership(administrator, now())
    wait_seconds = wait_seconds if leadership.leads else 0
    if not awaited(lambda: not _listed(administrator, name), wait_seconds, f"a roster without {name}"):
        raise UserError(
            f"{name} is no longer enrolled, but the roster still lists it: {leadership.sentence()}",
            f"Once a leader has written another roster, to finish: pp-leader unenroll {name}",
        )


def _listed(administrator: Administrator, name: str) -> bool:
    stored = administrator.get(CONFIG_MAPS, ROSTER, NAMESPACE)
    if stored is None:
        return False
    roster = parse_roster(stored.get("data", {}).get(ROSTER))
    if isinstance(roster, Unreadable):
        raise UserError(f"ConfigMap {NAMESPACE}/{ROSTER}: {roster}", "A leader writes none while it can't be read.")
    return any(member.name == name and member.until is None for member in roster.members())


def _bare(node: Json) -> Json | None:
    """The Node without our marks, but for the id of its last condemnation: ids only grow, whoever enrolls it again
    (rule 4)."""
    patch = removal(node)
    if patch is None:
        return None
    annotations = patch["metadata"].get("annotations", {})
    annotations.pop(CONDEMNATION_ID, None)
    return patch
