"""A client certificate for an agent or a leader, through the cluster's own signer."""

from __future__ import annotations

import secrets
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import field

from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import Resource
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.waiting import awaited

try:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import NameOID
except ImportError as error:
    hint = "Install the packages of the extra `admin`, for example python3-cryptography."
    raise UserError(f"this command needs a Python package that is not there: {error}", hint) from None

REQUESTS = Resource(
    "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", namespaced=False
)
SIGNER = "kubernetes.io/kube-apiserver-client"
"""The one that signs for any groups but system:masters; the kubelets' own signer takes system:nodes alone."""

LONGEST_USER = 64
"""The most that X.509 allows of a common name."""


@frozen
class Certified:
    """A certificate and its key, both as PEM."""

    certificate: bytes
    key: bytes = field(repr=False)


def certified(administrator: Administrator, user: str, groups: Sequence[str], wait_seconds: float) -> Certified:
    """One that the administrator has asked for and approved; the key was made here, and is nowhere else."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = f"pp-hostd-{secrets.token_hex(8)}"
    spec = {
        "signerName": SIGNER,
        "request": b64encode(_request(key, user, groups)).decode(),
        "usages": ["digital signature", "client auth"],
    }
    administrator.create(REQUESTS, {"metadata": {"name": name}, "spec": spec})
    approval = {"type": "Approved", "status": "True", "reason": "Enrolled", "message": "asked for by pp-leader enroll"}
    if not administrator.patch(REQUESTS, name, None, {"status": {"conditions": [approval]}}, "approval"):
        raise UserError(f"somebody else has changed {REQUESTS.describe(None, name)}", "Try again.")
    certificate = awaited(lambda: _issued(administrator, name), wait_seconds, f"a certificate of {user}")
    if not certificate:
        raise UserError(
            f"{user} has no certificate: after {wait_seconds:g} s nobody has signed {REQUESTS.describe(None, name)}",
            f"See: kubectl describe csr {name}. It takes a kube-controller-manager with --cluster-signing-cert-file "
            "and --cluster-signing-key-file. Where there is none, agents can use the kubelets' credentials: see "
            "--agents-use in pp-leader install --help.",
        )
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    return Certified(certificate, key.private_bytes(serialization.Encoding.PEM, form, plain))


def _request(key: ec.EllipticCurvePrivateKey, user: str, groups: Sequence[str]) -> bytes:
    if len(user) > LONGEST_USER:
        hint = "Agents can use the kubelets' credentials: see --agents-use in pp-leader install --help."
        raise UserError(f"{user} is longer than the {LONGEST_USER} characters that a certificate has room for", hint)
    names = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    subject = x509.Name([*names, x509.NameAttribute(NameOID.COMMON_NAME, user)])
    signed = x509.CertificateSigningRequestBuilder().subject_name(subject).sign(key, hashes.SHA256())
    return signed.public_bytes(serialization.Encoding.PEM)


def _issued(administrator: Administrator, name: str) -> bytes:
    """The certificate, or nothing yet; a UserError if there will be none."""
    status = (administrator.get(REQUESTS, name) or {}).get("status", {})
    for condition in status.get("conditions", []):
        if condition["type"] in ("Denied", "Failed"):
            said = f"{condition['type'].lower()} ({condition.get('reason')}: {condition.get('message')})"
            raise UserError(f"{REQUESTS.describe(None, name)} is {said}", f"See: kubectl describe csr {name}")
    return b64decode(status.get("certificate", ""))
