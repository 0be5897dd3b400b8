"""When a certificate expires, read from its DER bytes: the ssl module tells that of peers' certificates only."""

from __future__ import annotations

import ssl
from datetime import datetime, timezone

SEQUENCE, UTC_TIME, EXPLICIT_VERSION = 0x30, 0x17, 0xA0


def expiry(pem: str) -> datetime:
    """The end of validity of the first certificate in `pem`. ValueError if there is none that can be read."""
    begin = pem.find(ssl.PEM_HEADER)
    end = pem.find(ssl.PEM_FOOTER, begin)
    if begin < 0 or end < 0:
        raise ValueError("holds no PEM certificate")
    der = ssl.PEM_cert_to_DER_cert(pem[begin : end + len(ssl.PEM_FOOTER)])
    try:
        return _not_after(der)
    except IndexError:
        raise ValueError("holds a certificate that breaks off") from None


def _not_after(der: bytes) -> datetime:
    certificate, _ = _element(der, SEQUENCE)
    fields, _ = _element(certificate, SEQUENCE)
    if fields[0] == EXPLICIT_VERSION:
        _, fields = _element(fields)
    for _skipped in ("serial number", "signature algorithm", "issuer"):
        _, fields = _element(fields)
    validity, _ = _element(fields, SEQUENCE)
    _, rest = _element(validity)
    text, _ = _element(rest)
    form = "%y%m%d%H%M%SZ" if rest[0] == UTC_TIME else "%Y%m%d%H%M%SZ"
    return datetime.strptime(text.decode("ascii"), form).replace(tzinfo=timezone.utc)


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
