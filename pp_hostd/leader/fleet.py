"""The fleet as people want to see it: who leads, what happens now, the limits that hold, and every host.

`pp-leader status` and the leader's page render this value. It is made of plain objects of the API and of the time, and
holds only what the cluster knows: the age of a host's last proof is known to its agent alone.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.leadership import Json, Leadership, leadership_of, maintenance_text, paused_text
from pp_hostd.leader.node_memory import Stage
from pp_hostd.model.agent_info import AgentInfo, parse_agent_info
from pp_hostd.model.budget import Budget, parse_budget
from pp_hostd.model.control import Control, Maintenance, parse_control
from pp_hostd.model.keys import (
    AGENT,
    AGENT_INFO,
    BUDGET,
    CONDEMNED,
    CONTROL,
    ENROLLED,
    EXTERNAL_REMEDIATION,
    FREED,
    LEADER,
    PAUSED_NODE,
    PROTECTED,
)
from pp_hostd.model.leader_status import CourseTold, LeaderStatus
from pp_hostd.model.moment import parse_moment, render_moment
from pp_hostd.model.promise import Armed, Committed, GateClosed, Withdrawn, parse_agent_record, promise_in
from pp_hostd.model.record import NAME, Unreadable

ROLE = "node-role.kubernetes.io/"
READY = "Ready"
FREED_STAGES = frozenset(each.value for each in (Stage.RESTORING, Stage.SWITCHING_ON, Stage.CLEARING))
"""Here the workloads are freed already."""
WAITING_STAGES = frozenset(each.value for each in (Stage.HELD, Stage.OVER_BUDGET))
ALMOST = 0.99
"""A bar is full only once the workloads are freed, however late that is."""


class State(enum.Enum):
    """The statement of a host's agent on its Node."""

    ARMED = "armed"
    RESETTING = "resetting"
    BOOTING = "booting"
    """Its gate is closed: nothing was started in this boot."""
    WITHDRAWN = "withdrawn"
    UNREADABLE = "unreadable"
    SILENT = "silent"
    """It states nothing."""


class Remediation(enum.Enum):
    """How far the remediation of a host is."""

    NONE = "none"
    REQUESTED = "requested"
    RUNNING = "running"
    BLOCKED = "blocked"
    """It needs an operator."""


@frozen
class FleetHost:
    """One host, by its Node. `protected` is the condition that the leader keeps, None where there is none; `reason` and
    `message` are its words, and `protected_since_wallclock` is when it turned. `watchdog` and `gate` are empty, and the
    timeouts None, where the host has promised nothing. `present`: there is a Node. `away`: its workloads were freed,
    and neither its agent nor its kubelet is back. `info` is None where none can be read."""

    name: str
    present: bool = True
    away: bool = False
    protected: bool | None = None
    reason: str = ""
    message: str = ""
    protected_since_wallclock: datetime | None = None
    ready: bool = False
    state: State = State.SILENT
    watchdog: str = ""
    gate: str = ""
    boot: str = ""
    self_timeout_seconds: float | None = None
    watchdog_timeout_seconds: float | None = None
    maintenance: Maintenance | None = None
    paused: bool = False
    roles: tuple[str, ...] = ()
    remediation: Remediation = Remediation.NONE
    info: AgentInfo | None = None

    @property
    def rank(self) -> int:
        """How soon a person wants to see it: 0 is the most urgent; WELL needs nobody."""
        if self.remediation is not Remediation.NONE:
            return (Remediation.BLOCKED, Remediation.RUNNING, Remediation.REQUESTED).index(self.remediation)
        if not self.present or self.away:
            return 3
        if self.maintenance is None and self.protected is not True:
            return 4
        if not self.ready:
            return 5
        return 6 if self.maintenance is not None or self.paused else WELL

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "present": self.present,
            "away": self.away,
            "protected": self.protected,
            "reason": self.reason,
            "message": self.message,
            "protected_since": _rendered(self.protected_since_wallclock),
            "ready": self.ready,
            "state": self.state.value,
            "watchdog": self.watchdog or None,
            "gate": self.gate or None,
            "boot": self.boot or None,
            "self_timeout_seconds": self.self_timeout_seconds,
            "watchdog_timeout_seconds": self.watchdog_timeout_seconds,
            "maintenance": None if self.maintenance is None else self.maintenance.fields(),
            "paused": self.paused,
            "roles": list(self.roles),
            "remediation": self.remediation.value,
            "version": None if self.info is None else self.info.version,
            "certificate_ends": None if self.info is None else _rendered(self.info.certificate_ends_wallclock),
        }


WELL = 7


@frozen
class Ongoing:
    """The leader's work on one node or object now. `part` is how much of the time that was promised for freeing
    its workloads is over, 1 once they are freed; None where nothing promises a time."""

    told: CourseTold
    part: float | None

    def as_json(self) -> dict[str, Any]:
        told = self.told
        return {
            "node": told.node,
            "machine": told.machine,
            "stage": told.stage,
            "sentence": told.sentence,
            "blocked": told.refused,
            "since": render_moment(told.since_wallclock),
            "due": _rendered(told.due_wallclock),
            "began": _rendered(told.began_wallclock),
            "dead_by": _rendered(told.dead_by_wallclock),
            "part": None if self.part is None else round(self.part, 3),
        }


class LimitKind(enum.Enum):
    """The kinds of limits: they keep the leader from its work, or hosts from being protected."""

    NO_LEADER = "no-leader"
    PAUSE = "pause"
    MAINTENANCE = "maintenance"
    DRY_RUN = "dry-run"
    BUDGET = "budget"
    HELD = "held"
    """A valve holds every further remediation: too many sick at once, too many under work, a term that just began."""
    TROUBLE = "trouble"


@frozen
class Limit:
    """One limit that holds now; `until_wallclock` is None where nobody knows when it ends."""

    kind: LimitKind
    sentence: str
    until_wallclock: datetime | None = None

    def as_json(self) -> dict[str, Any]:
        until = _rendered(self.until_wallclock)
        return {"kind": self.kind.value, "sentence": self.sentence, "until": until}


@frozen
class Fleet:
    """`hosts` are the enrolled nodes, by name, as people count: worker-2 is before worker-10. `not_enrolled` names all
    other Nodes. `control` are people's orders. `resets_left` is None if no leader has said how many it allows."""

    at_wallclock: datetime
    leadership: Leadership
    control: Control
    ongoing: tuple[Ongoing, ...]
    limits: tuple[Limit, ...]
    hosts: tuple[FleetHost, ...]
    not_enrolled: tuple[str, ...]
    resets_left: int | None

    @property
    def unwell(self) -> tuple[FleetHost, ...]:
        """The hosts that need a person's eyes, the most urgent first."""
        return tuple(sorted((each for each in self.hosts if each.rank < WELL), key=lambda each: each.rank))

    def as_json(self) -> dict[str, Any]:
        protected = sum(each.protected is True for each in self.hosts)
        return {
            "at": render_moment(self.at_wallclock),
            "leads": self.leadership.leads,
            "holder": self.leadership.holder,
            "ongoing": [each.as_json() for each in self.ongoing],
            "limits": [each.as_json() for each in self.limits],
            "resets_left": self.resets_left,
            "counts": {"enrolled": len(self.hosts), "protected": protected, "unwell": len(self.unwell)},
            "hosts": [each.as_json() for each in self.hosts],
            "not_enrolled": list(self.not_enrolled),
        }


def fleet_of(
    hosts: Iterable[FleetHost], config_maps: Mapping[str, Json | None], lease: Json | None, at: datetime
) -> Fleet:
    """`hosts` are made of all Nodes, by `host_of`. `config_maps` are ours, by name: `leader`, `enrolled`, `control` and
    `budget` are read, and each may be missing."""
    leadership = leadership_of(lease, config_maps.get(LEADER), at)
    control = parse_control(_data(config_maps, CONTROL))
    enrolled = {name for name in _data(config_maps, ENROLLED) or {} if NAME.pattern.fullmatch(name)}
    status = leadership.status if isinstance(leadership.status, LeaderStatus) else None
    told = () if status is None else status.next_actions
    budget = parse_budget((_data(config_maps, BUDGET) or {}).get(BUDGET))
    left, free_at = _budget(status, budget, at)
    found = {each.name: each for each in hosts}
    courses = {each.node: each for each in told if each.node}
    listed = (_with_course(found.get(name) or FleetHost(name, present=False), courses.get(name)) for name in enrolled)
    return Fleet(
        at_wallclock=at,
        leadership=leadership,
        control=control,
        ongoing=tuple(Ongoing(each, part_of(each, at)) for each in told),
        limits=tuple(_limits(leadership, control, left, free_at, at)),
        hosts=tuple(sorted(listed, key=lambda each: as_people_count(each.name))),
        not_enrolled=tuple(sorted(found.keys() - enrolled, key=as_people_count)),
        resets_left=left,
    )


def host_of(node: Json) -> FleetHost:
    """The host by its Node alone, as the API shows that."""
    metadata, spec, status = (node.get(key) or {} for key in ("metadata", "spec", "status"))
    annotations, labels = metadata.get("annotations") or {}, metadata.get("labels") or {}
    conditions = {each.get("type"): each for each in status.get("conditions") or ()}
    condition = conditions.get(PROTECTED) or {}
    record = parse_agent_record(annotations[AGENT]) if AGENT in annotations else None
    info = parse_agent_info(annotations.get(AGENT_INFO))
    promise = promise_in(record)
    closed_gate = record.gate.value if isinstance(record, GateClosed) else ""
    condemned = any(each.get("key") == CONDEMNED for each in spec.get("taints") or ())
    requested = Remediation.REQUESTED if EXTERNAL_REMEDIATION in annotations else Remediation.NONE
    ready = (conditions.get(READY) or {}).get("status") == "True"
    return FleetHost(
        name=str(metadata.get("name")),
        away=FREED in annotations and record is None and not ready,
        protected={"True": True, "False": False}.get(str(condition.get("status"))),
        reason=str(condition.get("reason") or ""),
        message=str(condition.get("message") or ""),
        protected_since_wallclock=parse_moment(str(condition.get("lastTransitionTime"))),
        ready=ready,
        state=_state(record),
        watchdog="" if promise is None else promise.watchdog.value,
        gate=closed_gate if promise is None else promise.gate.value,
        boot="" if record is None or isinstance(record, Unreadable) else record.boot,
        self_timeout_seconds=None if promise is None else promise.self_timeout_seconds,
        watchdog_timeout_seconds=None if promise is None else promise.watchdog_timeout_seconds,
        maintenance=record.maintenance if isinstance(record, Withdrawn) else None,
        paused=PAUSED_NODE in annotations,
        roles=tuple(sorted(label[len(ROLE) :] for label in labels if label.startswith(ROLE))),
        remediation=Remediation.RUNNING if condemned else requested,
        info=info if isinstance(info, AgentInfo) else None,
    )


def as_people_count(name: str) -> tuple[tuple[str, int], ...]:
    """A key to sort names by."""
    return tuple((text, int(number or -1)) for text, number in re.findall(r"(\D*)(\d{0,18})", name))


def _state(record: object) -> State:
    of_type: dict[type, State] = {
        Armed: State.ARMED,
        Committed: State.RESETTING,
        GateClosed: State.BOOTING,
        Withdrawn: State.WITHDRAWN,
        Unreadable: State.UNREADABLE,
    }
    return of_type.get(type(record), State.SILENT)


def _with_course(host: FleetHost, course: CourseTold | None) -> FleetHost:
    if course is None:
        return host
    if course.refused:
        return replace(host, remediation=Remediation.BLOCKED)
    if course.stage in WAITING_STAGES and host.remediation is Remediation.NONE:
        return replace(host, remediation=Remediation.REQUESTED)
    return host if course.stage in WAITING_STAGES else replace(host, remediation=Remediation.RUNNING)


def part_of(told: CourseTold, at: datetime) -> float | None:
    """How much of the promised time is over, as `Ongoing` has it."""
    if told.stage in FREED_STAGES and told.began_wallclock is not None:
        return 1.0
    if told.began_wallclock is None or told.dead_by_wallclock is None or told.stage in WAITING_STAGES:
        return None
    promised = max(1.0, (told.dead_by_wallclock - told.began_wallclock).total_seconds())
    return min(ALMOST, max(0.0, (at - told.began_wallclock).total_seconds() / promised))


def _budget(
    status: LeaderStatus | None, budget: Budget | Unreadable, at: datetime
) -> tuple[int | None, datetime | None]:
    """How many remediations may still begin, and, if none may, when the next one may."""
    if status is None or not status.resets_per_hour:
        return None, None
    if isinstance(budget, Unreadable):
        return status.resets_left, None
    seconds = [each.counts_for_seconds(int(at.timestamp())) for each in budget.beginnings]
    counted = sorted(each for each in seconds if each > 0)
    left = max(0, status.resets_per_hour - len(counted))
    return left, at + timedelta(seconds=counted[0]) if counted and not left else None


def _limits(
    leadership: Leadership, control: Control, left: int | None, free_at: datetime | None, at: datetime
) -> Iterator[Limit]:
    status = leadership.leader
    if not leadership.leads:
        yield Limit(LimitKind.NO_LEADER, leadership.sentence())
    if control.paused is not None:
        told = f"the leader is paused {paused_text(control.paused)}. To go on: pp-leader resume"
        yield Limit(LimitKind.PAUSE, told)
    order = control.maintenance
    if order is not None and (isinstance(order, Unreadable) or at < order.until_wallclock):
        told = f"all hosts are in maintenance {maintenance_text(order, at)}"
        yield Limit(LimitKind.MAINTENANCE, told, None if isinstance(order, Unreadable) else order.until_wallclock)
    if status is None:
        return
    if status.mode == "dry-run":
        yield Limit(LimitKind.DRY_RUN, "the leader only says what it would do (leader.mode is dry-run)")
    if left == 0:
        told = f"as many remediations as leader.resets_per_hour allows ({status.resets_per_hour}) have begun in an hour"
        yield Limit(LimitKind.BUDGET, f"{told}. To allow more: pp-leader resume --more NUMBER", free_at)
    if status.held:
        yield Limit(LimitKind.HELD, status.held)
    if status.trouble:
        yield Limit(LimitKind.TROUBLE, status.trouble)


def _data(config_maps: Mapping[str, Json | None], name: str) -> Any:
    return (config_maps.get(name) or {}).get("data")


def _rendered(moment: datetime | None) -> str | None:
    return None if moment is None else render_moment(moment)
