"""The statement of a host's agent on its Node: the annotation `pp-hostd.io/agent`, one record in one of four states.

Each state is a type of its own that holds all the leader needs from it, so no wait is computed from what is missing
(rule 11). A record that claims an absurd timeout is no promise.
"""

from __future__ import annotations

import enum
from typing import Any, Union

from pp_hostd.frozen import frozen
from pp_hostd.model.control import Maintenance, read_maintenance
from pp_hostd.model.record import MAX_RECORD_CHARACTERS, OPAQUE, Fields, Refused, Unreadable, document, read, render

MIN_TIMEOUT_SECONDS = 1.0
MAX_TIMEOUT_SECONDS = 3600.0


class WatchdogKind(enum.Enum):
    """The kind of watchdog, which resets the host when the agent stops feeding the watchdog."""

    HARDWARE = "hardware"
    SOFTDOG = "softdog"
    SOFTWARE_ONLY = "software-only"
    """No watchdog: a hung kernel is never reset, so the leader refuses it unless a setting accepts it (rule 8)."""


class GateKind(enum.Enum):
    """The kind of gate, which keeps the kubelet from starting workloads in a boot without a promise (rule 6)."""

    HOLD = "hold"
    TAINT = "taint"
    NONE = "none"


class _State(enum.Enum):
    ARMED = "armed"
    GATE_CLOSED = "gate-closed"
    COMMITTED = "committed"
    WITHDRAWN = "withdrawn"


@frozen
class Armed:
    """The promise: in this boot, without a proof for `self_timeout_seconds` (T), the host stops feeding its watchdog.

    `watchdog_timeout_seconds` (W) is the value read back from the device; only reads of the machine with `machine_uid`
    are proof (rule 1); `roster_version` names the roster in force (rule 5). `reported_boot` is what the kubelet had
    reported when this boot's first promise was stored: any other boot than these two came later (rule 11).
    """

    boot: str
    self_timeout_seconds: float
    watchdog_timeout_seconds: float
    watchdog: WatchdogKind
    gate: GateKind
    machine_uid: str
    roster_version: int
    reported_boot: str = ""

    def render(self) -> str:
        return render(self._fields(_State.ARMED))

    def _fields(self, state: _State) -> dict[str, Any]:
        return {
            "state": state.value,
            "boot": self.boot,
            "T": self.self_timeout_seconds,
            "W": self.watchdog_timeout_seconds,
            "watchdog": self.watchdog.value,
            "gate": self.gate.value,
            "machine": self.machine_uid,
            "roster": self.roster_version,
            **_reported(self.reported_boot),
        }


@frozen
class Committed:
    """The host has decided to reset, once, for this condemnation (rule 7); what it had promised still stands."""

    promise: Armed
    id: int

    @property
    def boot(self) -> str:
        return self.promise.boot

    def render(self) -> str:
        return render({**self.promise._fields(_State.COMMITTED), "id": self.id})


@frozen
class GateClosed:
    """Nothing was started in this boot. For another boot than the promised one this ends the wait (rule 11), unless the
    kubelet has reported another boot than `reported_boot`, which it had reported when this was stored."""

    boot: str
    gate: GateKind
    reported_boot: str = ""

    def render(self) -> str:
        fields = {"state": _State.GATE_CLOSED.value, "boot": self.boot, "gate": self.gate.value}
        return render({**fields, **_reported(self.reported_boot)})


@frozen
class Withdrawn:
    """The host promises nothing any more, and may have disarmed (rule 5); `maintenance` says who ordered that."""

    boot: str
    maintenance: Maintenance | None = None

    def render(self) -> str:
        order = {} if self.maintenance is None else {"maintenance": self.maintenance.fields()}
        return render({"state": _State.WITHDRAWN.value, "boot": self.boot, **order})


def _reported(boot: str) -> dict[str, str]:
    return {"reported": boot} if boot else {}


AgentRecord = Union[Armed, Committed, GateClosed, Withdrawn]


def promise_in(record: AgentRecord | Unreadable | None) -> Armed | None:
    """Returns the promise that stands by this record: a host that has decided to reset keeps what it promised."""
    stated = record.promise if isinstance(record, Committed) else record
    return stated if isinstance(stated, Armed) else None


def parse_agent_record(text: object) -> AgentRecord | Unreadable:
    """Returns the record in the annotation's text."""
    return read("the agent's record", _agent_record, text)


def _agent_record(text: object) -> AgentRecord:
    fields = document(text, MAX_RECORD_CHARACTERS)
    state = fields.choice("state", _State)
    if state is _State.ARMED:
        return _armed(fields)
    if state is _State.COMMITTED:
        return Committed(_armed(fields), fields.count("id"))
    if state is _State.GATE_CLOSED:
        return _gate_closed(fields)
    maintenance = read_maintenance(fields.section("maintenance")) if "maintenance" in fields else None
    return Withdrawn(fields.text("boot", OPAQUE), maintenance)


def _armed(fields: Fields) -> Armed:
    return Armed(
        boot=fields.text("boot", OPAQUE),
        self_timeout_seconds=fields.seconds("T", MIN_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS),
        watchdog_timeout_seconds=fields.seconds("W", MIN_TIMEOUT_SECONDS, MAX_TIMEOUT_SECONDS),
        watchdog=fields.choice("watchdog", WatchdogKind),
        gate=fields.choice("gate", GateKind),
        machine_uid=fields.text("machine", OPAQUE),
        roster_version=fields.count("roster"),
        reported_boot=_reported_boot(fields),
    )


def _gate_closed(fields: Fields) -> GateClosed:
    gate = fields.choice("gate", GateKind)
    if gate is GateKind.NONE:
        raise Refused("it says that a gate is closed, and that there is none")
    return GateClosed(fields.text("boot", OPAQUE), gate, _reported_boot(fields))


def _reported_boot(fields: Fields) -> str:
    return fields.text("reported", OPAQUE) if "reported" in fields else ""
