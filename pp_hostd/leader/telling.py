"""What people are told of each course: a journal line, Events and a line of history whenever one has come further."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.kube.events import About
from pp_hostd.kube.resources import NODES, REMEDIATIONS, Resource
from pp_hostd.model.case import Course, Stage
from pp_hostd.model.leader_status import CourseTold, Told
from pp_hostd.model.observed import Observed
from pp_hostd.model.remedy import AskPeers, Inspect, Remedy
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.metric import Metric

FINISHED = "finished"
TELL_AGAIN_SECONDS = 10.0
_Key = tuple[str, str, str]


@frozen
class _Followed:
    """A course as it is now; the times are when this stage, and all of it, began, and when it was last told."""

    course: Course
    since_at: float
    since_wallclock: datetime
    began_at: float
    told_at: float


class Telling:
    """`event` is told an object, a reason, a sentence, and whether it is a warning; `note` a line of history."""

    def __init__(
        self,
        machines: Resource,
        journal: Journal,
        event: Callable[[About, str, str, bool], None],
        note: Callable[[Told], None],
        clock: Callable[[], float],
        wallclock: Callable[[], datetime],
    ) -> None:
        self._machines = machines
        self._journal, self._event, self._note = journal, event, note
        self._clock, self._wallclock = clock, wallclock
        self._followed: dict[_Key, _Followed] = {}
        self._stage_seconds = dict.fromkeys(Stage, 0.0)
        self._finished, self._finished_seconds = 0, 0.0

    def tell(self, courses: tuple[Course, ...], observed: Observed) -> None:
        """What has changed since the last time."""
        present = {(course.of, course.node, course.subject): course for course in courses}
        for key, course in present.items():
            self._follow(key, course, observed)
        for key in [key for key in self._followed if key not in present]:
            self._finish(self._followed.pop(key), observed)

    def courses(self) -> tuple[CourseTold, ...]:
        """As the status shows them."""
        now, wallclock = self._clock(), self._wallclock()
        return tuple(_told(each, now, wallclock) for each in self._followed.values())

    def metrics(self) -> Iterator[Metric]:
        now = self._clock()
        count = dict.fromkeys(Stage, 0)
        seconds = dict(self._stage_seconds)
        for each in self._followed.values():
            count[each.course.stage] += 1
            seconds[each.course.stage] += now - each.since_at
        refused = sum(each.course.refused for each in self._followed.values())
        in_stages = [({"stage": stage.value}, float(number)) for stage, number in count.items()]
        spent = [({"stage": stage.value}, round(figure, 3)) for stage, figure in seconds.items()]
        yield Metric("pp_leader_nodes", "Nodes that are worked on, by how far they are.", "gauge", in_stages)
        yield Metric("pp_leader_refused", "Nodes that wait for a person.", "gauge", [({}, float(refused))])
        yield Metric("pp_leader_stage_seconds_total", "Time that nodes spent in each stage.", "counter", spent)
        done, took = "Nodes that were worked on and are done.", "Time that these took in all."
        yield Metric("pp_leader_finished_total", done, "counter", [({}, self._finished)])
        yield Metric("pp_leader_finished_seconds_total", took, "counter", [({}, self._finished_seconds)])

    def _follow(self, key: _Key, course: Course, observed: Observed) -> None:
        before = self._followed.get(key)
        now = self._clock()
        if before is not None and before.course.stage is course.stage:
            news = self._is_news(course, before, now)
            told_at = now if news else before.told_at
            self._followed[key] = replace(before, course=course, told_at=told_at)
        else:
            news = True
            if before is not None:
                self._stage_seconds[before.course.stage] += now - before.since_at
            began_at = now if before is None else before.began_at
            self._followed[key] = _Followed(course, now, self._wallclock(), began_at, now)
        if news:
            self._say(course, course.stage.value, course.sentence, observed)

    def _is_news(self, course: Course, before: _Followed, now: float) -> bool:
        """Every write, every refusal, and what keeps it waiting, if that lasts. What keeps failing is one refusal."""
        if course.refused and before.course.refused:
            return course.sentence != before.course.sentence
        if _writes(course) not in (None, _writes(before.course)):
            return True
        changed = course.sentence != before.course.sentence
        return changed and (course.refused or now >= before.told_at + TELL_AGAIN_SECONDS)

    def _finish(self, followed: _Followed, observed: Observed) -> None:
        now = self._clock()
        self._stage_seconds[followed.course.stage] += now - followed.since_at
        self._finished += 1
        self._finished_seconds += now - followed.began_at
        sentence = f"nothing more is to be done about {followed.course.key}"
        self._say(followed.course, FINISHED, sentence, observed)

    def _say(self, course: Course, stage: str, sentence: str, observed: Observed) -> None:
        warning = course.refused and stage != FINISHED
        priority = Priority.WARNING if warning else Priority.NOTICE
        line = f"{course.node or course.subject}: {sentence}"
        self._journal.say(Message.COURSE, line, priority, node=course.node, machine=course.subject, stage=stage)
        self._note(Told(self._wallclock(), course.node or course.subject, stage, sentence))
        reason = "".join(word.capitalize() for word in ("refused" if warning else stage).split())
        for about in self._about(course, observed):
            self._event(about, reason, sentence, warning)

    def _about(self, course: Course, observed: Observed) -> Iterator[About]:
        seen, machine = observed.nodes.get(course.node), observed.machines.get(course.subject)
        remediation = observed.remediations.get(course.of)
        if remediation is not None:
            kind = REMEDIATIONS[remediation.kind.name][0]
            yield About(kind, remediation.namespace, remediation.name, remediation.uid)
        if course.node:  # of one that is missing under its name, as kubelets do
            yield About(NODES, None, course.node, course.node if seen is None else seen.node.uid)
        if machine is not None and machine.machine.namespace:
            found = machine.machine
            yield About(self._machines, found.namespace, found.name, found.uid)


def _writes(course: Course) -> type[Remedy] | None:
    """What it is about to write, if it is: each write is told once."""
    return None if isinstance(course.step, (Inspect, AskPeers)) or course.step is None else type(course.step)


def _told(followed: _Followed, now: float, wallclock: datetime) -> CourseTold:
    course = followed.course
    due_in = None if course.due_at is None else timedelta(seconds=round(course.due_at - now))
    return CourseTold(
        course.node,
        course.subject,
        course.stage.value,
        course.sentence,
        course.refused,
        followed.since_wallclock,
        None if due_in is None else (wallclock + due_in).replace(microsecond=0),
    )
