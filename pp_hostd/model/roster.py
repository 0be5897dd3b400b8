"""The leader's list of nodes, with as much of its past as promises still name: the ConfigMap `roster`.

A row is one string, `name machine address uid [since [until]]`, without the beginnings and ends that all rows share:
those are written once. So thousands of nodes fit into one ConfigMap.
"""

from __future__ import annotations

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pp_hostd.model.address import is_address
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
)

_UUID = re.compile("-".join(f"[0-9a-f]{{{digits}}}" for digits in (8, 4, 4, 4, 12)))
_PACKED_UID = Form("a uid as 22 characters of base64, or = and the uid", re.compile("[A-Za-z0-9_-]{22}|=[!-~]{1,128}"))
_COLUMNS = 3  # name, machine, address: what has ends in common with other rows
Ends = tuple[str, str]


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Roster:
    """Every version from `oldest` to `version`."""

    version: int
    oldest: int
    members: tuple[Member, ...]

    def as_of(self, version: int) -> tuple[Member, ...] | Unreadable:
        """The nodes of that version, for the rules that count them (3, 10): n is the length of this."""
        if not self.oldest <= version <= self.version:
            kept = f"the roster holds versions {self.oldest} to {self.version}"
            return Unreadable(f"version {version} of the roster", kept)
        return tuple(m for m in self.members if m.since <= version and (m.until is None or version < m.until))

    def render(self) -> str:
        names = [_names(member) for member in self.members]
        shared = [_common_ends([row[column] for row in names]) for column in range(_COLUMNS)]
        rows = [self._row(member, shared) for member in self.members]
        return render({"version": self.version, "oldest": self.oldest, "shared": shared, "nodes": rows})

    def _row(self, member: Member, shared: Sequence[Ends]) -> str:
        words = [text[len(head) : len(text) - len(tail)] for text, (head, tail) in zip(_names(member), shared)]
        words.append(_packed(member.uid))
        if member.until is not None:
            words += [str(member.since), str(member.until)]
        elif member.since != self.oldest:
            words.append(str(member.since))
        return " ".join(words)


def parse_roster(text: object) -> Roster | Unreadable:
    """The roster in the ConfigMap."""
    return read("the roster", _roster, text)


def _roster(text: object) -> Roster:
    fields = document(text, MAX_CONFIG_MAP_CHARACTERS)
    version = fields.count("version")
    oldest = fields.count("oldest", most=version)
    shared = [_ends(ends) for ends in fields.elements("shared")]
    if len(shared) != _COLUMNS:
        raise Refused(f"shared has {len(shared)} entries, not {_COLUMNS}")
    members = tuple(_member(row, shared, oldest, version) for row in fields.elements("nodes"))
    _refuse_overlaps(members)
    return Roster(version, oldest, members)


def _member(row: object, shared: Sequence[Ends], oldest: int, version: int) -> Member:
    words = row.split(" ") if isinstance(row, str) else []
    if not 4 <= len(words) <= 6:
        raise Refused("a row is not `name machine address uid [since [until]]`")
    name, machine, address = (head + word + tail for word, (head, tail) in zip(words, shared))
    since, until = _span(words[4:], oldest, version)
    if not is_address(address):
        raise Refused(f"the address of {name[:60]!a} is {address[:60]!a}, not an IPv4 or IPv6 address")
    return Member(
        name=matching(name, NAME, "a node"),
        machine=matching(machine, MACHINE, "a machine") if machine else None,
        address=address,
        uid=_unpacked(matching(words[3], _PACKED_UID, "a uid")),
        since=since,
        until=until,
    )


def _span(words: Sequence[str], oldest: int, version: int) -> tuple[int, int | None]:
    numbers = [int(matching(word, COUNT, "a version")) for word in words]
    since = numbers[0] if numbers else oldest
    until = numbers[1] if len(numbers) > 1 else None
    if since > version or (until is not None and not since < until <= version):
        raise Refused(f"a row spans versions {since} to {until}, and the roster is of version {version}")
    return since, until


def _refuse_overlaps(members: Iterable[Member]) -> None:
    """A node listed twice in one version would be counted twice, and so could acknowledge twice (rule 10)."""
    end_of: dict[str, int | None] = {}
    for member in sorted(members, key=lambda member: member.since):
        end = end_of.get(member.name, 0)
        if end is None or member.since < end:
            raise Refused(f"node {member.name} is listed twice in version {member.since}")
        end_of[member.name] = member.until


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
