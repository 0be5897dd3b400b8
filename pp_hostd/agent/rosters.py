"""The rosters that may be in force: the newest one, and an older one for as long as a promise names its version."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Member, Roster


class Rosters(Mapping[int, "tuple[str, ...]"]):
    """By version, the names of its nodes. Those that were read are kept: every judgement asks (rule 5)."""

    def __init__(self, *known: Roster) -> None:
        self._known = known
        self.newest: Roster | None = max(known, key=lambda roster: roster.version, default=None)
        self._names: dict[int, tuple[str, ...]] = {}
        self._electorates: dict[int, Electorate] = {}

    def electorate(self, version: int) -> Electorate | None:
        for roster in self._known if version not in self._electorates else ():
            found = roster.as_of(version)
            if not isinstance(found, Unreadable):
                self._electorates[version] = found
        return self._electorates.get(version)

    def with_newest(self, roster: Roster, versions: Collection[int]) -> Rosters:
        """That roster, and of the present ones those alone that hold one of these versions and it does not."""
        lacking = [version for version in versions if isinstance(roster.as_of(version), Unreadable)]
        needed = [old for old in self._known if any(old.oldest <= version <= old.version for version in lacking)]
        newer = Rosters(roster, *needed)
        for version in versions:
            newer.get(version)  # or nobody would be found whom a judgement by the present ones is about to ask
        return newer

    def members(self, names: Iterable[str]) -> list[Member]:
        """The nodes of these names, with their newest addresses."""
        electorates = [found for found in map(self.electorate, sorted(self._names, reverse=True)) if found is not None]
        members = (next(filter(None, (each.member(name) for each in electorates)), None) for name in names)
        return [member for member in members if member is not None]

    def newest_member(self, name: str) -> Member | None:
        """The node of that name, if the newest roster lists it."""
        electorate = None if self.newest is None else self.electorate(self.newest.version)
        return None if electorate is None else electorate.member(name)

    def machine_key(self, node: str) -> str:
        """How peers know the machine of this node. By the roster, not by what this run of the agent has read: the run
        may have begun without the API."""
        return next((own.machine or own.name for own in self.members([node])), node)

    def known(self) -> tuple[Roster, ...]:
        return self._known

    def __getitem__(self, version: int) -> tuple[str, ...]:
        names = self._names.get(version)
        if names is None:
            electorate = self.electorate(version)
            if electorate is None:
                raise KeyError(version)
            names = self._names[version] = electorate.names
        return names

    def __contains__(self, version: object) -> bool:
        return any(isinstance(version, int) and each.oldest <= version <= each.version for each in self._known)

    def __iter__(self) -> Iterator[int]:
        return iter(sorted({version for each in self._known for version in range(each.oldest, each.version + 1)}))

    def __len__(self) -> int:
        return sum(1 for _ in self)
