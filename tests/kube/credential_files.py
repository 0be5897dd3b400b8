"""Credentials in files, as kubelets have them, that a test can replace."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pp_hostd.kube.kubeconfig import Kubeconfig, Material, endpoint
from tests.harness.pki import CertificateAuthority, Issued


class Files:
    """The files that `kubeconfig` names: whom to trust, and the certificate and key of user `first`."""

    def __init__(self, directory: Path, url: str, authority: CertificateAuthority) -> None:
        self.directory, self.authority = directory, authority
        self.trust(authority)
        self.rotate("first")
        self.kubeconfig = Kubeconfig(
            path=str(directory / "kubeconfig"),
            endpoints=(endpoint(url, "the test"),),
            tls_server_name="",
            authority=self._material("certificate-authority"),
            certificate=self._material("client-certificate"),
            key=self._material("client-key"),
            token=None,
        )

    def write(self, name: str, content: bytes) -> None:
        """As a careful administrator would: a new file takes the place of the old one."""
        new = self.directory / f"{name}.new"
        new.write_bytes(content)
        new.rename(self.directory / name)

    def trust(self, authority: CertificateAuthority) -> None:
        self.write("certificate-authority", authority.certificate_pem)

    def rotate(self, user: str) -> Issued:
        issued = self.authority.issue(user)
        self.write("client-certificate", issued.cert_pem)
        self.write("client-key", issued.key_pem)
        return issued

    def with_token_file(self, token: str) -> Kubeconfig:
        self.write("tokenFile", token.encode())
        return replace(self.kubeconfig, certificate=None, key=None, token=self._material("tokenFile"))

    def _material(self, key: str) -> Material:
        return Material(f"kubeconfig: {key}", path=str(self.directory / key))
