"""What the leader keeps of Nodes and machines, brought up to date event by event. No I/O."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Generic, TypeVar

from pp_hostd.frozen import frozen
from pp_hostd.model.bare_metal_host import BareMetalHost, has_turned_off, parse_bare_metal_host
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.keys import FREED
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.machine_host import NO_HOST, HostReference, MachineHost, parse_machine_host
from pp_hostd.model.observed import MachineSeen, NodeSeen, parse_node_seen
from pp_hostd.model.owners_wish import parse_cluster_pause
from pp_hostd.model.promise import Armed, Committed
from pp_hostd.model.record import NAME, OPAQUE, Fields, Unreadable, read
from pp_hostd.model.remediation import Remediation, RemediationKind, parse_remediation

MAX_FAULTY = 100
"""So many objects of a kind are told of at most."""

Found = TypeVar("Found")


@frozen
class Kept(Generic[Found]):
    """All that is held of one object; `found` is None if it is none of ours. Name, uid and version are empty where the
    object has none that Kubernetes would give: then it is unreadable too."""

    name: str
    uid: str
    version: str
    found: Found | Unreadable | None


@frozen
class Fault:
    """What is wrong with an object of this uid, and what to do about it."""

    uid: str
    sentence: str


class Sight(ABC, Generic[Found]):
    """The objects of one kind by name. One that can't be read counts as one that is not there, and is told of.

    `revision` grows with every change in what the roster is made of.
    """

    def __init__(self, called: str) -> None:
        self.versions: dict[str, str] = {}
        self.faults: dict[str, Fault] = {}
        self.revision = 0
        self._called = called

    def keep(self, api_object: object) -> Kept[Found]:
        """What is held of an object of the API."""
        name = read("the name", lambda source: self._name(_metadata(source)), api_object)
        uid = read("the uid", lambda source: _metadata(source).text("uid", OPAQUE), api_object)
        version = read("the version", lambda source: _metadata(source).text("resourceVersion", OPAQUE), api_object)
        return Kept(_or_empty(name), _or_empty(uid), _or_empty(version), self._find(api_object))

    def show(self, kept: Kept[Found]) -> None:
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
        """What is to be told about the object, or nothing."""
        return f"{found}. Correct it: until then it counts as missing" if isinstance(found, Unreadable) else ""

    @abstractmethod
    def _find(self, api_object: object) -> Found | Unreadable | None:
        """What the object says; None if it is none of ours."""

    @abstractmethod
    def _take(self, name: str, found: Found | None) -> None:
        """What is found under this name now."""


class Nodes(Sight[NodeSeen]):
    """`marked` are those that bear the leader's marks."""

    def __init__(self, machines: str) -> None:
        super().__init__("Node")
        self.seen: dict[str, NodeSeen] = {}
        self.marked: dict[str, None] = {}
        self._machines = machines
        self._stretches = 0

    def _find(self, api_object: object) -> NodeSeen | Unreadable:
        return parse_node_seen(api_object, self._machines)

    def _fault(self, found: NodeSeen | Unreadable | None) -> str:
        """Also what is wrong inside. A garbled marker of rule 12 is left to the plan, which has a course for it."""
        if not isinstance(found, NodeSeen):
            return super()._fault(found)
        parts: tuple[tuple[object, str], ...] = (
            (found.node.agent, "It promises nothing. See what pp-hostd says on that host, which writes it anew"),
            (found.freed, f"It means nothing: remove the annotation {FREED}"),
            (found.confirmed, f"It means nothing. To confirm it: pp-leader confirm-dead {found.node.name}"),
        )
        return "; ".join(f"{part}. {advice}" for part, advice in parts if isinstance(part, Unreadable))

    def _take(self, name: str, found: NodeSeen | None) -> None:
        before = self.seen.pop(name, None)
        if found is not None:
            found = self.seen[name] = replace(found, stretch=self._stretch(before, found))
        _list(self.marked, name, found is not None and found.marked)
        if _for_roster(before) != _for_roster(found):
            self.revision += 1

    def _stretch(self, before: NodeSeen | None, found: NodeSeen) -> int:
        if before is not None and _binding(before) == _binding(found):
            return before.stretch
        self._stretches += 1
        return self._stretches


@frozen
class _MachineFound:
    machine: Machine
    host: MachineHost


class Machines(Sight[_MachineFound]):
    """By subject; `requests` are those that are not plainly well, `claims` those that name a BareMetalHost, by what
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
        if machine.namespace is None:  # a Node stands for itself
            return _MachineFound(machine, NO_HOST)
        host = parse_machine_host(api_object)
        return _MachineFound(machine, MachineHost(host) if isinstance(host, Unreadable) else host)

    def _take(self, name: str, found: _MachineFound | None) -> None:
        before, machine = self.seen.pop(name, None), None if found is None else found.machine
        if found is not None:
            self.seen[name] = replace(self._stretched(before, found.machine), host=found.host)
        _list(self.requests, name, machine is not None and _is_listed(machine))
        if (before and (before.machine.uid, before.machine.node)) != (machine and (machine.uid, machine.node)):
            self.revision += 1
        self._claim(name, before and before.host.host, found and found.host.host)

    def _claim(self, name: str, before: object, now: object) -> None:
        if isinstance(before, HostReference) and before != now:
            claims = self.claims[before.subject or before.uid]
            claims.discard(name)
            if not claims:
                del self.claims[before.subject or before.uid]
        if isinstance(now, HostReference):
            self.claims.setdefault(now.subject or now.uid, set()).add(name)

    def _stretched(self, before: MachineSeen | None, found: Machine) -> MachineSeen:
        """No number is used twice: what has lapsed for a moment stays void, whatever is put back (rule 9)."""
        if before is not None and _standing(before.machine) == _standing(found):
            return replace(before, machine=found)
        self._stretches += 1
        return MachineSeen(found, self._stretches, "" if before is None else before.machine.resource_version)


class Hosts(Sight[BareMetalHost]):
    """By namespace/name; `held` are those with a request under our key, `names` finds one by its uid.

    `_off` are the versions, by uid, in which hosts are certainly off. Where a list shows the same version again,
    nothing was written meanwhile, whatever the watch has missed.
    """

    def __init__(self, suffix: str) -> None:
        super().__init__("BareMetalHost")
        self.seen: dict[str, BareMetalHost] = {}
        self.names: dict[str, str] = {}
        self.held: dict[str, None] = {}
        self._off: dict[str, str] = {}
        self._suffix = suffix

    def _name(self, metadata: Fields) -> str:
        return f"{metadata.text('namespace', NAME)}/{super()._name(metadata)}"

    def _find(self, api_object: object) -> BareMetalHost | Unreadable:
        return parse_bare_metal_host(api_object, self._suffix)

    def _take(self, name: str, found: BareMetalHost | None) -> None:
        before = self.seen.pop(name, None)
        if before is not None:
            self.names.pop(before.uid, None)
        if found is not None:
            found = replace(found, seen_off=self._is_off(before, found))
            self.seen[name], self.names[found.uid] = found, name
        _list(self.held, name, found is not None and found.request is not None)

    def _is_off(self, before: BareMetalHost | None, found: BareMetalHost) -> bool:
        unchanged = self._off.get(found.uid) == found.resource_version
        if unchanged or has_turned_off(before, found):
            self._off[found.uid] = found.resource_version
            return True
        self._off.pop(found.uid, None)
        return False


class Clusters(Sight[str]):
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


class Remediations(Sight[Remediation]):
    """Objects of one kind, by what they are called; `seen` is shared with those of other kinds."""

    def __init__(self, kind: RemediationKind, seen: dict[str, Remediation]) -> None:
        super().__init__(kind.kind)
        self.seen = seen
        self._kind = kind

    def _name(self, metadata: Fields) -> str:
        return f"{self._kind.name} {metadata.text('namespace', NAME)}/{super()._name(metadata)}"

    def _find(self, api_object: object) -> Remediation | Unreadable:
        return parse_remediation(api_object, self._kind)

    def _take(self, name: str, found: Remediation | None) -> None:
        if found is None:
            self.seen.pop(name, None)
        else:
            self.seen[name] = found


def _for_roster(seen: NodeSeen | None) -> object:
    """What the roster, the choice of its versions that are kept, and the complaints about Nodes depend on."""
    if seen is None:
        return None
    agent = seen.node.agent
    promise = agent.promise if isinstance(agent, Committed) else agent
    promised = (promise.roster_version, promise.watchdog) if isinstance(promise, Armed) else None
    return seen.node.uid, seen.node.address, seen.subject, promised


def _binding(seen: NodeSeen) -> object:
    """What the host states, and whether its Node bears the taint: without it a host whose Machine is missing finds its
    Node untouched (rule 1). One that has decided is bound by what it promised before."""
    agent = seen.node.agent
    return seen.node.uid, seen.node.tainted, agent.promise if isinstance(agent, Committed) else agent


def _is_listed(machine: Machine) -> bool:
    """Also one whose request was taken back by its annotation alone: its label is left to take."""
    return machine.labelled or not isinstance(machine.condemnation, NotRequested)


def _standing(machine: Machine) -> object:
    return machine.uid, machine.condemnation


def _list(names: dict[str, None], name: str, listed: bool) -> None:
    """A dict, since it keeps the order in which names came: first asked for, first served."""
    if not listed:
        names.pop(name, None)
    else:
        names.setdefault(name)


def _metadata(api_object: object) -> Fields:
    return Fields(api_object).section("metadata")


def _or_empty(text: str | Unreadable) -> str:
    return "" if isinstance(text, Unreadable) else text
