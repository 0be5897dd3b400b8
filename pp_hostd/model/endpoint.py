"""Addresses of peers and URLs of API servers: settings and kubeconfigs allow the same, since both are read by this."""

from __future__ import annotations

import re
from ipaddress import ip_address

from pp_hostd.frozen import frozen


def is_address(text: object) -> bool:
    """Whether this is an IPv4 or IPv6 literal. One with a zone (`fe80::1%eth0`) means nothing on another host."""
    try:
        return isinstance(text, str) and "%" not in text and bool(ip_address(text))
    except ValueError:
        return False


# Only https: over anything else an answer proves nothing.
_URL = re.compile(
    r"https://(?:\[(?P<ipv6>[^]]+)\]|(?P<host>[^][:/?#@]+))(?::(?P<port>[0-9]{1,5}))?(?P<path>/[!-~]*)?", re.IGNORECASE
)
_LABEL = re.compile(r"[0-9a-z]([0-9a-z-]{0,61}[0-9a-z])?", re.IGNORECASE | re.ASCII)


@frozen
class Endpoint:
    """One API server: where to connect, and the prefix of its paths."""

    url: str
    host: str
    port: int
    prefix: str

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_endpoint(url: str) -> Endpoint | None:
    """The parts of `https://HOST[:PORT][/PATH]`; None if it is not of that form."""
    parts = _URL.fullmatch(url)
    if parts is None or re.search("[?#]", parts["path"] or ""):
        return None
    host, port = (parts["ipv6"] or parts["host"]).lower(), int(parts["port"] or 443)
    if not is_host(host) or (":" in host) != bool(parts["ipv6"]) or not 1 <= port <= 65535:
        return None
    return Endpoint(url, host, port, (parts["path"] or "").rstrip("/"))


def is_host(text: str) -> bool:
    """Whether this is an address, or a host name; four numbers that are no address are no name either."""
    *_, last = labels = text.split(".")
    if is_address(text) or last.isdigit():
        return is_address(text)
    return len(text) <= 253 and all(_LABEL.fullmatch(label) for label in labels)
