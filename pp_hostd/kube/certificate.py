"""Certificates and requests for them, read from their DER bytes: the ssl module tells only of peers' certificates."""

from __future__ import annotations

import ssl
from base64 import b64decode
from collections.abc import Iterator
from datetime import datetime, timezone

from pp_hostd.frozen import frozen

SEQUENCE, SET, INTEGER, UTC_TIME, EXPLICIT_VERSION, ATTRIBUTES = 0x30, 0x31, 0x02, 0x17, 0xA0, 0xA0
COMMON_NAME, ORGANIZATION = b"\x55\x04\x03", b"\x55\x04\x0a"
REQUEST_HEADER, REQUEST_FOOTER = "-----BEGIN CERTIFICATE REQUEST-----", "-----END CERTIFICATE REQUEST-----"


@frozen
class Subject:
    """The user and the groups that the API sees in a certificate."""

    user: str
    groups: frozenset[str]


@frozen
class Certificate:
    """The subject of a certificate, and the beginning and end of its validity."""

    subject: Subject
    begins: datetime
    ends: datetime


def parse_certificate(pem: str) -> Certificate:
    """The first certificate in `pem`. ValueError if there is none that can be read."""
    begin = pem.find(ssl.PEM_HEADER)
    end = pem.find(ssl.PEM_FOOTER, begin)
    if begin < 0 or end < 0:
        raise ValueError("holds no PEM certificate")
    der = ssl.PEM_cert_to_DER_cert(pem[begin : end + len(ssl.PEM_FOOTER)])
    try:
        return _certificate(der)
    except IndexError:
        raise ValueError("holds a certificate that breaks off") from None


def expiry(pem: str) -> datetime:
    """The end of validity of the first certificate in `pem`. ValueError if there is none that can be read."""
    return parse_certificate(pem).ends


def parse_request(pem: str) -> Subject:
    """The subject of a request that is nothing but that: ValueError if it names or wants anything more.

    Its signature is for the signer to check.
    """
    text = pem.strip()
    if not text.startswith(REQUEST_HEADER) or not text.endswith(REQUEST_FOOTER) or text.count("-----BEGIN") != 1:
        raise ValueError("is not one PEM certificate request")
    try:
        der = b64decode("".join(text[len(REQUEST_HEADER) : -len(REQUEST_FOOTER)].split()), validate=True)
        request, rest = _element(der, SEQUENCE)
        fields, _ = _element(request, SEQUENCE)
        _, fields = _element(fields, INTEGER)
        name, fields = _element(fields, SEQUENCE)
        _, fields = _element(fields, SEQUENCE)  # the public key
        extensions, more = _element(fields, ATTRIBUTES)
    except IndexError:
        raise ValueError("breaks off") from None
    if extensions or more or rest:
        raise ValueError("wants extensions")
    pairs = list(_pairs(name))
    users = [value for kind, value in pairs if kind == COMMON_NAME]
    groups = [value for kind, value in pairs if kind == ORGANIZATION]
    if len(users) != 1 or len(users) + len(groups) != len(pairs) or len(set(groups)) != len(groups):
        raise ValueError("does not name one user and its groups")
    return Subject(users[0], frozenset(groups))


def _certificate(der: bytes) -> Certificate:
    certificate, _ = _element(der, SEQUENCE)
    fields, _ = _element(certificate, SEQUENCE)
    if fields[0] == EXPLICIT_VERSION:
        _, fields = _element(fields)
    for _skipped in ("serial number", "signature algorithm", "issuer"):
        _, fields = _element(fields)
    validity, fields = _element(fields, SEQUENCE)
    begins, rest = _moment(validity)
    ends, _ = _moment(rest)
    name, _ = _element(fields, SEQUENCE)
    pairs = list(_pairs(name))
    user = next((value for kind, value in pairs if kind == COMMON_NAME), "")
    return Certificate(Subject(user, frozenset(value for kind, value in pairs if kind == ORGANIZATION)), begins, ends)


def _moment(data: bytes) -> tuple[datetime, bytes]:
    text, rest = _element(data)
    form = "%y%m%d%H%M%SZ" if data[0] == UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(text.decode("ascii"), form).replace(tzinfo=timezone.utc), rest


def _pairs(name: bytes) -> Iterator[tuple[bytes, str]]:
    """Every attribute of a distinguished name: its kind and its text. A set may hold several."""
    while name:
        part, name = _element(name, SET)
        while part:
            pair, part = _element(part, SEQUENCE)
            kind, text = _element(pair)
            yield kind, _element(text)[0].decode("utf-8", "replace")


def _element(data: bytes, tag: int = 0) -> tuple[bytes, bytes]:
    """The content of the first DER element in `data`, and what follows it."""
    if tag and data[0] != tag:
        raise ValueError("holds a certificate that is not in the form of X.509")
    length, start = data[1], 2
    if length & 0x80:
        start += length & 0x7F
        length = int.from_bytes(data[2:start], "big")
    if len(data) < start + length:
        raise IndexError
    return data[start : start + length], data[start + length :]
