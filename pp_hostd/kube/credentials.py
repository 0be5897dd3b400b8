"""What the client shows and whom it trusts, read again between exchanges when the files have changed."""

from __future__ import annotations

import os
import ssl
import time
from datetime import datetime, timezone
from typing import Callable

from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen
from pp_hostd.kube.certificate import expiry
from pp_hostd.kube.kubeconfig import Kubeconfig, KubeconfigError, Material

Signature = tuple[tuple[int, ...], ...]


@frozen
class Identity:
    """One consistent set: an exchange begins and ends with the same one."""

    context: ssl.SSLContext
    token: str


class Credentials:
    """The current identity. The first must be good; later a file caught half-way rotated keeps the last good one."""

    def __init__(self, kubeconfig: Kubeconfig, wallclock: Callable[[], float] = time.time) -> None:
        self._kubeconfig = kubeconfig
        self._wallclock = wallclock
        self._tls_files = _paths(kubeconfig.authority, kubeconfig.certificate, kubeconfig.key)
        self._token_files = _paths(kubeconfig.token)
        # Signatures are taken before reading: a file that changes in between is read once more, never missed.
        self._tls_signature, self._token_signature = _signature(self._tls_files), _signature(self._token_files)
        self._identity = Identity(self._read_context(), self._read_token())
        self.trouble = ""

    def current(self) -> Identity:
        """The identity for the next exchange. `trouble` says what keeps newer files from being used, if anything."""
        tls, token = _signature(self._tls_files), _signature(self._token_files)
        if (tls, token) == (self._tls_signature, self._token_signature):
            return self._identity
        try:
            context = self._identity.context if tls == self._tls_signature else self._read_context()
            self._identity = Identity(context, self._read_token())
        except UserError as error:
            self.trouble = error.message
        else:
            self._tls_signature, self._token_signature, self.trouble = tls, token, ""
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

    def _read_context(self) -> ssl.SSLContext:
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
        if self._kubeconfig.certificate is not None and self._kubeconfig.key is not None:
            self._load_pair(context, self._kubeconfig.certificate, self._kubeconfig.key)
        return context

    def _load_pair(self, context: ssl.SSLContext, certificate: Material, key: Material) -> None:
        pem, key_pem = _pem(certificate), _pem(key)
        try:
            ends = expiry(pem)
        except ValueError as error:
            raise KubeconfigError(f"{_named(certificate)} {error}") from None
        now = datetime.fromtimestamp(self._wallclock(), timezone.utc)
        if ends <= now:
            raise KubeconfigError(
                f"{_named(certificate)}: the client certificate expired at {ends:%Y-%m-%d %H:%M:%S}Z",
                f"This host's clock says {now:%Y-%m-%d %H:%M:%S}Z. Renew the certificate, or set the clock.",
            )
        try:
            _load_chain(context, pem, key_pem)
        except ssl.SSLError as error:
            raise KubeconfigError(
                f"{_named(key)} can't be used with the client certificate: {_plain(error)}",
                "Allowed: the private key of that certificate, in PEM and not encrypted.",
            ) from None


def _load_chain(context: ssl.SSLContext, pem: str, key_pem: str) -> None:
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


def _signature(paths: tuple[str, ...]) -> Signature:
    """What changes when a file is replaced or rewritten; a file that is missing has none."""
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
