"""BareMetalHosts as the power cycle sees them: their power by their operator, who wants them off, their node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field

from pp_hostd.frozen import frozen, replace
from pp_hostd.kube.resources import BARE_METAL_HOSTS
from pp_hostd.leader.caches import Cache, list_name
from pp_hostd.leader.plan.view import Target, View
from pp_hostd.leader.steps.port import Kind, Port, Unwritten, if_there
from pp_hostd.model.backup import Backup
from pp_hostd.model.keys import BOOTING, DETACHED_HOST, PAUSED_HOST, REBOOT
from pp_hostd.model.machine_details import HostReference
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import (
    MACHINE,
    MAX_RECORD_CHARACTERS,
    NAME,
    OPAQUE,
    Fields,
    Unreadable,
    document,
    read,
    render,
)
from pp_hostd.model.step import Written

_POWERED_STATES = ("provisioned", "externally provisioned")
"""In which the operator heeds requests like ours."""

_MOST_DOUBLINGS = 10
"""After n failures the operator waits for about 2^n minutes, and never longer than with this n."""


@frozen
class PowerRequest:
    """Our own request to keep a host off: for which machine and Node (empty: none), under which id.

    It is only ever written onto a version of the host that read on: so a later "off" is another reading than that one.
    `boot` is empty until the leader takes the request back, and where the Node was deleted; else it is the boot that
    the Node has reported last.
    """

    machine: str
    uid: str
    node: str
    id: int
    boot: str = ""

    def render(self) -> str:
        """The annotation's value: the operator's own fields, and ours, which it ignores."""
        ours = {"machine": self.machine, "uid": self.uid, "node": self.node or None, "id": self.id}
        return render({"mode": "hard", "force": False, **ours, "boot": self.boot or None})


@frozen
class BareMetalHost:
    """`powered_on` is None where the operator has not told. `request` is under our own key, `others` are the other keys
    that keep it off. `booting` is the request that was taken back last, until the host is back. `obstacle` says why its
    reported power proves nothing, `unheeded` why a request would not be heeded, `error` what its operator complains of;
    each is empty where nothing does."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    powered_on: bool | None
    online: bool
    external: bool
    consumer: str
    request: PowerRequest | Unreadable | None
    booting: PowerRequest | Unreadable | None
    others: tuple[str, ...]
    obstacle: str
    unheeded: str
    error: str
    seen_off: bool = field(default=False, compare=False)
    """Whether the watch has shown that it turned off beside our request, and nothing since that leaves it in doubt."""

    @property
    def machine_key(self) -> str:
        return f"{self.namespace}/{self.name}"


def has_turned_off(before: BareMetalHost | None, found: BareMetalHost) -> bool:
    """Whether `found` is certainly off, where `before` is the version that the watch showed just before it.

    The operator writes what it reads onto the very version that it began with. So an "off" that follows upon an "on",
    with our request on both, was read after our request, by an operator that looked after the host. An "off" that is
    repeated proves nothing by itself: while a host is paused, detached or in error, nobody reads its power again.
    """
    if before is None or before.uid != found.uid or not isinstance(found.request, PowerRequest):
        return False
    if found.powered_on is not False or found.obstacle or found.error:
        return False
    began_on = before.powered_on is True and not before.obstacle
    return before.request == found.request and (began_on or before.seen_off)


def reboot_key(suffix: str) -> str:
    """The annotation that keeps a host off; `suffix` is the setting power.suffix."""
    return f"{REBOOT}/{suffix}"


def parse_bare_metal_host(api_object: object, suffix: str) -> BareMetalHost | Unreadable:
    """The host in an object of the API."""
    return read("the BareMetalHost", lambda source: _host(Fields(source), reboot_key(suffix)), api_object)


def _host(host: Fields, own_key: str) -> BareMetalHost:
    metadata, spec, status = host.section("metadata"), host.section("spec"), host.section("status")
    annotations = metadata.section("annotations")
    powered_on = status.anything("poweredOn")
    external = spec.anything("externallyProvisioned") is True
    return BareMetalHost(
        namespace=metadata.text("namespace", NAME),
        name=metadata.text("name", NAME),
        uid=metadata.text("uid", OPAQUE),
        resource_version=metadata.text("resourceVersion", OPAQUE),
        powered_on=powered_on if isinstance(powered_on, bool) else None,
        online=spec.anything("online") is True,
        external=external,
        consumer=_consumer(spec.section("consumerRef")),
        request=parse_request(annotations.anything(own_key)) if own_key in annotations else None,
        booting=parse_request(annotations.anything(BOOTING)) if BOOTING in annotations else None,
        others=tuple(sorted(_reboots(annotations, own_key))),
        obstacle=_obstacle(metadata, spec),
        unheeded=_unheeded(status),
        error=_error(status),
    )


def parse_request(text: object) -> PowerRequest | Unreadable:
    """Returns the request under our key. A text that we did not write ourselves is unreadable."""
    return read("its power-off request", lambda source: _request(document(source, MAX_RECORD_CHARACTERS)), text)


def _request(fields: Fields) -> PowerRequest:
    node = fields.text("node", NAME) if "node" in fields else ""
    boot = fields.text("boot", OPAQUE) if "boot" in fields else ""
    return PowerRequest(fields.text("machine", MACHINE), fields.text("uid", OPAQUE), node, fields.count("id"), boot)


def _reboots(annotations: Fields, own_key: str) -> Iterator[str]:
    for key in annotations.without(own_key):
        if str(key).startswith(f"{REBOOT}/"):
            yield str(key)


def _consumer(reference: Fields) -> str:
    """`Machine namespace/name`, if it is a Machine that uses this host and not something else."""
    if reference.anything("kind") != "Machine":
        return ""
    return f"{reference.anything('namespace')}/{reference.anything('name')}"


def _obstacle(metadata: Fields, spec: Fields) -> str:
    annotations = metadata.section("annotations")
    if metadata.anything("deletionTimestamp") is not None:
        return "it is being deleted"
    for key in (PAUSED_HOST, DETACHED_HOST):
        if key in annotations:
            return f"{key} is on it, so nobody looks after its power"
    if spec.anything("disablePowerOff") is True:
        return "spec.disablePowerOff is set, so its operator would reboot it and never read it off"
    return ""


def _unheeded(status: Fields) -> str:
    state = status.section("provisioning").anything("state")
    if state in _POWERED_STATES:
        return ""
    return f"its state is {str(state or 'unknown')[:40]}, and only a provisioned host heeds power-off requests"


def _error(status: Fields) -> str:
    if status.anything("operationalStatus") != "error":
        return ""
    told = f"{status.anything('errorType') or 'error'}: {str(status.anything('errorMessage') or 'no details')[:200]}"
    count = status.anything("errorCount")
    if not isinstance(count, int) or count < 1:
        return told
    minutes = 2 ** min(count, _MOST_DOUBLINGS)
    return f"{told} (failure {count}; it tries again within about {minutes} min)"


HOST = Kind("BareMetalHost")


@frozen
class HostsSeen:
    """The BareMetalHosts by namespace/name. `names` finds one by its uid; `held` are those with a request of ours,
    one that was taken back included. `late` says why they are not seen as they are now; empty if they are."""

    seen: Mapping[str, BareMetalHost] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    held: tuple[str, ...] = ()
    late: str = ""


class Hosts(Cache[BareMetalHost]):
    """By namespace/name; `held` are those with a request of ours, `names` finds one by its uid.

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
        list_name(self.held, name, found is not None and (found.request or found.booting) is not None)

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
    return view.left.partition(" ")[2] if view.left else _host_of(view.observed, view.machine_key)


def host_seen(view: View) -> BareMetalHost | None:
    return view.observed.part(HostsSeen).seen.get(host_name(view))


def request_of(view: View) -> PowerRequest | None:
    """Our request that keeps its host off, if there is one for this very machine, or for one that is gone."""
    host = host_seen(view)
    return None if host is None else _ours(view, host.request)


def booting_of(view: View) -> PowerRequest | None:
    """Our request for this very machine that was taken back. Its Node was kept, and its host is not back yet."""
    host = host_seen(view)
    return None if host is None or host.request is not None else _ours(view, host.booting)


def _ours(view: View, found: PowerRequest | Unreadable | None) -> PowerRequest | None:
    machine = view.machine
    same = isinstance(found, PowerRequest) and (machine is None or machine.uid == found.uid)
    return found if isinstance(found, PowerRequest) and same else None


def is_off(view: View) -> bool:
    """Whether it is certainly off by our request: this leader saw it turn off, or another one did, which stored
    the version of the host that is still the newest."""
    host = host_seen(view)
    if host is None or host.powered_on is not False or host.obstacle or request_of(view) is None:
        return False
    stored = None if view.backup_seen is None else view.backup_seen.backup
    known = isinstance(stored, Backup) and (stored.host, stored.off) == (host.machine_key, host.resource_version)
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
    """Yields the hosts that our request keeps off, or has kept off, and that nothing else leads to: nobody requests the
    machine any more, or the machine is gone. No host may stay off, whichever leader has switched it off."""
    hosts = observed.part(HostsSeen)
    if not hosts.held:
        return
    found = {_host_of(observed, target.machine) for target in known}
    for name in hosts.held:
        request = hosts.seen[name].request or hosts.seen[name].booting
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


def reads_off(observed: Observed, machine: str) -> bool:
    """Whether the operator says that the host of this machine is off."""
    host = observed.part(HostsSeen).seen.get(_host_of(observed, machine))
    return host is not None and host.powered_on is False


def _host_of(observed: Observed, machine: str) -> str:
    held, hosts = kept_off(observed), observed.part(HostsSeen)
    if machine in held or machine not in observed.machines:
        return held.get(machine, "")
    reference = observed.machines[machine].host.host
    if not isinstance(reference, HostReference):
        return ""
    name = reference.machine_key or hosts.names.get(reference.uid, "")
    host = hosts.seen.get(name)
    return name if host is not None and reference.uid in ("", host.uid) else ""
