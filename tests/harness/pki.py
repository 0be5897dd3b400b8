"""A certificate authority for tests: server and client certificates with any names and any dates."""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = ("127.0.0.1", "::1", "localhost")
"""The names under which a server on this machine is reached."""


@dataclass(frozen=True)
class Issued:
    """A certificate and its private key, both as PEM."""

    cert_pem: bytes
    key_pem: bytes


class CertificateAuthority:
    """Signs certificates; whoever trusts `certificate_pem` trusts them."""

    def __init__(self, name: str) -> None:
        self._name = _name(name)
        self._key = new_key()
        builder = _builder(self._name, self._name, self._key, valid_seconds=10 * 86400, starts_seconds_ago=86400)
        usage = x509.KeyUsage(
            True, False, False, False, False, True, True, False, False
        )  # sign data, certificates, CRLs
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        builder = builder.add_extension(usage, critical=True)
        self.certificate_pem = self._sign(builder)

    def issue(
        self,
        common_name: str,
        organizations: Sequence[str] = (),
        sans: Sequence[str] = (),
        valid_seconds: float = 86400,
        starts_seconds_ago: float = 3600,
    ) -> Issued:
        """A certificate for a server (name it in `sans`) or a client (user and groups are name and organizations).

        It is valid for `valid_seconds` from its start, so the defaults end in 23 hours and (60, 3600) is long expired.
        """
        key = new_key()
        builder = _builder(_name(common_name, organizations), self._name, key, valid_seconds, starts_seconds_ago)
        purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        builder = builder.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(authority, critical=False)
        if sans:
            names = x509.SubjectAlternativeName([_general_name(name) for name in sans])
            builder = builder.add_extension(names, critical=False)
        return Issued(self._sign(builder), key_pem(key))

    def _sign(self, builder: x509.CertificateBuilder) -> bytes:
        return builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def new_key() -> ec.EllipticCurvePrivateKey:
    """A private key, made in a millisecond."""
    return ec.generate_private_key(ec.SECP256R1())


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as unencrypted PEM."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    valid_seconds: float,
    starts_seconds_ago: float,
) -> x509.CertificateBuilder:
    start = datetime.datetime.now(datetime.timezone.utc) - datetime.timedelta(seconds=starts_seconds_ago)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(seconds=valid_seconds))
        # Python 3.13 and newer refuse a chain without key identifiers.
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _may_sign_certificates() -> x509.KeyUsage:
    return x509.KeyUsage(
        key_cert_sign=True,
        crl_sign=True,
        digital_signature=False,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str, organizations: Sequence[str] = ()) -> x509.Name:
    attributes = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, organization) for organization in organizations]
    return x509.Name([*attributes, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
