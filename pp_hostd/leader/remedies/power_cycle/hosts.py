"""The BareMetalHosts as the leader sees them, and the one on which a node stands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import BARE_METAL_HOSTS
from pp_hostd.leader.caches import Cache, list_name
from pp_hostd.leader.plan.targets import Target
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import (
    BareMetalHost,
    PowerRequest,
    has_turned_off,
    parse_bare_metal_host,
)
from pp_hostd.leader.steps.port import Kind, Port, Unwritten, if_there
from pp_hostd.model.backup import Backup
from pp_hostd.model.machine_details import HostReference
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import NAME, Fields, Unreadable
from pp_hostd.model.written import Written

HOST = Kind("BareMetalHost")


@frozen
class HostsSeen:
    """The BareMetalHosts by namespace/name. `names` finds one by its uid; `held` are those with a request under our
    own key. `late` says why they are not seen as they are now; empty if they are."""

    seen: Mapping[str, BareMetalHost] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    late: str = ""


class Hosts(Cache[BareMetalHost]):
    """By namespace/name; `held` are those with a request under our key, `names` finds one by its uid.

    `_off` are the versions, by uid, in which hosts are certainly off. Where a list shows the same version again,
    nothing was written meanwhile, whatever the watch has missed.
    """

    def __init__(self, suffix: str) -> None:
        super().__init__(HOST.called)
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
        list_name(self.held, name, found is not None and found.request is not None)

    def _is_off(self, before: BareMetalHost | None, found: BareMetalHost) -> bool:
        unchanged = self._off.get(found.uid) == found.resource_version
        if unchanged or has_turned_off(before, found):
            self._off[found.uid] = found.resource_version
            return True
        self._off.pop(found.uid, None)
        return False


# The host of one node.


def host_name(view: View) -> str:
    """The BareMetalHost that is kept off for its machine; else the one that the machine names, if that is there."""
    return view.left.partition(" ")[2] if view.left else _host_of(view.observed, view.subject)


def host_seen(view: View) -> BareMetalHost | None:
    return view.observed.part(HostsSeen).seen.get(host_name(view))


def request_of(view: View) -> PowerRequest | None:
    """Our request that keeps its host off, if there is one for this very machine, or for one that is gone."""
    host, machine = host_seen(view), view.machine
    found = None if host is None else host.request
    ours = isinstance(found, PowerRequest) and (machine is None or machine.uid == found.uid)
    return found if isinstance(found, PowerRequest) and ours else None


def is_off(view: View) -> bool:
    """Whether it is certainly off by our request: this leader saw it turn off, or another one did, which stored
    the version of the host that is still the newest."""
    host = host_seen(view)
    if host is None or host.powered_on is not False or host.obstacle or request_of(view) is None:
        return False
    stored = None if view.backup_seen is None else view.backup_seen.backup
    known = isinstance(stored, Backup) and (stored.host, stored.off) == (host.subject, host.resource_version)
    return host.seen_off or known


@frozen
class LookAtHost:
    """Has an inspection read this BareMetalHost."""

    host: str

    async def read(self, port: Port) -> BareMetalHost | None:
        namespace, _, name = self.host.partition("/")
        found = await if_there(port.api.get(BARE_METAL_HOSTS, name, namespace=namespace))
        host = None if found is None else parse_bare_metal_host(found, port.settings.power.suffix)
        if isinstance(host, Unreadable):
            raise Unwritten(Written.NOT_DONE, f"reading BareMetalHost {self.host}: {host}")
        return host


def left_behind(observed: Observed, known: Iterable[Target]) -> Iterator[Target]:
    """Hosts that our request keeps off, and that nothing else leads to: nobody requests the machine any more, or it
    is gone. Whoever led before, none may stay off."""
    hosts = observed.part(HostsSeen)
    if not hosts.held:
        return
    found = {_host_of(observed, target.machine) for target in known}
    for name in hosts.held:
        request = hosts.seen[name].request
        if name in found or not isinstance(request, PowerRequest):
            continue
        seen = observed.machines.get(request.machine)
        same = seen is not None and seen.machine.uid == request.uid
        yield Target(request.node, request.machine if same else "", f"{HOST.called} {name}")


def kept_off(observed: Observed) -> dict[str, str]:
    """Of machines whose host our request keeps off: the machine, and that host."""
    hosts, found = observed.part(HostsSeen), {}
    for name in hosts.held:
        request = hosts.seen[name].request
        machine = observed.machines.get(request.machine) if isinstance(request, PowerRequest) else None
        if isinstance(request, PowerRequest) and machine is not None and machine.machine.uid == request.uid:
            found[request.machine] = name
    return found


def _host_of(observed: Observed, machine: str) -> str:
    held, hosts = kept_off(observed), observed.part(HostsSeen)
    if machine in held or machine not in observed.machines:
        return held.get(machine, "")
    reference = observed.machines[machine].host.host
    if not isinstance(reference, HostReference):
        return ""
    name = reference.subject or hosts.names.get(reference.uid, "")
    host = hosts.seen.get(name)
    return name if host is not None and reference.uid in ("", host.uid) else ""
