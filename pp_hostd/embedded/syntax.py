"""The spelling of names, labels and keys: each check returns what is wrong; empty if none."""

from __future__ import annotations

import re
from re import Pattern

_DNS_LABEL = re.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_QUALIFIED = re.compile("([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_QUALIFIED_OR_EMPTY = re.compile(f"({_QUALIFIED.pattern})?")


def subdomain_fault(text: str) -> str:
    """Most objects are named by a DNS subdomain."""
    return _fault(text, "a lowercase RFC 1123 subdomain", _SUBDOMAIN, 253)


def dns_label_fault(text: str) -> str:
    """Namespaces are named by a DNS label."""
    return _fault(text, "a lowercase RFC 1123 label", _DNS_LABEL, 63)


def key_fault(text: str) -> str:
    """Keys of labels and annotations are `name` or `prefix/name`."""
    prefix, slash, name = text.rpartition("/")
    fault = _fault(prefix, "prefix part: a lowercase RFC 1123 subdomain", _SUBDOMAIN, 253) if slash else ""
    return fault or _fault(name, "name part", _QUALIFIED, 63)


def label_value_fault(text: str) -> str:
    """Values of labels may be empty; those of annotations are free."""
    return _fault(text, "a valid label", _QUALIFIED_OR_EMPTY, 63)


def _fault(text: str, what: str, pattern: Pattern[str], limit: int) -> str:
    if len(text) <= limit and pattern.fullmatch(text):
        return ""
    return (
        f"{what} must be no more than {limit} characters, and match the regex used for validation, '{pattern.pattern}'"
    )
