"""The client's credentials and the authority that it trusts, read again between exchanges when their files change."""

from __future__ import annotations

import os
import ssl
from dataclasses import field
from datetime import datetime, timezone

from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen
from pp_hostd.kube.certificate import Certificate, parse_certificate
from pp_hostd.kube.kubeconfig import Kubeconfig, KubeconfigError, Material
from pp_hostd.model.keys import enrolment
from pp_hostd.model.renewal import Life

Signature = tuple[tuple[int, ...], ...]


@frozen
class Identity:
    """One consistent set: an exchange begins and ends with the same one."""

    context: ssl.SSLContext
    token: str
    certificate: Certificate | None = None
    """The client certificate that the context shows; None if it shows none."""


@frozen
class Pair:
    """A client certificate and its key as they were read, and where they stand."""

    certificate: Certificate
    place: str
    key_place: str
    pem: str
    key_pem: str = field(repr=False)


class Credentials:
    """The current identity. The first must be good; later a file caught half-way rotated keeps the last good one."""

    def __init__(self, kubeconfig: Kubeconfig) -> None:
        self._kubeconfig = kubeconfig
        self._tls_files = _paths(kubeconfig.authority, kubeconfig.certificate, kubeconfig.key)
        self._tls_files += (kubeconfig.renewed,) if kubeconfig.renewed else ()
        self._token_files = _paths(kubeconfig.token)
        # Signatures are taken before reading: a file that changes in between is read once more, never missed.
        self._tls_signature, self._token_signature = signature(self._tls_files), signature(self._token_files)
        self.trouble = ""
        context, certificate = self._read_context()
        self._identity = Identity(context, self._read_token(), certificate)

    def current(self) -> Identity:
        """The identity for the next exchange. `trouble` says what keeps newer files from being used, if anything."""
        tls, token = signature(self._tls_files), signature(self._token_files)
        if (tls, token) == (self._tls_signature, self._token_signature):
            return self._identity
        before, self.trouble = self._identity, ""
        try:
            same = tls == self._tls_signature
            context, certificate = (before.context, before.certificate) if same else self._read_context()
            self._identity = Identity(context, self._read_token(), certificate)
        except UserError as error:
            self.trouble = error.message
        else:
            self._tls_signature, self._token_signature = tls, token
        return self._identity

    def _read_token(self) -> str:
        material = self._kubeconfig.token
        if material is None:
            return ""
        try:
            token = _read(material).decode("ascii").strip()
        except UnicodeDecodeError:
            token = ""
        if not token or not token.isprintable() or " " in token:
            raise KubeconfigError(f"{_named(material)} is not a token", "Allowed: one line of ASCII without spaces.")
        return token

    def _read_context(self) -> tuple[ssl.SSLContext, Certificate | None]:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        authority = self._kubeconfig.authority
        if authority is None:
            context.load_default_certs()
        else:
            try:
                context.load_verify_locations(cadata=_pem(authority))
            except (ssl.SSLError, ValueError) as error:
                raise KubeconfigError(f"{_named(authority)} is no certificate authority: {_plain(error)}") from None
        if self._kubeconfig.certificate is None or self._kubeconfig.key is None:
            return context, None
        enrolled = _pair(self._kubeconfig.certificate, self._kubeconfig.key)
        return context, self._load_pair(context, self._newest(enrolled))

    def _newest(self, enrolled: Pair) -> Pair:
        """The pair of the kubeconfig, or the renewed one if that is of the same user, and newer or the only one left.

        A renewed pair that can't be used is left alone, and `trouble` says why.
        """
        path = self._kubeconfig.renewed
        if not path or not os.path.lexists(path):
            return enrolled
        material = Material("the renewed certificate", path=path)
        try:
            renewed = _pair(material, material)
            load_chain(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), renewed.pem, renewed.key_pem)
        except (UserError, ssl.SSLError) as error:
            why = error.message if isinstance(error, UserError) else f"{path}: {_plain(error)}"
            self.trouble = f"{why}; the certificate of {self._kubeconfig.path} is used instead"
            return enrolled
        if renewed.certificate.subject != enrolled.certificate.subject:  # this host was another node before
            return enrolled
        return max(enrolled, renewed, key=self._age)

    def _age(self, pair: Pair) -> tuple[bool, datetime]:
        """The greatest is the newest of those that have not ended."""
        certificate = pair.certificate
        return certificate.ends > datetime.now(timezone.utc), Life(certificate.begins, certificate.ends).signed

    def _load_pair(self, context: ssl.SSLContext, pair: Pair) -> Certificate:
        ends, now = pair.certificate.ends, datetime.now(timezone.utc)
        if ends <= now:
            raise KubeconfigError(
                f"{pair.place}: the client certificate expired at {ends:%Y-%m-%d %H:%M:%S}Z",
                f"This host's clock says {now:%Y-%m-%d %H:%M:%S}Z. If that is right, an administrator renews it with "
                f"`{enrolment(pair.certificate.subject.user)}`.",
            )
        try:
            load_chain(context, pair.pem, pair.key_pem)
        except ssl.SSLError as error:
            raise KubeconfigError(
                f"{pair.key_place} can't be used with the client certificate: {_plain(error)}",
                "Allowed: the private key of that certificate, in PEM and not encrypted.",
            ) from None
        return pair.certificate


def _pair(certificate: Material, key: Material) -> Pair:
    pem, key_pem = _pem(certificate), _pem(key)
    try:
        return Pair(parse_certificate(pem), _named(certificate), _named(key), pem, key_pem)
    except ValueError as error:
        raise KubeconfigError(f"{_named(certificate)} {error}") from None


def load_chain(context: ssl.SSLContext, pem: str, key_pem: str) -> None:
    """The ssl module takes a file only: it gets one in memory, holding exactly what was checked."""

    def never_ask() -> str:
        raise ssl.SSLError("the key is encrypted, and nobody is there to type its password")

    descriptor = os.memfd_create("client")
    try:
        os.write(descriptor, f"{pem}\n{key_pem}\n".encode())
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=never_ask)
    finally:
        os.close(descriptor)


def _paths(*materials: Material | None) -> tuple[str, ...]:
    return tuple(material.path for material in materials if material is not None and material.path)


def signature(paths: tuple[str, ...]) -> Signature:
    """Returns a value that changes when a file is replaced or rewritten; a missing file has an empty part in it."""
    found: list[tuple[int, ...]] = []
    for path in paths:
        try:
            status = os.stat(path)
            found.append((status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
        except (OSError, ValueError):
            found.append(())
    return tuple(found)


def _read(material: Material) -> bytes:
    try:
        return material.read()
    except UserError as error:
        raise KubeconfigError(f"{material.place}: {error.message}", error.hint) from None


def _pem(material: Material) -> str:
    """PEM is ASCII; what else there is stands outside its blocks, such as an authority's name in its own script."""
    return _read(material).decode("ascii", "ignore")


def _named(material: Material) -> str:
    return f"{material.place} ({material.path})" if material.path else material.place


def _plain(error: ValueError | ssl.SSLError) -> str:
    return str(getattr(error, "reason", None) or error.args[-1]).replace("_", " ").lower()
