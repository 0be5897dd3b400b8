"""The leader's list of nodes, with as much of its past as promises still name: the ConfigMap `roster`.

A row is one string, `name machine address uid [since [until]]`, without the beginnings and ends that all rows share:
those are written once. So thousands of nodes fit into one ConfigMap. Rows stay such strings in memory too, sorted, each
checked once: an agent holds the roster for its whole life, and looks at few members of it.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from pp_hostd.frozen import frozen
from pp_hostd.model.endpoint import is_address
from pp_hostd.model.record import (
    COUNT,
    MACHINE,
    MAX_CONFIG_MAP_CHARACTERS,
    NAME,
    Form,
    Refused,
    Unreadable,
    document,
    matching,
    read,
    render,
    render_list,
)

_UUID = re.compile("-".join(f"[0-9a-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12)))
_PACKED_UID = Form("a uid as 22 characters of base64, or = and the uid", re.compile("[A-Za-z0-9_-]{22}|=[!-~]{1,128}"))
_AT_ONCE = 100
_COLUMNS = 3  # name, machine, address: what has ends in common with other rows
Ends = tuple[str, str]
Shared = tuple[Ends, ...]


@frozen
class Member:
    """A node with its machine, from version `since` on and, if it has left or changed, before version `until`.

    `machine` is None where the Node itself is the machine; `uid` is the machine's.
    """

    name: str
    machine: str | None
    address: str
    uid: str
    since: int
    until: int | None


@frozen
class Electorate:
    """The nodes of one version of the roster: those that the rules count (3, 10)."""

    version: int
    _oldest: int
    _shared: Shared
    _rows: tuple[str, ...]

    @property
    def n(self) -> int:
        return len(self._rows)

    @property
    def names(self) -> tuple[str, ...]:
        """Computed at each call, so that only callers pay for them."""
        head, tail = self._shared[0]
        return tuple(head + row.partition(" ")[0] + tail for row in self._rows)

    def member(self, name: str) -> Member | None:
        """The node of that name, if it is listed in this version."""
        head, tail = self._shared[0]
        if len(name) < len(head) + len(tail) or not (name.startswith(head) and name.endswith(tail)):
            return None
        begins = name[len(head) : len(name) - len(tail)] + " "
        place = bisect_left(self._rows, begins)
        if place == len(self._rows) or not self._rows[place].startswith(begins):
            return None
        return _member(self._rows[place], self._shared, self._oldest)


@frozen
class Roster:
    """Every version from `oldest` to `version`. `Roster.of` makes one, `parse_roster` reads one."""

    version: int
    oldest: int
    _shared: Shared
    _rows: tuple[str, ...]

    @classmethod
    def of(cls, version: int, oldest: int, members: Iterable[Member]) -> Roster:
        members = tuple(members)
        names = [_names(member) for member in members]
        shared = tuple(_common_ends([row[column] for row in names]) for column in range(_COLUMNS))
        return cls(version, oldest, shared, tuple(sorted(_row(member, shared, oldest) for member in members)))

    def members(self) -> Iterator[Member]:
        """Every row, by name."""
        return (_member(row, self._shared, self.oldest) for row in self._rows)

    def as_of(self, version: int) -> Electorate | Unreadable:
        if not self.oldest <= version <= self.version:
            kept = f"the roster holds versions {self.oldest} to {self.version}"
            return Unreadable(f"version {version} of the roster", kept)
        rows = tuple(row for row in self._rows if _effective_settings(row, self.oldest, version))
        return Electorate(version, self.oldest, self._shared, rows)

    def render(self) -> str:
        """A hundred rows at a time: to write thousands at once takes a megabyte for a moment, which the agent keeps."""
        whole = render({"version": self.version, "oldest": self.oldest, "shared": self._shared, "nodes": []})
        parts = (render_list(self._rows[first : first + _AT_ONCE]) for first in range(0, len(self._rows), _AT_ONCE))
        return whole.replace('"nodes":[]', f'"nodes":[{",".join(part[1:-1] for part in parts)}]')


def parse_roster(text: object) -> Roster | Unreadable:
    """The roster in the ConfigMap."""
    return read("the roster", _roster, text)


def _roster(text: object) -> Roster:
    fields = document(text, MAX_CONFIG_MAP_CHARACTERS)
    version = fields.count("version")
    oldest = fields.count("oldest", most=version)
    shared = tuple(_ends(ends) for ends in fields.elements("shared"))
    if len(shared) != _COLUMNS:
        raise Refused(f"shared has {len(shared)} entries, not {_COLUMNS}")
    rows = tuple(sorted(_text(row) for row in fields.elements("nodes")))
    _refuse_overlaps(_checked(row, shared, oldest, version) for row in rows)
    return Roster(version, oldest, shared, rows)


def _text(row: object) -> str:
    if isinstance(row, str) and 3 <= row.count(" ") <= 5:
        return row
    raise Refused("a row is not `name machine address uid [since [until]]`")


def _checked(row: str, shared: Shared, oldest: int, version: int) -> Member:
    """Returns the member in the row; refuses the row unless all of it is allowed."""
    words = row.split(" ")
    matching(words[3], _PACKED_UID, "a uid")
    for word in words[4:]:
        matching(word, COUNT, "a version")
    member = _member(row, shared, oldest)
    matching(member.name, NAME, "a node")
    if member.machine is not None:
        matching(member.machine, MACHINE, "a machine")
    if not is_address(member.address):
        raise Refused(f"the address of {member.name} is {member.address[:60]!a}, not an IPv4 or IPv6 address")
    since, until = member.since, member.until
    if since > version or (until is not None and not since < until <= version):
        raise Refused(f"a row spans versions {since} to {until}, and the roster is of version {version}")
    return member


def _refuse_overlaps(by_name: Iterable[Member]) -> None:
    """A node listed twice in one version would be counted twice, and so could acknowledge twice (rule 10)."""
    for name, rows in groupby(by_name, lambda member: member.name):
        end: int | None = 0
        for member in sorted(rows, key=lambda member: member.since):
            if end is None or member.since < end:
                raise Refused(f"node {name} is listed twice in version {member.since}")
            end = member.until


def _member(row: str, shared: Shared, oldest: int) -> Member:
    words = row.split(" ")
    name, machine, address = (head + word + tail for word, (head, tail) in zip(words, shared))
    return Member(name, machine or None, address, _unpacked(words[3]), *_span(words[4:], oldest))


def _span(words: Sequence[str], oldest: int) -> tuple[int, int | None]:
    return int(words[0]) if words else oldest, int(words[1]) if len(words) > 1 else None


def _effective_settings(row: str, oldest: int, version: int) -> bool:
    since, until = _span(row.split(" ")[4:], oldest)
    return since <= version and (until is None or version < until)


def _row(member: Member, shared: Shared, oldest: int) -> str:
    words = [text[len(head) : len(text) - len(tail)] for text, (head, tail) in zip(_names(member), shared)]
    words.append(_packed(member.uid))
    if member.until is not None:
        words += [str(member.since), str(member.until)]
    elif member.since != oldest:
        words.append(str(member.since))
    return " ".join(words)


def _names(member: Member) -> tuple[str, str, str]:
    return member.name, member.machine or "", member.address


def _ends(value: object) -> Ends:
    if isinstance(value, list) and len(value) == 2 and isinstance(value[0], str) and isinstance(value[1], str):
        return value[0], value[1]
    raise Refused("an entry of shared is not a pair of texts")


def _common_ends(texts: Sequence[str]) -> Ends:
    """The longest beginning, and after that the longest end, that all texts have in common."""
    head = _common_head(texts)
    return head, _common_head([text[len(head) :][::-1] for text in texts])[::-1]


def _common_head(texts: Sequence[str]) -> str:
    first, last = min(texts, default=""), max(texts, default="")
    unlike = (index for index, pair in enumerate(zip(first, last)) if pair[0] != pair[1])
    return first[: next(unlike, len(first))]


def _packed(uid: str) -> str:
    """A uid in the API's usual form in 22 characters instead of 36; any other as it is, after a `=`."""
    if _UUID.fullmatch(uid) is None:
        return "=" + uid
    return urlsafe_b64encode(bytes.fromhex(uid.replace("-", ""))).decode().rstrip("=")


def _unpacked(word: str) -> str:
    if word.startswith("="):
        return word[1:]
    digits = urlsafe_b64decode(word + "==").hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
