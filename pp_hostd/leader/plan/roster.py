"""The next version of the roster: every enrolled node, and as much of the past as promises still name (rules 5, 10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from pp_hostd.model.observed import Observed
from pp_hostd.model.promise import Armed, Committed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.remedy import WriteRoster
from pp_hostd.model.roster import Member, Roster

FAR = 10**6
"""Who promises a version that far ahead makes it up, and must not use up all numbers."""


def next_roster(observed: Observed) -> WriteRoster | None:
    """What is to be written, if anything. A roster that can't be read is not overwritten: promises may name it."""
    if not observed.enrolled:  # somebody has deleted the list, rather than all nodes left at once
        return None
    stored, promised = observed.roster, list(_promised(observed))
    if stored is None:
        version = _beyond(promised, 0) + 1
        rows = (_listed(observed, name, version) for name in sorted(observed.enrolled))
        listed = [row for row in rows if row is not None]
        return WriteRoster(Roster.of(version, version, listed), None) if listed else None
    if isinstance(stored.roster, Unreadable):
        return None
    current = stored.roster
    version = _beyond(promised, current.version) + 1
    planned = list(_rows(observed, current, version))
    if planned == list(current.members()):
        return None
    known = version == current.version + 1
    oldest = min([current.version, *(each for each in promised if each >= current.oldest)]) if known else version
    kept = [row for row in planned if row.until is None or row.until > oldest]
    members = [replace(row, since=max(row.since, oldest)) for row in kept]
    return WriteRoster(Roster.of(version, oldest, members), stored.resource_version)


def _beyond(promised: list[int], version: int) -> int:
    """The newest version that anybody knows of. Somebody may have deleted the roster, or put an old one back; a number
    that a promise names must never stand for other nodes (rule 10)."""
    return max([version, *(each for each in promised if each <= version + FAR)])


def _rows(observed: Observed, current: Roster, version: int) -> Iterator[Member]:
    """All rows of the next version, in the order of the current ones."""
    present = set()
    for row in current.members():
        if row.until is not None:
            yield row
            continue
        present.add(row.name)
        wanted = _listed(observed, row.name, version, row.address)
        if row.name not in observed.enrolled:
            yield replace(row, until=version)
        elif wanted is None or (wanted.machine, wanted.uid) == (row.machine, row.uid):
            # A Node that is missing comes back; a new address holds for the past, too.
            yield row if wanted is None else replace(row, address=wanted.address)
        else:
            yield replace(row, until=version)
            yield wanted
    for name in sorted(observed.enrolled - present):
        wanted = _listed(observed, name, version)
        if wanted is not None:
            yield wanted


def _listed(observed: Observed, name: str, version: int, address: str | None = None) -> Member | None:
    """The row of this node, if all of it is known. A recreated Node has no address before its kubelet runs, which waits
    for the agent, which waits for this row: until then the one that was known holds."""
    seen = observed.nodes.get(name)
    machine = observed.machines.get(seen.subject) if seen is not None and isinstance(seen.subject, str) else None
    address = address if seen is None or seen.node.address is None else seen.node.address
    if seen is None or machine is None or address is None or machine.machine.node != name:
        return None
    subject = machine.machine.subject if machine.machine.namespace else None
    return Member(name, subject, address, machine.machine.uid, version, None)


def _promised(observed: Observed) -> Iterator[int]:
    for seen in observed.nodes.values():
        record = seen.node.agent
        promise = record.promise if isinstance(record, Committed) else record
        if isinstance(promise, Armed):
            yield promise.roster_version
