"""CertificateSigningRequests: a new key and a request for it by openssl's program, and the outcome of one.

A library that makes keys would weigh megabytes for good in an agent whose memory is locked; the program ends.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Collection
from dataclasses import field

from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen
from pp_hostd.kube.certificate import Subject, parse_request
from pp_hostd.kube.child import answer_of
from pp_hostd.kube.client import Json
from pp_hostd.kube.deadline import TimedOut
from pp_hostd.kube.resources import Resource
from pp_hostd.model.renewal import SIGNER, USAGES, Renewal

REQUESTS = Resource(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
DEADLINE_SECONDS = 20.0
MAX_PEM_BYTES = 64 * 1024
LONGEST_USER = 64
"""The most that X.509 allows of a common name."""
KEY_COMMAND = ("openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256")
_PLAIN = re.compile(r"[A-Za-z0-9:.-]+")


@frozen
class KeyAndRequest:
    """Both as PEM."""

    request: bytes
    key: bytes = field(repr=False)


async def made_request(subject: Subject) -> KeyAndRequest:
    """A new key, and a request for a certificate of it. UserError if they can't be made."""
    if len(subject.user) > LONGEST_USER:
        hint = "Agents can use the kubelets' credentials: see --agents-use in pp-leader install --help."
        long = f"{subject.user} is longer than the {LONGEST_USER} characters that a certificate has room for"
        raise UserError(long, hint)
    if not all(map(_PLAIN.fullmatch, (subject.user, *subject.groups))):
        raise UserError(f"{subject.user} is no user whose certificate can be requested")
    name = "".join(f"/O={group}" for group in sorted(subject.groups)) + f"/CN={subject.user}"
    key = await _openssl(KEY_COMMAND, b"")
    request = await _openssl(("openssl", "req", "-new", "-batch", "-key", "/proc/self/fd/0", "-subj", name), key)
    try:
        right = parse_request(request.decode("ascii", "replace")) == subject
    except ValueError as error:
        raise UserError(f"openssl's request for a certificate {error}") from None
    if not right:
        raise UserError(f"openssl did not make a request for {subject.user}")
    return KeyAndRequest(request, key)


async def _openssl(command: Collection[str], data: bytes) -> bytes:
    hint = "The package openssl has to be installed."
    try:
        answer = await answer_of([*command], DEADLINE_SECONDS, MAX_PEM_BYTES, data)
    except (OSError, TimedOut) as error:
        raise UserError(f"openssl could not be run: {str(error) or 'it did not end in time'}", hint) from None
    if b"-----END" not in answer:
        raise UserError(f"`{' '.join(command)}` made nothing", hint)
    return answer


def signing_request(name: str, request: bytes) -> Json:
    """The object that asks the cluster's signer for a client certificate."""
    spec = {"signerName": SIGNER, "request": b64encode(request).decode(), "usages": [*USAGES]}
    return {"metadata": {"name": name}, "spec": spec}


def approval(approved: bool, reason: str, message: str) -> Json:
    """The patch of the subresource `approval`."""
    condition = {"type": "Approved" if approved else "Denied", "status": "True", "reason": reason, "message": message}
    return {"status": {"conditions": [condition]}}


def is_decided(found: Json) -> bool:
    """Whether somebody has approved or denied this request, or the signer has failed."""
    return bool((found.get("status") or {}).get("conditions"))


def certificate_of(found: Json) -> bytes:
    """The certificate as PEM; empty if there is none yet. UserError if there will be none."""
    status, name = found.get("status") or {}, found["metadata"]["name"]
    for condition in status.get("conditions") or ():
        if condition["type"] in ("Denied", "Failed"):
            said = f"{condition['type'].lower()} ({condition.get('reason')}: {condition.get('message')})"
            raise UserError(f"{REQUESTS.describe(None, name)} is {said}", f"See: kubectl describe csr {name}")
    return b64decode(status.get("certificate") or "")


def parse_renewal(found: Json) -> Renewal:
    """What a leader decides on. ValueError if the request can't be read or wants more than a subject."""
    spec = found["spec"]
    subject = parse_request(b64decode(spec["request"]).decode("ascii", "replace"))
    return Renewal(
        name=found["metadata"]["name"],
        requester=spec.get("username") or "",
        requester_groups=tuple(spec.get("groups") or ()),
        signer=spec["signerName"],
        usages=tuple(spec.get("usages") or ()),
        bounded=spec.get("expirationSeconds") is not None,
        user=subject.user,
        groups=subject.groups,
    )
