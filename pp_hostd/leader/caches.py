"""The leader's caches of the objects that it watches, brought up to date event by event. No I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pp_hostd.frozen import frozen, replace
from pp_hostd.kube.resources import Resource
from pp_hostd.leader.steps.api import Json
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.keys import FREED
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.machine_details import (
    HostReference,
    MachineDetails,
    parse_cluster_pause,
    parse_machine_details,
)
from pp_hostd.model.observed import MachineSeen, NodeSeen, parse_node_seen
from pp_hostd.model.promise import promise_in
from pp_hostd.model.record import NAME, OPAQUE, Fields, Unreadable, read

MAX_FAULTY = 100
"""So many objects of a kind are reported at most."""

AGAIN_SECONDS = 15.0
"""The leader notices a kind of our own within this time, once `pp-leader install` has defined it."""

Found = TypeVar("Found")


@frozen
class CachedObject(Generic[Found]):
    """All that is held of one object; `found` is None if it is none of ours. Name, uid and version are empty where the
    object has none that Kubernetes would give: then it is unreadable too."""

    name: str
    uid: str
    version: str
    found: Found | Unreadable | None


@frozen
class Fault:
    """The fault of the object with this uid; the sentence may also say what to do about it."""

    uid: str
    sentence: str


class Cache(ABC, Generic[Found]):
    """The objects of one kind by name. One that can't be read counts as one that is not there, and is reported.

    `revision` grows with every change in what the roster is made of.
    """

    def __init__(self, called: str) -> None:
        self.versions: dict[str, str] = {}
        self.faults: dict[str, Fault] = {}
        self.revision = 0
        self._called = called

    def keep(self, api_object: object) -> CachedObject[Found]:
        """Returns the part of an API object that the cache holds."""
        name = read("the name", lambda source: self._name(_metadata(source)), api_object)
        uid = read("the uid", lambda source: _metadata(source).text("uid", OPAQUE), api_object)
        version = read("the version", lambda source: _metadata(source).text("resourceVersion", OPAQUE), api_object)
        return CachedObject(_or_empty(name), _or_empty(uid), _or_empty(version), self._find(api_object))

    def show(self, kept: CachedObject[Found]) -> None:
        """This is how the object is now."""
        self.versions[kept.name] = kept.version
        self._take(kept.name, None if isinstance(kept.found, Unreadable) else kept.found)
        self._tell(kept.name, Fault(kept.uid, self._fault(kept.found)))

    def show_gone(self, name: str) -> None:
        """It was deleted."""
        self.versions.pop(name, None)
        self._take(name, None)
        self.faults.pop(name, None)

    def begin_anew(self) -> None:
        """Nothing is known any more."""
        for name in tuple(self.versions):
            self.show_gone(name)

    def troubles(self) -> list[str]:
        faults = self.faults.items()
        return [f"{self._called} {name or 'without a name'}: {fault.sentence}" for name, fault in faults]

    def _tell(self, name: str, fault: Fault) -> None:
        self.faults.pop(name, None)
        if fault.sentence and len(self.faults) < MAX_FAULTY:
            self.faults[name] = fault

    def _name(self, metadata: Fields) -> str:
        return metadata.text("name", NAME)

    def _fault(self, found: Found | Unreadable | None) -> str:
        """Returns the sentence to report about the object; empty if none."""
        return f"{found}. Correct it: until then it counts as missing" if isinstance(found, Unreadable) else ""

    @abstractmethod
    def _find(self, api_object: object) -> Found | Unreadable | None:
        """Returns the content of the object; None if the object is none of ours."""

    @abstractmethod
    def _take(self, name: str, found: Found | None) -> None:
        """Stores the content that this name has now; None if the object is gone, unreadable or none of ours."""


@dataclass
class Watch:
    """One watch, in the newest of these versions that is served. Where Nodes are the machines, it feeds both caches.

    `late` says why nothing new is seen; empty if all is well. The kind of an `unused` watch need not be served, and
    the leader need not have the right to watch it: it is tried again after `again_seconds`.
    """

    versions: tuple[Resource, ...]
    caches: tuple[Cache[Any], ...]
    namespace: str | None = None
    field_selector: str = ""
    unused: bool = False
    again_seconds: float = 300.0
    listed: bool = False
    late: str = ""

    def __post_init__(self) -> None:
        self.late = "" if self.unused else f"{self.versions[0].describe(self.namespace)} have not been listed yet"

    def keep(self, api_object: Json) -> tuple[CachedObject[Any], ...]:
        return tuple(cache.keep(api_object) for cache in self.caches)

    def show_all(self, items: Iterable[tuple[CachedObject[Any], ...]]) -> None:
        """A list: what happened before it is not known, so no stretch outlasts it (rule 9)."""
        self.listed, self.late = True, ""
        for cache in self.caches:
            cache.begin_anew()
        for item in items:
            self.show(item)

    def show(self, kept: tuple[CachedObject[Any], ...]) -> None:
        """An object is so now."""
        self.late = ""
        for cache, each in zip(self.caches, kept):
            cache.show(each)

    def show_gone(self, kept: tuple[CachedObject[Any], ...]) -> None:
        """An object was deleted."""
        self.late = ""
        for cache, each in zip(self.caches, kept):
            cache.show_gone(each.name)

    def break_off(self, sentence: str) -> None:
        """Nothing new is seen for now."""
        self.late = "" if self.unused else sentence


class Nodes(Cache[NodeSeen]):
    """`marked` are those that bear the leader's marks, `not_ready` those that have reported once and are not Ready."""

    def __init__(self, machines: str) -> None:
        super().__init__("Node")
        self.seen: dict[str, NodeSeen] = {}
        self.marked: dict[str, None] = {}
        self.not_ready: dict[str, None] = {}
        self._machines = machines
        self._stretches = 0

    def _find(self, api_object: object) -> NodeSeen | Unreadable:
        return parse_node_seen(api_object, self._machines)

    def _fault(self, found: NodeSeen | Unreadable | None) -> str:
        """Also what is wrong inside. A garbled marker of rule 12 is left to the plan, which has a course for it."""
        if not isinstance(found, NodeSeen):
            return super()._fault(found)
        parts: tuple[tuple[object, str], ...] = (
            (found.node.agent, "It promises nothing. See what pp-hostd says on that host, which rewrites it"),
            (found.freed, f"It means nothing: remove the annotation {FREED}"),
            (found.confirmed, f"It means nothing. To confirm it: pp-leader confirm-dead {found.node.name}"),
        )
        return "; ".join(f"{part}. {advice}" for part, advice in parts if isinstance(part, Unreadable))

    def _take(self, name: str, found: NodeSeen | None) -> None:
        before = self.seen.pop(name, None)
        if found is not None:
            found = self.seen[name] = replace(found, unbroken_since=self._unbroken_since(before, found))
        list_name(self.marked, name, found is not None and found.marked)
        list_name(self.not_ready, name, found is not None and found.conditioned and not found.ready)
        if _for_roster(before) != _for_roster(found):
            self.revision += 1

    def _unbroken_since(self, before: NodeSeen | None, found: NodeSeen) -> int:
        if before is not None and _binding(before) == _binding(found):
            return before.unbroken_since
        self._stretches += 1
        return self._stretches


@frozen
class _MachineFound:
    machine: Machine
    host: MachineDetails


class Machines(Cache[_MachineFound]):
    """By key; `requests` are those that need work, `claims` those that name a BareMetalHost, by what
    they call it."""

    def __init__(self) -> None:
        super().__init__("machine")
        self.seen: dict[str, MachineSeen] = {}
        self.requests: dict[str, None] = {}
        self.claims: dict[str, set[str]] = {}
        self._stretches = 0

    def _name(self, metadata: Fields) -> str:
        name = super()._name(metadata)
        return f"{metadata.text('namespace', NAME)}/{name}" if "namespace" in metadata else name

    def _find(self, api_object: object) -> _MachineFound | Unreadable:
        machine = parse_machine(api_object)
        if isinstance(machine, Unreadable):
            return machine
        host = parse_machine_details(api_object)
        return _MachineFound(machine, MachineDetails(host) if isinstance(host, Unreadable) else host)

    def _take(self, name: str, found: _MachineFound | None) -> None:
        before, machine = self.seen.pop(name, None), None if found is None else found.machine
        if found is not None:
            self.seen[name] = replace(self._stretched(before, found.machine), host=found.host)
        list_name(self.requests, name, machine is not None and _is_listed(machine))
        if (before and (before.machine.uid, before.machine.node)) != (machine and (machine.uid, machine.node)):
            self.revision += 1
        self._claim(name, before and before.host.host, found and found.host.host)

    def _claim(self, name: str, before: object, now: object) -> None:
        if isinstance(before, HostReference) and before != now:
            claims = self.claims[before.machine_key or before.uid]
            claims.discard(name)
            if not claims:
                del self.claims[before.machine_key or before.uid]
        if isinstance(now, HostReference):
            self.claims.setdefault(now.machine_key or now.uid, set()).add(name)

    def _stretched(self, before: MachineSeen | None, found: Machine) -> MachineSeen:
        """No number is used twice: what has lapsed for a moment stays void, whatever is put back (rule 9)."""
        if before is not None and _standing(before.machine) == _standing(found):
            return replace(before, machine=found)
        self._stretches += 1
        return MachineSeen(found, self._stretches, "" if before is None else before.machine.resource_version)


class Clusters(Cache[str]):
    """Cluster API's Clusters by namespace/name, and what pauses each; empty if nothing does."""

    def __init__(self) -> None:
        super().__init__("Cluster")
        self.pauses: dict[str, str] = {}

    def _name(self, metadata: Fields) -> str:
        return f"{metadata.text('namespace', NAME)}/{super()._name(metadata)}"

    def _find(self, api_object: object) -> str | Unreadable:
        return parse_cluster_pause(api_object)

    def _take(self, name: str, found: str | None) -> None:
        if found is None:
            self.pauses.pop(name, None)
        else:
            self.pauses[name] = found


def _for_roster(seen: NodeSeen | None) -> object:
    """Returns all that the roster, the choice of its versions that are kept, and the reports on Nodes depend on."""
    if seen is None:
        return None
    promise = promise_in(seen.node.agent)
    promised = None if promise is None else (promise.roster_version, promise.watchdog)
    return seen.node.uid, seen.node.address, seen.machine_key, promised


def _binding(seen: NodeSeen) -> object:
    """Returns the host's record, and whether its Node bears the taint: without the taint a host whose Machine is
    missing finds its Node untouched (rule 1). A host that has decided to reset itself is bound by its last promise."""
    return seen.node.uid, seen.node.tainted, promise_in(seen.node.agent) or seen.node.agent


def _is_listed(machine: Machine) -> bool:
    """Also one whose request was taken back by its annotation alone: its label is left to take."""
    return machine.labelled or not isinstance(machine.condemnation, NotRequested)


def _standing(machine: Machine) -> object:
    return machine.uid, machine.condemnation


def list_name(names: dict[str, None], name: str, listed: bool) -> None:
    """List or unlist it. A dict, since it keeps the order in which names came: first requested, first served."""
    if not listed:
        names.pop(name, None)
    else:
        names.setdefault(name)


def _metadata(api_object: object) -> Fields:
    return Fields(api_object).section("metadata")


def _or_empty(text: str | Unreadable) -> str:
    return "" if isinstance(text, Unreadable) else text


def is_later(seen: str | None, before: str | None) -> bool:
    """Whether a watch shows a later version than that, or none any more. It may lag behind the read that gave `before`;
    versions are numbers, and grow with each write."""
    if seen is not None and before is not None and seen.isdecimal() and before.isdecimal():
        return int(seen) > int(before)
    return seen != before
