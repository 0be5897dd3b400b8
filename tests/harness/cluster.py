"""A cluster as tests need it, whether it is the embedded API or a real control plane."""

from __future__ import annotations

import itertools
import os
from abc import ABC, abstractmethod
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import yaml

from tests.harness.pki import CertificateAuthority, Issued

KNOWN_USERS: dict[str, tuple[str, ...]] = {"admin": ("system:masters",), "reader": (), "nobody": ()}
"""The users that every cluster knows by token as well as by certificate, and their groups."""

READER_RULES: list[dict[str, list[str]]] = [
    {
        "apiGroups": ["", "coordination.k8s.io"],
        "resources": ["nodes", "configmaps", "pods", "leases"],
        "verbs": ["get", "list", "watch"],
    }
]
"""The rights of `reader`, in every namespace; `nobody` has no rights."""

SomeCluster = TypeVar("SomeCluster", bound="Cluster")


def token_of(user: str) -> str:
    """The static token of one of KNOWN_USERS."""
    if user not in KNOWN_USERS:
        raise KeyError(f"{user} has no token; those who have: {', '.join(KNOWN_USERS)}")
    return f"token-of-{user}"


class Cluster(ABC):
    """A running API that trusts the client certificates of its authority and the tokens of KNOWN_USERS."""

    kind: str
    """`embedded` or `real`."""

    def __init__(self, server: str, directory: Path, authority: CertificateAuthority) -> None:
        self.server = server
        self.directory = directory
        self.authority = authority
        self.ca_file = directory / "ca.crt"
        self.ca_file.write_bytes(authority.certificate_pem)
        self._serial = itertools.count(1)

    def kubeconfig(self, user: str = "admin", groups: Sequence[str] | None = None, *, token: bool = False) -> Path:
        """A new kubeconfig file for that user, with a client certificate or (KNOWN_USERS only) with a token.

        The groups, unless given: those of a known user, `system:nodes` for `system:node:<name>`, else none.
        """
        path = self.directory / f"kubeconfig-{next(self._serial)}-{user}"
        if token:
            return write_kubeconfig(path, self.server, self.authority.certificate_pem, token=token_of(user))
        if groups is None:
            groups = ("system:nodes",) if user.startswith("system:node:") else KNOWN_USERS.get(user, ())
        certificate = self.authority.issue(user, groups)
        return write_kubeconfig(path, self.server, self.authority.certificate_pem, certificate=certificate)

    @abstractmethod
    def forget_history(self) -> None:
        """From here on every resourceVersion and continue token handed out so far is answered with 410.

        Connections may break: the real API server is restarted for this.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop it and remove its directory."""

    def __enter__(self: SomeCluster) -> SomeCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_kubeconfig(
    path: Path, server: str, ca_pem: bytes, *, certificate: Issued | None = None, token: str | None = None
) -> Path:
    """Write a kubeconfig with everything embedded, readable by its owner only."""
    user: dict[str, str] = {}
    if certificate is not None:
        user["client-certificate-data"] = b64encode(certificate.cert_pem).decode()
        user["client-key-data"] = b64encode(certificate.key_pem).decode()
    if token is not None:
        user["token"] = token
    config: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "test",
        "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
        "clusters": [
            {
                "name": "test",
                "cluster": {"server": server, "certificate-authority-data": b64encode(ca_pem).decode()},
            }
        ],
        "users": [{"name": "test", "user": user}],
    }
    with open(path, "w", opener=lambda name, flags: os.open(name, flags, mode=0o600)) as file:
        yaml.safe_dump(config, file, sort_keys=False)
    return path
