"""The active leader's report on itself and its work: the ConfigMap `leader`, for `pp-leader status` and its like."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from pp_hostd.frozen import frozen
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import MAX_CONFIG_MAP_CHARACTERS, Fields, Form, Unreadable, document, read, render

WORDS = Form("text", re.compile("(?s).{0,4000}"))
MAX_HISTORY = 200


@frozen
class CourseTold:
    """The leader's course of action for one node; the times are for people.

    `began_wallclock` is when nothing held the remediation back any more, `dead_by_wallclock` by when the host is
    certainly dead, as it promised: then its workloads are freed. None where that is not so, or not known.
    """

    node: str
    machine: str
    stage: str
    sentence: str
    refused: bool
    since_wallclock: datetime
    due_wallclock: datetime | None
    began_wallclock: datetime | None = None
    dead_by_wallclock: datetime | None = None


@frozen
class LeaderStatus:
    """`nodes` are in the roster of that version; 0 before there is one."""

    leader: str
    since_wallclock: datetime
    mode: str
    nodes: int
    roster: int
    trouble: str
    next_actions: tuple[CourseTold, ...]
    certificate_ends_wallclock: datetime | None = None
    """When the leader's client certificate ends; None if it shows none."""
    resets_per_hour: int = 0
    resets_left: int = 0
    """How many remediations may begin in an hour, and how many of these still may."""
    machine_health_checks: str = ""
    """The API whose MachineHealthChecks it carries out, as api.machines names it; empty if it does not."""
    held: str = ""
    """The reason why the leader's own valves let no further remediation begin; empty if one may."""

    def render(self) -> str:
        return render(
            {
                "leader": self.leader,
                "since": render_moment(self.since_wallclock),
                "mode": self.mode,
                "nodes": self.nodes,
                "roster": self.roster,
                "trouble": self.trouble,
                "courses": [_course_fields(next_action) for next_action in self.next_actions],
                "certificate_ends": _rendered(self.certificate_ends_wallclock),
                "resets_per_hour": self.resets_per_hour,
                "resets_left": self.resets_left,
                "machine_health_checks": self.machine_health_checks,
                "held": self.held,
            }
        )


@frozen
class Told:
    """One line of the history; `dead_by_wallclock` as it was then."""

    when_wallclock: datetime
    node: str
    stage: str
    sentence: str
    dead_by_wallclock: datetime | None = None


def _course_fields(next_action: CourseTold) -> dict[str, object]:
    return {
        "node": next_action.node,
        "machine": next_action.machine,
        "stage": next_action.stage,
        "sentence": next_action.sentence,
        "refused": next_action.refused,
        "since": render_moment(next_action.since_wallclock),
        "due": _rendered(next_action.due_wallclock),
        "began": _rendered(next_action.began_wallclock),
        "dead_by": _rendered(next_action.dead_by_wallclock),
    }


def _rendered(moment: datetime | None) -> str | None:
    return None if moment is None else render_moment(moment)


def render_history(history: Sequence[Told]) -> str:
    """The newest lines, oldest first."""
    return render({"lines": [_told_fields(told) for told in history[-MAX_HISTORY:]]})


def _told_fields(told: Told) -> dict[str, object]:
    dead_by = {} if told.dead_by_wallclock is None else {"dead_by": render_moment(told.dead_by_wallclock)}
    when = render_moment(told.when_wallclock)
    return {"when": when, "node": told.node, "stage": told.stage, "sentence": told.sentence, **dead_by}


def parse_leader_status(text: object) -> LeaderStatus | Unreadable:
    return read("the leader's status", _status, text)


def parse_history(text: object) -> tuple[Told, ...] | Unreadable:
    return read("the leader's history", _history, text)


def _status(text: object) -> LeaderStatus:
    fields = document(text, MAX_CONFIG_MAP_CHARACTERS)
    return LeaderStatus(
        leader=fields.text("leader", WORDS),
        since_wallclock=fields.moment("since"),
        mode=fields.text("mode", WORDS),
        nodes=_number(fields, "nodes"),
        roster=_number(fields, "roster"),
        trouble=fields.text("trouble", WORDS),
        next_actions=tuple(_course(Fields(next_action, "a course")) for next_action in fields.elements("courses")),
        certificate_ends_wallclock=_moment(fields, "certificate_ends"),
        resets_per_hour=_number(fields, "resets_per_hour"),
        resets_left=_number(fields, "resets_left"),
        machine_health_checks=str(fields.anything("machine_health_checks") or ""),
        held=str(fields.anything("held") or ""),
    )


def _moment(fields: Fields, key: str) -> datetime | None:
    return fields.moment(key) if fields.anything(key) is not None else None


def _number(fields: Fields, key: str) -> int:
    """An older leader does not say it."""
    return fields.count(key) if fields.anything(key) not in (0, None) else 0


def _course(fields: Fields) -> CourseTold:
    return CourseTold(
        node=fields.text("node", WORDS),
        machine=fields.text("machine", WORDS),
        stage=fields.text("stage", WORDS),
        sentence=fields.text("sentence", WORDS),
        refused=fields.anything("refused") is True,
        since_wallclock=fields.moment("since"),
        due_wallclock=_moment(fields, "due"),
        began_wallclock=_moment(fields, "began"),
        dead_by_wallclock=_moment(fields, "dead_by"),
    )


def _history(text: object) -> tuple[Told, ...]:
    fields = document(text, MAX_CONFIG_MAP_CHARACTERS)
    return tuple(_told(Fields(line, "a line")) for line in fields.elements("lines"))


def _told(fields: Fields) -> Told:
    when, node = fields.moment("when"), fields.text("node", WORDS)
    stage, sentence = fields.text("stage", WORDS), fields.text("sentence", WORDS)
    return Told(when, node, stage, sentence, _moment(fields, "dead_by"))
