"""The automaton of fencing, as the proposal's sentences have it: the next move of a flow. Pure; it runs no method.

new      isolation runs once the node has been bad for long enough
running  it is isolated: if it does not become well by itself, power management runs
done     it was power-cycled, or is well: once it is well, recovery runs
final    it is well and recovered: the object goes after a while
error    a step has failed: the flow begins again, and after so many times a person has to act
"""

from __future__ import annotations

import enum
from typing import Union

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.remedies.node_fence.config_maps import ClusterConfig
from pp_hostd.leader.remedies.node_fence.fence import (
    FENCED,
    GAVE_UP,
    RECOVERED,
    Outcome,
    Progress,
    State,
    Status,
    Step,
)

KEPT_SECONDS = 300.0
"""So long a flow that is over can be looked at."""


class Work(enum.Enum):
    """The leader's next act in a flow where no transition is due."""

    RUN = "the methods of the step are run"
    FORGET = "the object is deleted"
    STAY = "a person has to act"


@frozen
class Wait:
    """For so many seconds more."""

    seconds: float
    sentence: str


@frozen
class Situation:
    """`is_well`: its node is Ready, and the condition that triggered the flow is gone. `needs_boot`: its workloads were
    freed, and the host still runs the boot that had them. `age_seconds` is the age of the present status."""

    is_well: bool
    needs_boot: bool
    age_seconds: float
    methods: int
    """So many methods the present step has."""
    pause_seconds: float = 0.0
    """So much longer the next method, or the next attempt of the same one, has to wait."""
    dump_seconds: float = 0.0
    """So long power management waits for a kernel that writes its dump."""
    climbs: bool = False
    """Whether the methods are a ladder: each is tried only if the one before it has not helped, or has failed."""


Move = Union[Progress, Work, Wait]


def next_move(progress: Progress, at: Situation, config: ClusterConfig) -> Move:
    """Returns the progress to be written, a wait, or the work that is next."""
    state = progress.state
    if state is State.ERROR:
        return _begin_again(progress, config)
    if state is State.FINAL:
        if progress.status is not Status.FINAL:
            return _to(progress, Step.RECOVERY, Status.FINAL)
        return Work.FORGET if at.age_seconds >= KEPT_SECONDS else Wait(KEPT_SECONDS - at.age_seconds, "it is over")
    if progress.status is Status.RUNNING:
        return _next_of_step(progress, at, config)
    if state is State.NEW:
        return _new(progress, at, config)
    if state is State.RUNNING:
        return _running(progress, at, config)
    return _done(progress, at, config)


def _new(progress: Progress, at: Situation, config: ClusterConfig) -> Move:
    """Isolation New. The threshold's period is over by now; a flow that begins again waits for the grace time."""
    if at.is_well and not (progress.id or progress.restarts or progress.cleaned):
        return Work.FORGET
    if at.is_well and not at.needs_boot:
        return _to(progress, Step.POWER_MANAGEMENT, Status.DONE)
    if progress.restarts and at.age_seconds < config.grace_seconds:
        return Wait(config.grace_seconds - at.age_seconds, "the flow begins again after the grace time")
    return _to(progress, Step.ISOLATION, Status.RUNNING)


def _running(progress: Progress, at: Situation, config: ClusterConfig) -> Move:
    """Isolation Done, or Power-Management New. Where workloads were freed, only another boot makes the node well."""
    if at.is_well and not at.needs_boot:
        return _to(progress, Step.POWER_MANAGEMENT, Status.DONE)
    if progress.step is Step.POWER_MANAGEMENT:
        return _to(progress, Step.POWER_MANAGEMENT, Status.RUNNING)
    seconds = (0.0 if at.climbs else config.grace_seconds) + at.dump_seconds
    if at.age_seconds < seconds:
        return Wait(
            seconds - at.age_seconds, "it is isolated, and may become Ready by itself until power management begins"
        )
    return _to(progress, Step.POWER_MANAGEMENT, Status.NEW)


def _done(progress: Progress, at: Situation, config: ClusterConfig) -> Move:
    """Power-Management Done, or Recovery New."""
    if progress.step is Step.RECOVERY:
        return _to(progress, Step.RECOVERY, Status.RUNNING)
    if at.is_well and not at.needs_boot:
        return _to(progress, Step.RECOVERY, Status.NEW)
    if at.age_seconds < config.boot_seconds:
        return Wait(config.boot_seconds - at.age_seconds, "waiting until the node is Ready")
    lacks = "has not booted since its workloads were freed" if at.is_well else "is not Ready"
    return failed(progress, f"the node {lacks}, {config.boot_seconds:g} s after power management")


def _next_of_step(progress: Progress, at: Situation, config: ClusterConfig) -> Move:
    """A step whose methods run: the next one, the same one again, the end of the step, or its failure."""
    last = progress.methods[-1] if progress.methods else None
    if last is not None and last.outcome is Outcome.RUNNING:
        return Work.RUN
    if progress.step is not Step.RECOVERY and at.is_well and not at.needs_boot:
        touched = progress.methods or progress.restarts or progress.cleaned or progress.step is not Step.ISOLATION
        return _to(progress, Step.POWER_MANAGEMENT, Status.DONE) if touched else Work.FORGET
    if at.pause_seconds > 0:
        return Wait(at.pause_seconds, "waiting before the next method")
    climbs = at.climbs and len(progress.methods) < at.methods
    if last is not None and last.outcome is Outcome.FAILED:
        if progress.retries < config.step_retries and last.name not in progress.refuted:
            again = replace(last, outcome=Outcome.RUNNING, tried=last.tried + 1, job="")
            return replace(progress, retries=progress.retries + 1, methods=(*progress.methods[:-1], again))
        if not climbs:
            return failed(progress, f"method {last.name} of {progress.step.value} has failed: {last.message}")
    return Work.RUN if len(progress.methods) < at.methods else _to(progress, progress.step, Status.DONE)


def failed(progress: Progress, sentence: str) -> Progress:
    return replace(_to(progress, progress.step, Status.ERROR), reason=sentence)


def _begin_again(progress: Progress, config: ClusterConfig) -> Move:
    if progress.gave_up:
        return Work.STAY
    if progress.restarts >= config.giveup_retries:
        told = f"the flow has failed {progress.restarts + 1} times: {progress.reason}"
        return replace(progress, conditions=progress.with_condition(GAVE_UP, "TooManyRestarts", told))
    return replace(_to(progress, Step.ISOLATION, Status.NEW), restarts=progress.restarts + 1)


def begun_again(progress: Progress, reason: str) -> Progress:
    """The flow from its beginning, by a person's word. With another id, no outcome and no Job of before counts."""
    fresh = replace(
        _to(progress, Step.ISOLATION, Status.NEW), restarts=0, id=progress.id + 1, reason=reason, refuted=()
    )
    return replace(fresh, conditions=tuple(each for each in progress.conditions if each[0] != GAVE_UP))


def _to(progress: Progress, step: Step, status: Status) -> Progress:
    """The same flow in this status, which begins now. The methods of a step go when the next one begins."""
    conditions = progress.conditions
    if step is Step.POWER_MANAGEMENT and status is Status.DONE and progress.methods and progress.step is step:
        conditions = progress.with_condition(FENCED, "PowerManagementDone", "all methods of power management are done")
    if status is Status.FINAL:
        conditions = progress.with_condition(RECOVERED, "RecoveryDone", "the node is well, and recovered")
    fresh = status in (Status.NEW, Status.RUNNING) and (progress.step, progress.status) != (step, Status.NEW)
    begins = fresh or progress.step is not step
    return replace(
        progress,
        step=step,
        status=status,
        retries=0 if begins else progress.retries,
        methods=() if begins or status is Status.RUNNING else progress.methods,
        conditions=conditions,
    )
