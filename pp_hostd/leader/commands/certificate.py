"""A client certificate for an agent or a leader, through the cluster's own signer."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from dataclasses import field

from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen
from pp_hostd.kube.certificate import Subject
from pp_hostd.kube.signing_request import REQUESTS, approval, certificate_of, made_request, signing_request
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.waiting import awaited


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
            f"See: kubectl describe csr {name}. It takes a kube-controller-manager with --cluster-signing-cert-file "
            "and --cluster-signing-key-file. Where there is none, agents can use the kubelets' credentials: see "
            "--agents-use in pp-leader install --help.",
        )
    return Certified(certificate, made.key)


def _issued(administrator: Administrator, name: str) -> bytes:
    found = administrator.get(REQUESTS, name)
    return b"" if found is None else certificate_of(found)
