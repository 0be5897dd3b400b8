"""The next version of the roster: every enrolled node, and as much of the past as promises still name (rules 5, 10)."""

from __future__ import annotations

from collections.abc import Iterator

from pp_hostd.frozen import replace
from pp_hostd.leader.steps.own_objects import WriteRoster
from pp_hostd.model.machine import Machine
from pp_hostd.model.observed import Observed
from pp_hostd.model.promise import promise_in
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member, Roster

FAR = 10**6
"""A host that promises a version further ahead than this makes it up, and must not use up all numbers."""


def next_roster(observed: Observed) -> WriteRoster | None:
    """Returns the write of the next roster; None if none is needed. A roster that can't be read is not overwritten:
    promises may name it."""
    if not observed.enrolled:  # somebody has deleted the list, rather than all nodes left at once
        return None
    stored, promised = observed.roster, list(_promised(observed))
    if stored is None:
        version = _beyond(promised, 0) + 1
        rows = (_listed(observed, name, version) for name in sorted(observed.enrolled))
        listed = [row for row in rows if isinstance(row, Member)]
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
        elif isinstance(wanted, str):
            yield row  # a Node that is missing comes back
        elif (wanted.machine, wanted.uid) == (row.machine, row.uid):
            yield replace(row, address=wanted.address)  # a new one holds for the past, too
        else:
            yield replace(row, until=version)
            yield wanted
    for name in sorted(observed.enrolled - present):
        wanted = _listed(observed, name, version)
        if isinstance(wanted, Member):
            yield wanted


def unlisted(observed: Observed) -> dict[str, str]:
    """Why enrolled nodes are in no roster, and won't be in the next: by name, with what to do about it."""
    roster = None if observed.roster is None else observed.roster.roster
    if isinstance(roster, Unreadable):
        return {}
    present = set() if roster is None else {row.name for row in roster.members() if row.until is None}
    rows = ((name, _listed(observed, name, version=1)) for name in sorted(observed.enrolled - present))
    return {name: lacks for name, lacks in rows if isinstance(lacks, str)}


def own_machine(observed: Observed, name: str) -> Machine | str:
    """Returns the machine of this node, if the two name each other; else what is wrong, and what to do about that."""
    seen = observed.nodes.get(name)
    if seen is None:
        return f"there is no such Node. If its host will not join: pp-leader unenroll {name}"
    if isinstance(seen.machine_key, Unreadable):
        return f"{seen.machine_key}. Correct that annotation; or is api.machines not what this cluster has?"
    found = observed.machines.get(seen.machine_key)
    if found is None:
        return f"it names machine {seen.machine_key}, and there is none that can be read. Correct the Node's annotation"
    machine = found.machine
    if machine.node != name:
        refers = "no Node" if machine.node is None else f"Node {machine.node}"
        return f"its machine {machine.machine_key} refers to {refers}. Correct that nodeRef, or the Node's annotation"
    return machine


def _listed(observed: Observed, name: str, version: int, address: str | None = None) -> Member | str:
    """The row of this node, or what it lacks, and what to do about that. A recreated Node has no address before its
    kubelet runs, which waits for the agent, which waits for this row: until then the one that was known holds."""
    machine = own_machine(observed, name)
    if isinstance(machine, str):
        return machine
    address = observed.nodes[name].node.address or address
    if address is None:
        return "it has no address of type InternalIP. See that its kubelet reports one"
    return Member(name, machine.machine_key if machine.namespace else None, address, machine.uid, version, None)


def _promised(observed: Observed) -> Iterator[int]:
    for seen in observed.nodes.values():
        promise = promise_in(seen.node.agent)
        if promise is not None:
            yield promise.roster_version
