"""The actions of MachineHealthChecks: their status, what Machines are told, and the remediation of unhealthy ones.

Where a health check requests a remediation, the leader's limits and all certainty are those of any other request. Where
it deletes a Machine, or leaves it to its owner, the limits count here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.facts.ages import Ages, Sightings
from pp_hostd.leader.node_memory import NextAction, NodeMemory, Stage, Term
from pp_hostd.leader.plan.view import Electorates, View
from pp_hostd.leader.requests.health_checks.judge import Health, Opinion
from pp_hostd.leader.requests.health_checks.steps import NOT_BACK
from pp_hostd.leader.requests.machine_health_checks.check import MachineHealthCheck
from pp_hostd.leader.requests.machine_health_checks.facts import MachineHealthSeen
from pp_hostd.leader.requests.machine_health_checks.judge import Judgement, Remediations, judged, targets
from pp_hostd.leader.requests.machine_health_checks.outcome import (
    ObjectTold,
    Outcome,
    conditions_for,
    notices,
    paused,
    standing_still,
    summed_up,
)
from pp_hostd.leader.requests.machine_health_checks.remediation import (
    Counts,
    Course,
    Held,
    ToOwner,
    course,
    quorum_trouble,
)
from pp_hostd.leader.requests.machine_health_checks.remediations import before_this_term, under_remediation
from pp_hostd.leader.requests.machine_health_checks.rules import Rules
from pp_hostd.leader.requests.machine_health_checks.steps import (
    JoinCluster,
    LookedAt,
    MakeObject,
    Notice,
    ObjectNews,
    RemoveMachine,
    RemoveObjects,
    SetStatus,
    Tell,
    TellMachine,
)
from pp_hostd.leader.steps.port import LeaderStep, StepNews
from pp_hostd.model.keys import PAUSED_MACHINE
from pp_hostd.model.machine_details import OWNER_REMEDIATED, wish_of_cluster
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings

SETTLE_SECONDS = 15.0
"""So old is a health check before the leader takes it: a controller that is there has written its status by then."""
LOOK_AGAIN_SECONDS = 30.0
"""Between two looks whether the remediation object of an unhealthy Machine is still there."""
STATUS_SECONDS = 1.0
"""Between two writes of a status at least."""
MOST_AT_ONCE = 20
"""Machines whose conditions are written at once."""
MOST_LOOKED_AT = 100
"""Machines whose objects one step looks for."""
_ALL = "machine health checks"
_Planned = tuple[NextAction, NodeMemory]


@frozen
class HealthMemory:
    """The last judgements of this term by the paths of checks, and when the next one is due. `settled` are the checks
    that are old enough. `changes` is negative before the first look."""

    judgements: Mapping[str, Judgement] = field(default_factory=dict)
    sightings: Sightings = field(default_factory=dict)
    changes: int = -1
    due_at: float = -math.inf
    remediations: Remediations = Remediations()
    settled: frozenset[str] = frozenset()


@frozen
class Done:
    """When this was last done, and what people were told by it."""

    at: float = -math.inf
    told: str = ""


@frozen
class Looked:
    """The Machines, by uid, whose objects of this template are gone since they were healthy."""

    template: object = None
    uids: frozenset[str] = frozenset()


def after_news(memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
    for each in news:
        if isinstance(each, ObjectNews):
            memory = memory.with_part(ObjectTold(True, each.reason, each.sentence))
        elif isinstance(each, LookedAt):
            looked = memory.part(Looked)
            memory = memory.with_part(replace(looked, uids=looked.uids | each.uids))
    return memory


def machine_health_checks(
    settings: Settings, observed: Observed, term: Term, next_actions: Sequence[NextAction], now: float
) -> Iterator[_Planned]:
    """Yields all actions of all health checks. They are told by Events and by the status of the checks alone."""
    seen, memory = observed.part(MachineHealthSeen), term.memories.get(_ALL, NodeMemory())
    before, wallclock_seconds = memory.part(HealthMemory), term.draw.wallclock_seconds
    first = before.changes < 0
    known = before_this_term(observed, seen, now, wallclock_seconds) if first else before.remediations
    remediations = under_remediation(known, observed, next_actions, seen, now)
    health = remembered(before, seen, remediations, now, wallclock_seconds)
    turn = _Turn(settings, observed, term, seen, health, now)
    for check in seen.checks.values():
        if check.writer:
            yield turn.refused(check)
    outcomes = dict(turn.outcomes())
    yield from turn.written(outcomes)
    yield from turn.overlapping(outcomes)
    yield from turn.remediated(outcomes)
    yield from turn.not_back(outcomes)
    yield from turn.looked(outcomes)
    due_at = None if health.due_at == math.inf else health.due_at
    yield NextAction("", "", Stage.REMEDIATING, "judging", due_at=due_at, of=_ALL, quiet=True), memory.with_part(health)


def remembered(
    health: HealthMemory, seen: MachineHealthSeen, remediations: Remediations, now: float, wallclock_seconds: float
) -> HealthMemory:
    """Judges again if something has changed, or time has passed that matters."""
    if health.changes == seen.changes and now < health.due_at and remediations == health.remediations:
        return health
    ages = Ages(health.sightings, now, wallclock_seconds)
    judgements, settled, due_at = {}, set(), math.inf
    for path, check in seen.checks.items():
        age_seconds = ages.age_seconds(check.uid, "", "", check.created_wallclock)
        if age_seconds < SETTLE_SECONDS:
            due_at = min(due_at, now + SETTLE_SECONDS - age_seconds)
            continue
        settled.add(path)
        if check.writer or not isinstance(check.rules, Rules):
            continue
        selected = targets(check, check.rules, seen, remediations)
        judgements[path] = judged(check, check.rules, selected, ages)
        due_at = min(due_at, judgements[path].due_at)
    return HealthMemory(judgements, ages.seen, seen.changes, due_at, remediations, frozenset(settled))


def standstill(check: MachineHealthCheck, observed: Observed) -> Outcome | None:
    """The outcome where no Machine is judged: the spec can't be read, somebody has paused the check, or its Cluster is
    missing. None if its Machines are judged."""
    if isinstance(check.rules, Unreadable):
        return standing_still(check, "Unreadable", f"{check.rules}. Correct it")
    pauses = []
    if check.cluster:
        pause, known = observed.clusters.pauses.get(check.cluster), observed.part(MachineHealthSeen).clusters
        if pause is None or isinstance(pause, Unreadable) or check.cluster not in known:
            return standing_still(check, "ClusterNotFound", wish_of_cluster(check.cluster, None))
        if pause:
            pauses.append(f"Cluster {pause} is set to true" if pause == "spec.paused" else f"Cluster bears {pause}")
    if check.paused:
        pauses.append(f"MachineHealthCheck has the {PAUSED_MACHINE} annotation")
    return paused(check, ", ".join(pauses)) if pauses else None


@dataclass
class _Turn:
    settings: Settings
    observed: Observed
    term: Term
    seen: MachineHealthSeen
    health: HealthMemory
    now: float

    def __post_init__(self) -> None:
        self._electorates = Electorates(self.observed.roster)
        self._opinions: dict[str, Opinion] = {}
        """Of all checks the worst on each Machine."""
        self._marked_by: dict[str, str] = {}
        """The check that may remediate a Machine, for each one that is unhealthy."""
        self._to_owner: dict[str, MachineHealthCheck] = {}
        self._objects: dict[str, ObjectTold] = {}
        self._deletable = 0
        """So many Machines may be deleted yet."""

    def view(self, key: str, machine_key: str = "") -> View:
        machine, memory = self.seen.machines.get(machine_key), self.term.memories.get(key, NodeMemory())
        node = "" if machine is None else machine.node
        return View(self.settings, self.observed, self._electorates, self.term, memory, node, machine_key, self.now)

    def refused(self, check: MachineHealthCheck) -> _Planned:
        told = (
            f"{check.key} is left alone: {check.writer} has written its status, and two controllers must not carry out "
            "the same health check. Stop that controller and recreate the object, or set health.machine_health_checks "
            "to false"
        )
        view = self.view(check.key)
        return replace(view.refuses(told), of=check.key), view.memory

    # Outcomes and statuses.

    def outcomes(self) -> Iterator[tuple[str, Outcome]]:
        """Of each check that the leader carries out."""
        for path, check in sorted(self.seen.checks.items()):
            known = path in self.health.settled and not check.writer
            outcome = self._outcome(path, check) if known else None
            if outcome is not None:
                yield path, outcome

    def _outcome(self, path: str, check: MachineHealthCheck) -> Outcome | None:
        """None if nothing is known yet."""
        rules, judgement = check.rules, self.health.judgements.get(path)
        if isinstance(rules, Rules) and (judgement is None or (check.cluster and self.observed.clusters.late)):
            return None
        stands_still = standstill(check, self.observed)
        if stands_still is not None or judgement is None or isinstance(rules, Unreadable):
            return stands_still
        objects = [
            self.view(f"{check.key} for {key}").memory.part(ObjectTold) for key in judgement.of(Health.UNHEALTHY)
        ]
        return summed_up(check, rules, judgement, objects)

    def written(self, outcomes: Mapping[str, Outcome]) -> Iterator[_Planned]:
        for path, outcome in outcomes.items():
            check = self.seen.checks[path]
            cluster = None if outcome.paused else self.seen.clusters.get(check.cluster)
            if cluster is not None and (check.label != cluster.name or cluster.uid not in check.owners):
                yield self._paced(check.key, JoinCluster(check, cluster), "joining its Cluster", STATUS_SECONDS)
            elif not outcome.is_told_by(check):
                step = SetStatus(check, outcome.status, outcome.conditions, notices(check, outcome))
                yield self._paced(check.key, step, "writing its status", STATUS_SECONDS)

    def overlapping(self, outcomes: Mapping[str, Outcome]) -> Iterator[_Planned]:
        """Two checks that select the same Machine: each is remediated once, by whichever comes first."""
        for path, outcome in outcomes.items():
            check, own = self.seen.checks[path], outcome.judgement.targets.keys()
            others = [each for each in outcomes if each != path and own & outcomes[each].judgement.targets.keys()]
            told = f"{', '.join(others)} also select some of its Machines: each is remediated once" if others else ""
            yield self._once(f"{check.key} beside others", Tell(check, (Notice("SameMachines", told),)), told)

    def not_back(self, outcomes: Mapping[str, Outcome]) -> Iterator[_Planned]:
        """Machines whose hosts were remediated, and have not come back in time."""
        told = {
            key: (self.seen.checks[path], said.sentence)
            for path, outcome in outcomes.items()
            for key, said in outcome.judgement.opinions.items()
            if said.not_back
        }
        for key, (check, sentence) in told.items():
            said = f"{check.key}: its host was remediated, and is not back within the start-up timeout: {sentence}"
            step = Tell(check, (Notice(NOT_BACK, said),), self.seen.machines[key])
            yield self._once(f"return of Machine {key}", step, NOT_BACK, key)

    # Remediation.

    def remediated(self, outcomes: Mapping[str, Outcome]) -> Iterator[_Planned]:
        for outcome in outcomes.values():
            for key, said in outcome.judgement.opinions.items():
                if key not in self._opinions or _rank(said) > _rank(self._opinions[key]):
                    self._opinions[key] = said
        unhealthy = sorted(key for key, said in self._opinions.items() if said.health is Health.UNHEALTHY)
        deleting = sum(each.deleting for each in self.seen.machines.values())
        self._deletable = max(0, self.settings.leader.max_at_once - deleting)
        counts = Counts(len(unhealthy))
        for path, outcome in outcomes.items():
            for key in outcome.judgement.of(Health.UNHEALTHY) if outcome.may else ():
                if key not in self._marked_by:
                    self._marked_by[key] = path
                    yield from self._course(self.seen.checks[path], key, outcome.judgement.opinions[key], counts)
        if self.settings.api.machines == "cluster-api":
            yield from self._machines_told()

    def _course(self, check: MachineHealthCheck, machine_key: str, said: Opinion, counts: Counts) -> Iterator[_Planned]:
        machine, rules, key = self.seen.machines[machine_key], check.rules, f"{check.key} for {machine_key}"
        view = self.view(key, machine_key)
        found = None if isinstance(rules, Unreadable) else course(check, rules, machine, said, view, counts)
        if isinstance(found, RemoveMachine):
            found = self._unless_needed(found)
        if isinstance(found, MakeObject):
            self._objects[machine_key] = view.memory.part(ObjectTold)
            yield self._paced(key, found, said.sentence, LOOK_AGAIN_SECONDS, machine_key)
        elif isinstance(found, ToOwner):
            self._to_owner[machine_key] = check
        elif isinstance(found, Tell):
            yield self._once(key, found, found.notices[0].sentence, machine_key)
        elif isinstance(found, Held):
            waits = (
                view.refuses(found.sentence) if found.refused else view.waits(Stage.HELD, found.sentence, found.due_at)
            )
            told = f"{key}: {found.sentence}"
            yield replace(waits, of=key, quiet=not found.refused, sentence=told), view.memory
        elif found is not None:
            does = view.does(Stage.REMEDIATING, found, f"{key}: {said.sentence}")
            yield replace(does, of=key, quiet=True), view.memory

    def _unless_needed(self, step: RemoveMachine) -> Course:
        """Only a deletion that is carried out takes one of those that may be under way at once."""
        trouble = quorum_trouble(step.machine, self.seen, self.health.remediations)
        if trouble:
            return Held(trouble, refused=True)
        if not self._deletable:
            most = self.settings.leader.max_at_once
            return Held(f"other Machines are being deleted, and leader.max_at_once is {most}")
        self._deletable -= 1
        return step

    def _machines_told(self) -> Iterator[_Planned]:
        """Conditions of Machines, of unhealthy ones first."""
        planned = 0
        for key, said in sorted(self._opinions.items(), key=lambda each: -_rank(each[1])):
            machine = self.seen.machines[key]
            wanted = conditions_for(machine, said, to_owner=key in self._to_owner, objects=self._objects.get(key))
            if not any(each.differs_from(machine.lists) for each in wanted) or planned == MOST_AT_ONCE:
                continue
            planned += 1
            by = self._marked_by.get(key, "")
            told = f"Machine {key} has been marked as unhealthy by {by}"
            notices = (Notice("MachineMarkedUnhealthy", told, warning=False),) if by else ()
            begins = any(each.type == OWNER_REMEDIATED for each in wanted)
            check = self._to_owner.get(key) if begins else None
            of, step = f"conditions of Machine {key}", TellMachine(machine, wanted, notices, check)
            view = self.view(of, key)
            yield replace(view.does(Stage.REMEDIATING, step, of), of=of, quiet=True), view.memory

    def looked(self, outcomes: Mapping[str, Outcome]) -> Iterator[_Planned]:
        """Remediation objects of Machines that are healthy again go, also those that another leader's term has left."""
        for path, outcome in outcomes.items():
            check = self.seen.checks[path]
            template = check.rules.template if isinstance(check.rules, Rules) else None
            if template is None:
                continue
            key = f"{check.key} objects"
            view = self.view(key)
            healthy = [
                self.seen.machines[each]
                for each in outcome.judgement.of(Health.HEALTHY)
                if self._opinions[each].health is Health.HEALTHY
            ]
            before = view.memory.part(Looked)
            uids = before.uids & {each.uid for each in healthy} if before.template == template else frozenset()
            memory = view.memory.with_part(Looked(template, uids))
            left = tuple(each for each in healthy if each.uid not in uids)[:MOST_LOOKED_AT]
            told = view.waits(Stage.CLEARING, "no object is left of Machines that are healthy")
            if left:
                told = view.does(
                    Stage.CLEARING, RemoveObjects(check, template, left), f"{key}: looking for objects that are left"
                )
            yield replace(told, of=key, quiet=True), memory

    # How steps are planned.

    def _paced(
        self, key: str, step: LeaderStep, sentence: str, pause_seconds: float, machine_key: str = ""
    ) -> _Planned:
        view = self.view(key, machine_key)
        due_at = view.memory.part(Done).at + pause_seconds
        if self.now < due_at and not view.memory.trouble:
            return replace(view.waits(Stage.REMEDIATING, sentence, due_at), of=key, quiet=True), view.memory
        memory = view.memory.with_part(Done(self.now))
        return replace(view.does(Stage.REMEDIATING, step, f"{key}: {sentence}"), of=key, quiet=True), memory

    def _once(self, key: str, step: Tell, told: str, machine_key: str = "") -> _Planned:
        """Told once, until it is something else."""
        view = self.view(key, machine_key)
        memory = view.memory.with_part(Done(self.now, told))
        if not told or view.memory.part(Done).told == told:
            return replace(view.waits(Stage.HELD, told or "nothing to tell"), of=key, quiet=True), memory
        return replace(view.does(Stage.HELD, step, f"{key}: {told}"), of=key, quiet=True), memory


def _rank(said: Opinion) -> int:
    return (Health.HEALTHY, Health.PENDING, Health.UNHEALTHY).index(said.health)
