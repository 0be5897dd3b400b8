"""The reports on each course: a journal line, Events and a line of history whenever a course has come further."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Callable

from pp_hostd.frozen import frozen, replace
from pp_hostd.kube.events import About
from pp_hostd.kube.resources import MACHINES, NODES
from pp_hostd.leader.interfaces import Requester
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.registry import REQUESTERS
from pp_hostd.leader.remedies.poison_pill.memory import wait_seconds
from pp_hostd.leader.steps.port import LeaderStep, OnlyReads
from pp_hostd.leader.timeline import FINISHED as FINISHED  # those who read its reports need it
from pp_hostd.model.leader_status import CourseTold, Told
from pp_hostd.model.observed import Observed
from pp_hostd.model.promise import promise_in
from pp_hostd.model.settings import Settings
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.metric import Durations, Metric, gauge

TELL_AGAIN_SECONDS = 10.0
_NOT_BEGUN = (Stage.HELD, Stage.OVER_BUDGET)
_BEFORE_THE_WAIT = (Stage.CONDEMNING, Stage.ACKNOWLEDGING)
_Key = tuple[str, str, str]


@frozen
class _Followed:
    """A course as it is now; the times are when this stage, and all of it, began, and when `told`, the last sentence
    about it, was told. Of a remediation, `remedied_wallclock` is when nothing held it back any more, and
    `dead_by_wallclock` by when its host is certainly dead."""

    next_action: NextAction
    since_at: float
    since_wallclock: datetime
    began_at: float
    told_at: float
    told: str
    remedied_wallclock: datetime | None = None
    dead_by_wallclock: datetime | None = None


class ProgressEvents:
    """`event` is told an object, a reason, a sentence, and whether it is a warning; `note` a line of history."""

    def __init__(
        self,
        settings: Settings,
        journal: Journal,
        event: Callable[[About, str, str, bool], None],
        note: Callable[[Told], None],
        clock: Callable[[], float],
        wallclock: Callable[[], datetime],
        requesters: Sequence[Requester] = REQUESTERS,
    ) -> None:
        self._settings, self._requesters = settings, requesters
        self._journal, self._event, self._note = journal, event, note
        self._clock, self._wallclock = clock, wallclock
        self._followed: dict[_Key, _Followed] = {}
        self._took, self._stages_took = Durations(), {stage: Durations() for stage in Stage}

    def tell(self, next_actions: tuple[NextAction, ...], observed: Observed) -> None:
        """Tells the changes since the last time."""
        present = {
            (next_action.of, next_action.node, next_action.machine_key): next_action
            for next_action in next_actions
            if next_action.refused or not next_action.quiet
        }
        for key, next_action in present.items():
            self._follow(key, next_action, observed)
        for key in [key for key in self._followed if key not in present]:
            self._finish(self._followed.pop(key), observed)

    def next_actions(self) -> tuple[CourseTold, ...]:
        """As the status shows them."""
        now, wallclock = self._clock(), self._wallclock()
        return tuple(_told(each, now, wallclock) for each in self._followed.values())

    def metrics(self) -> Iterator[Metric]:
        count = Counter(each.next_action.stage for each in self._followed.values())
        refused = sum(each.next_action.refused for each in self._followed.values())
        in_stages = [({"stage": stage.value}, count[stage]) for stage in Stage]
        took = [({"stage": stage.value}, durations) for stage, durations in self._stages_took.items()]
        yield Metric("pp_leader_nodes", "Nodes that the leader works on, by stage.", "gauge", in_stages)
        yield gauge("pp_leader_refused", "Nodes that are blocked and need an operator.", refused)
        text = "How long each stage of a remediation took that has ended in this term."
        yield Metric("pp_leader_stage_seconds", text, "histogram", took)
        text = "How long remediations took that have ended in this term, from the request to the end."
        yield Metric("pp_leader_remediation_seconds", text, "histogram", [({}, self._took)])

    def _follow(self, key: _Key, next_action: NextAction, observed: Observed) -> None:
        before = self._followed.get(key)
        now = self._clock()
        if before is not None and before.next_action.stage is next_action.stage:
            news = self._is_news(next_action, before, now)
            self._followed[key] = replace(before, next_action=next_action)
            if news:
                self._followed[key] = replace(before, next_action=next_action, told_at=now, told=next_action.sentence)
        else:
            news = True
            if before is not None:
                self._stages_took[before.next_action.stage].observe(now - before.since_at)
            began_at = now if before is None else before.began_at
            dates = (None, None) if before is None else (before.remedied_wallclock, before.dead_by_wallclock)
            told = next_action.sentence
            self._followed[key] = _Followed(next_action, now, self._wallclock(), began_at, now, told, *dates)
        self._followed[key] = self._dated(self._followed[key], observed)
        if news:
            self._say(self._followed[key], next_action.stage.value, next_action.sentence, observed)

    def _dated(self, followed: _Followed, observed: Observed) -> _Followed:
        """With when its remediation began, and when its host is dead by: first as the Node promises, then as the leader
        waits."""
        next_action, wallclock = followed.next_action, self._wallclock()
        if next_action.of or next_action.stage in _NOT_BEGUN:
            return followed
        began, dead_by = followed.remedied_wallclock or wallclock, followed.dead_by_wallclock
        if next_action.stage is Stage.WAITING and next_action.due_at is not None:
            dead_by = wallclock + timedelta(seconds=round(next_action.due_at - self._clock()))
        elif next_action.stage in _BEFORE_THE_WAIT:
            seen = observed.nodes.get(next_action.node)
            promise = None if seen is None else promise_in(seen.node.agent)
            dead_by = began + timedelta(seconds=wait_seconds(self._settings, promise)) if promise else None
        return replace(followed, remedied_wallclock=began, dead_by_wallclock=dead_by)

    def _is_news(self, next_action: NextAction, before: _Followed, now: float) -> bool:
        """Tells whether to report it: a write, a refusal, or another sentence than the one that was reported at least
        TELL_AGAIN_SECONDS ago. A step that keeps failing is one refusal."""
        changed = next_action.sentence != before.told
        if next_action.refused and before.next_action.refused:
            return changed
        if _writes(next_action) not in (None, _writes(before.next_action)):
            return True
        return changed and (next_action.refused or now >= before.told_at + TELL_AGAIN_SECONDS)

    def _finish(self, followed: _Followed, observed: Observed) -> None:
        now = self._clock()
        self._stages_took[followed.next_action.stage].observe(now - followed.since_at)
        self._took.observe(now - followed.began_at)
        self._say(followed, FINISHED, "nothing is left to do", observed)

    def _say(self, followed: _Followed, stage: str, sentence: str, observed: Observed) -> None:
        next_action = followed.next_action
        warning = next_action.refused and stage != FINISHED
        priority = Priority.WARNING if warning else Priority.NOTICE
        name = next_action.node or next_action.machine_key or next_action.of
        line = f"{name}: {sentence}"
        self._journal.say(
            Message.COURSE, line, priority, node=next_action.node, machine=next_action.machine_key, stage=stage
        )
        self._note(Told(self._wallclock(), name, stage, sentence, followed.dead_by_wallclock))
        reason = "".join(word.capitalize() for word in ("refused" if warning else stage).split())
        for about in self._about(next_action, observed):
            self._event(about, reason, sentence, warning)

    def _about(self, next_action: NextAction, observed: Observed) -> Iterator[About]:
        seen, machine = observed.nodes.get(next_action.node), observed.machines.get(next_action.machine_key)
        for requester in self._requesters:
            for kind, namespace, name, uid in requester.about(observed, next_action):
                yield About(kind, namespace, name, uid)
        if next_action.node:  # of one that is missing under its name, as kubelets do
            yield About(NODES, None, next_action.node, next_action.node if seen is None else seen.node.uid)
        if machine is not None and machine.machine.namespace:
            found = machine.machine
            yield About(MACHINES[self._settings.api.machines][0], found.namespace, found.name, found.uid)


def _writes(next_action: NextAction) -> type[LeaderStep] | None:
    """Returns the type of its step; None if there is no step, or the step writes nothing. Each write is told once."""
    step = next_action.step
    return None if step is None or isinstance(step, OnlyReads) else type(step)


def _told(followed: _Followed, now: float, wallclock: datetime) -> CourseTold:
    next_action = followed.next_action
    due_in = None if next_action.due_at is None else timedelta(seconds=round(next_action.due_at - now))
    return CourseTold(
        next_action.node,
        next_action.machine_key,
        next_action.stage.value,
        next_action.sentence,
        next_action.refused,
        followed.since_wallclock,
        None if due_in is None else (wallclock + due_in).replace(microsecond=0),
        followed.remedied_wallclock,
        followed.dead_by_wallclock,
    )
