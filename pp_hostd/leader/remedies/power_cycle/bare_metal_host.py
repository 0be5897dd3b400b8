"""A BareMetalHost as the power cycle sees it: what its operator says of its power, and who wants it off."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.model.keys import DETACHED_HOST, PAUSED_HOST, REBOOT
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

_POWERED_STATES = ("provisioned", "externally provisioned")
"""In which the operator heeds requests like ours."""

_MOST_DOUBLINGS = 10
"""After n failures the operator waits for about 2^n minutes, and never longer than with this n."""


@frozen
class PowerRequest:
    """Our own request to keep a host off: for which machine and Node (empty: none), under which id.

    It is only ever written onto a version of the host that read on: so a later "off" is another reading than that one.
    """

    machine: str
    uid: str
    node: str
    id: int

    def render(self) -> str:
        """The annotation's value: the operator's own fields, and ours, which it ignores."""
        ours = {"machine": self.machine, "uid": self.uid, "node": self.node or None, "id": self.id}
        return render({"mode": "hard", "force": False, **ours})


@frozen
class BareMetalHost:
    """`powered_on` is None where the operator has not told. `request` is under our own key, `others` are the other keys
    that keep it off. `obstacle` says why its reported power proves nothing, `unheeded` why a request would not
    be heeded, `error` what its operator complains of; each is empty where nothing does."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    powered_on: bool | None
    online: bool
    external: bool
    consumer: str
    request: PowerRequest | Unreadable | None
    others: tuple[str, ...]
    obstacle: str
    unheeded: str
    error: str
    seen_off: bool = field(default=False, compare=False)
    """Whether the watch has shown that it turned off beside our request, and nothing since that leaves it in doubt."""

    @property
    def subject(self) -> str:
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
        others=tuple(sorted(_reboots(annotations, own_key))),
        obstacle=_obstacle(metadata, spec),
        unheeded=_unheeded(status),
        error=_error(status),
    )


def parse_request(text: object) -> PowerRequest | Unreadable:
    """What stands under our key. What we did not write ourselves is unreadable."""
    return read("its power-off request", lambda source: _request(document(source, MAX_RECORD_CHARACTERS)), text)


def _request(fields: Fields) -> PowerRequest:
    node = fields.text("node", NAME) if "node" in fields else ""
    return PowerRequest(fields.text("machine", MACHINE), fields.text("uid", OPAQUE), node, fields.count("id"))


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
