"""Whom rule 10 counts and asks: the nodes of the roster that a host promised, worked out once in a plan."""

from __future__ import annotations

from pp_hostd.model.observed import RosterSeen
from pp_hostd.model.promise import Armed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Member


class Electorates:
    """Thousands of nodes in a roster, and many hosts that promised the same version of it."""

    def __init__(self, roster: RosterSeen | None) -> None:
        self._roster = roster
        self._known: dict[int, Electorate | Unreadable] = {}
        self._names: dict[int, tuple[str, ...]] = {}
        self._members: dict[tuple[int, str], Member | None] = {}

    def of(self, promise: Armed) -> Electorate | Unreadable:
        """Of the version that was promised, not of the newest."""
        version = promise.roster_version
        if version not in self._known:
            self._known[version] = self._as_of(version)
        return self._known[version]

    def names(self, electorate: Electorate) -> tuple[str, ...]:
        if electorate.version not in self._names:
            self._names[electorate.version] = electorate.names
        return self._names[electorate.version]

    def member(self, electorate: Electorate, name: str) -> Member | None:
        key = electorate.version, name
        if key not in self._members:
            self._members[key] = electorate.member(name)
        return self._members[key]

    def _as_of(self, version: int) -> Electorate | Unreadable:
        if self._roster is None:
            return Unreadable("the roster", "there is none yet")
        roster = self._roster.roster
        return roster if isinstance(roster, Unreadable) else roster.as_of(version)
