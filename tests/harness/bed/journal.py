"""The journal's native protocol, as far as a reader of datagrams needs it."""

from __future__ import annotations


def parse_journal(datagram: bytes) -> dict[str, str]:
    """The fields of an entry: `NAME=value` in a line, or the name alone, 8 bytes of length, and the value."""
    fields: dict[str, str] = {}
    rest = datagram
    while rest:
        line, _, after = rest.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if not equals:
            size = int.from_bytes(after[:8], "little")
            value, after = after[8 : 8 + size], after[8 + size + 1 :]
        fields[name.decode(errors="replace")] = value.decode(errors="replace")
        rest = after
    return fields
