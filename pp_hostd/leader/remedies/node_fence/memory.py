"""A term's memory of a flow: the methods that this leader has run, the proof that they gave, the kubelet's silence.

Proof is never stored. Whoever leads next runs the method again, which first asks the device how things stand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.node_memory import NodeMemory
from pp_hostd.leader.remedies.node_fence.configuration import Fences
from pp_hostd.leader.remedies.node_fence.fence import NodeFence, Outcome, Step
from pp_hostd.leader.steps.port import StepNews
from pp_hostd.model.observed import NodeSeen

LEAST_SILENT_SECONDS = 20.0
"""Two renewal periods of a kubelet's Lease, which it renews every 10 s if nobody has told it otherwise."""
PROOF_SECONDS = 60.0
"""A proof that is older is not acted upon: the device is asked again first."""


class RunKey(NamedTuple):
    """One attempt of one method of a flow: Jobs are named after it, and its news bear it."""

    fence: str
    """The uid of the NodeFence."""
    id: int
    """Of the flow, which gets another one if a person has it begin again."""
    restarts: int
    step: Step
    method: int
    tried: int


@frozen
class Proof:
    """A method of this term has shown that power or storage is cut, by a read that began at `began_at`."""

    fences: Fences
    began_at: float
    sentence: str
    storage: tuple[str, ...] = ()


@frozen
class MethodEnded:
    """The outcome of a method. `proof` is None if it proves nothing, `job` empty if there is no Job of it."""

    node: str
    run: RunKey
    done: bool
    at: float
    method: object
    """The definition that was run: what it has proven says nothing about another one of the same name."""
    sentence: str = ""
    proof: Proof | None = None
    job: str = ""


@frozen
class JobFound:
    """The Job of a method is there, and has not ended."""

    node: str
    run: RunKey
    job: str
    at: float


@frozen
class Drained:
    """A pass of a drain: so many pods are left, and the last refusal of an eviction; empty if there was none."""

    node: str
    run: RunKey
    at: float
    left: int
    refused: str


@frozen
class Looked:
    """Linearizable reads of the Node and of its kubelet's Lease, which began at `began_at`. None: no Node. `renewed`
    changes with each sign of life of the host; it is compared, never read. `silent_seconds` are two of its periods."""

    node: str
    began_at: float
    seen: NodeSeen | None
    renewed: str
    silent_seconds: float = LEAST_SILENT_SECONDS


@frozen
class Surveyed:
    """The outcome of a look around: so many of the agents that were asked have answered, and reach the host."""

    node: str
    at: float
    asked: int
    answered: int
    reached: int


@frozen
class Probed:
    """Whether the storage has answered this leader."""

    node: str
    at: float
    answers: bool


@frozen
class FenceMemory:
    """`status` names the present status of the flow, which began at `since_at`. `ended` are the outcomes of this
    status' methods, `jobs` those that run. The host's last sign of life is `renewed` since `renewed_at`, by the last
    look, which began at `looked_at`; None: nobody has looked."""

    status: tuple[object, ...] = ()
    since_at: float = 0.0
    run: tuple[int, int] = (0, 0)
    """The number of the present method of the status, and that of its attempt."""
    run_at: float = 0.0
    """This leader has had it run since then."""
    ended: Mapping[RunKey, MethodEnded] = field(default_factory=dict)
    jobs: Mapping[RunKey, JobFound] = field(default_factory=dict)
    renewed: str | None = None
    renewed_at: float = math.inf
    alive_at: float = -math.inf
    """The host has lived after this time: a look that began then found another sign of life than the next."""
    looked_at: float = -math.inf
    looked: NodeSeen | None = None
    silent_seconds: float = LEAST_SILENT_SECONDS
    """A kubelet that was not heard for so long is silent."""
    boot: tuple[object, ...] = ()
    boot_at: float = 0.0
    """This leader has seen this flow about this boot of the host since then."""
    survey: Surveyed | None = None
    drained: Drained | None = None
    probed: Probed | None = None


def after_look(
    memory: FenceMemory, fence: NodeFence, host_boot: str, is_freeing: bool, now: float, wallclock_seconds: float
) -> FenceMemory:
    """With the time at which the present status began: by this leader's clock, or earlier by the wall clock if another
    leader began it. Without the outcome of a method whose proof is too old to act upon, unless that has been done."""
    progress = fence.progress
    boot = fence.uid, progress.id, host_boot
    if memory.boot != boot:
        memory = replace(memory, boot=boot, boot_at=now)
    memory = memory if is_freeing else _without_old_proof(memory, fence, now)
    status = fence.uid, progress.id, progress.restarts, progress.step, progress.status
    run = (len(progress.methods), progress.methods[-1].tried) if progress.methods else (0, 0)
    if memory.run != run or memory.status != status:
        memory = replace(memory, run=run, run_at=now)
    if memory.status == status:
        return memory
    age_seconds = 0.0 if memory.status else max(0.0, wallclock_seconds - progress.started_wallclock)
    ended = {run: each for run, each in memory.ended.items() if run[:3] == status[:3]}
    jobs = {run: each for run, each in memory.jobs.items() if run[:3] == status[:3]}
    return replace(memory, status=status, since_at=now - age_seconds, ended=ended, jobs=jobs)


def _without_old_proof(memory: FenceMemory, fence: NodeFence, now: float) -> FenceMemory:
    progress = fence.progress
    if not progress.methods or progress.methods[-1].outcome is not Outcome.RUNNING:
        return memory
    key = run_key(fence, len(progress.methods) - 1)
    ended = memory.ended.get(key)
    if ended is None or ended.proof is None or now < ended.proof.began_at + PROOF_SECONDS:
        return memory
    return replace(memory, ended={run: each for run, each in memory.ended.items() if run != key})


def run_key(fence: NodeFence, index: int) -> RunKey:
    """The present attempt of this method of the present step."""
    progress = fence.progress
    return RunKey(fence.uid, progress.id, progress.restarts, progress.step, index, progress.methods[index].tried)


def after_news(memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
    found = part = memory.part(FenceMemory)
    for each in news:
        if isinstance(each, MethodEnded):
            if each.proof is not None:  # what there is to free is counted again
                memory = replace(memory, left=None)
            part = replace(part, ended={**part.ended, each.run: each})
        elif isinstance(each, JobFound):
            part = replace(part, jobs={**part.jobs, each.run: each})
        elif isinstance(each, Surveyed):
            part = replace(part, survey=each)
        elif isinstance(each, Drained):
            part = replace(part, drained=each)
        elif isinstance(each, Probed):
            part = replace(part, probed=each)
        elif isinstance(each, Looked):
            part = _looked(part, each)
    return memory if part is found else memory.with_part(part)


def _looked(part: FenceMemory, look: Looked) -> FenceMemory:
    if part.renewed != look.renewed:
        alive_at = part.alive_at if part.renewed is None else part.looked_at
        part = replace(part, renewed=look.renewed, renewed_at=look.began_at, alive_at=alive_at)
    return replace(part, looked_at=look.began_at, looked=look.seen, silent_seconds=look.silent_seconds)
