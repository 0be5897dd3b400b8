"""Which texts are addresses that a peer can be reached at."""

from __future__ import annotations

from ipaddress import ip_address


def is_address(text: object) -> bool:
    """Whether this is an IPv4 or IPv6 literal. One with a zone (`fe80::1%eth0`) means nothing on another host."""
    try:
        return isinstance(text, str) and "%" not in text and bool(ip_address(text))
    except ValueError:
        return False
