"""The methods of a step: the next one begins, the present one goes on, or its outcome is stored.

Workloads are freed before the method that proves something counts as done: before anything is switched on again.
"""

from __future__ import annotations

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.remedies.node_fence.configuration import Fences
from pp_hostd.leader.remedies.node_fence.delegation import delegated
from pp_hostd.leader.remedies.node_fence.draining import DrainPods
from pp_hostd.leader.remedies.node_fence.evidence import (
    LOOK_SECONDS,
    contradiction,
    freed,
    is_refuted,
)
from pp_hostd.leader.remedies.node_fence.fence import FENCED, MOST_JOBS, MOST_METHODS, MethodRun, Outcome, Step
from pp_hostd.leader.remedies.node_fence.flow import Flow, is_well, still_runs
from pp_hostd.leader.remedies.node_fence.jobs import RunJob
from pp_hostd.leader.remedies.node_fence.memory import MethodEnded, Proof, RunKey
from pp_hostd.leader.remedies.node_fence.methods import (
    OFF,
    ON,
    STATUS,
    AgentMethod,
    BuiltIn,
    BuiltInMethod,
    JobMethod,
    Method,
)
from pp_hostd.leader.remedies.node_fence.steps import (
    EndFreeing,
    KeepUnschedulable,
    LookAtNode,
    RunAgent,
    WriteFence,
)
from pp_hostd.leader.steps.machines import Clear
from pp_hostd.leader.steps.nodes import Cordon, Uncordon
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.condemnation import Confirmation, Requested
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.node import is_of_this_boot

PASS_SECONDS = 5.0
"""Between two passes of a drain."""
JOB_SECONDS = 2.0
"""Between two looks at a Job."""
LATE_SECONDS = 30.0
"""After its deadline Kubernetes has so long to end a Job, before the leader says that it is late."""


def next_of_method(flow: Flow) -> NextAction:
    """Begins the next method of the step, or goes on with the one that runs."""
    progress = flow.fence.progress
    running = progress.methods[-1] if progress.methods else None
    if running is None or running.outcome is not Outcome.RUNNING:
        method = flow.methods[len(progress.methods)]
        run = MethodRun(method.name, method.action, Outcome.RUNNING)
        told = f"{progress.step.value}: method {method.name} begins"
        begun = replace(progress, boot=flow.seen.node.boot, methods=(*progress.methods, run))
        return flow.writes(begun, told)
    if flow.part.renewed is None:  # of a leader that goes on with another one's flow
        return flow.view.does(Stage.FENCING, LookAtNode(flow.view.name), "looking at its kubelet")
    index = len(progress.methods) - 1
    if index >= len(flow.methods) or (flow.methods[index].name, flow.methods[index].action) != (
        running.name,
        running.action,
    ):
        return _ended(flow, running, "its configuration has changed, and this method is no longer next")
    method, key = flow.methods[index], flow.run_key(index)
    ended = flow.part.ended.get(key)
    if ended is not None and ended.method != method:
        return _ended(flow, running, "its configuration has changed since it was run: its outcome counts for nothing")
    noted = _noted(flow, running, key)
    if noted is not None:
        return noted
    if method.name in progress.refuted and method.action != ON:
        told = "called this host dead which was heard since, so nobody believes it: see that it switches this very host"
        return _ended(flow, running, f"it {told}. Then: pp-leader fence retry {flow.view.name}")
    return _run(flow, method, running, key) if ended is None else _outcome(flow, running, ended)


def _noted(flow: Flow, running: MethodRun, key: RunKey) -> NextAction | None:
    """The write that names the method's Job in the NodeFence; None if it does, or if there is none. Another leader may
    have created the Job and died, and the Job may have ended since."""
    found, ended = flow.part.jobs.get(key), flow.part.ended.get(key)
    job = found.job if found is not None else "" if ended is None else ended.job
    if not job or running.job:
        return None
    progress = flow.fence.progress
    methods = (*progress.methods[:-1], replace(running, job=job))
    noted = replace(progress, methods=methods, jobs=(*progress.jobs, job)[-MOST_JOBS:])
    return flow.writes(noted, f"{progress.step.value}: method {running.name} has Job {job}")


def _run(flow: Flow, method: Method, running: MethodRun, key: RunKey) -> NextAction:
    view = flow.view
    told = f"{flow.fence.progress.step.value}: {method.name} {method.action}".rstrip()
    if isinstance(method, AgentMethod):
        unsafe = _unfencing(flow, method) or _storm(flow, method)
        if unsafe:
            return view.waits(Stage.HELD, unsafe)
        return _looks_first(flow, method, running, told) or view.does(Stage.FENCING, RunAgent(key, method), told)
    if isinstance(method, JobMethod):
        found = flow.part.jobs.get(key)
        unsafe = _unfencing(flow, method) or (_storm(flow, method) if found is None and not running.job else "")
        if unsafe:
            return view.waits(Stage.HELD, unsafe)
        looks = _looks_first(flow, method, running, told) if found is None and not running.job else None
        if looks is not None:
            return looks
        if found is not None and view.now < found.at + JOB_SECONDS:
            return view.waits(Stage.FENCING, f"{told}: {_told_of(flow, method, found.job)}", found.at + JOB_SECONDS)
        return view.does(Stage.FENCING, RunJob(key, method, flow.fence, bool(running.job)), told)
    return _built_in(flow, method, running, key, told)


def _storm(flow: Flow, method: AgentMethod | JobMethod) -> str:
    """Why nothing is cut off now, as at the beginning; empty if it may be. What only gives back goes on."""
    return "" if method.action in (ON, STATUS) else flow.storm()


def _looks_first(flow: Flow, method: AgentMethod | JobMethod, running: MethodRun, told: str) -> NextAction | None:
    """Before a host is switched off: it may be well by now, since the watch of its Node may be late, or a leader away.
    None if a fresh look does not find the node well, or its kubelet is silent though its Node is called Ready."""
    view, part, due_at = flow.view, flow.part, flow.part.looked_at + LOOK_SECONDS
    if method.action != OFF:
        return None
    if view.now >= due_at:
        return view.does(Stage.FENCING, LookAtNode(view.name), f"{told}: looking at its Node first")
    looked = part.looked
    if looked is None or not is_well(view, looked, flow.fence, flow.cause) or still_runs(looked):
        return None
    if not flow.seen.ready:
        return view.waits(Stage.FENCING, f"{told}: not yet, its Node is Ready, and the watch of Nodes is late", due_at)
    if part.alive_at >= part.run_at:
        return _ended(flow, running, "its Node is Ready again, and its kubelet was heard")
    if part.looked_at >= part.renewed_at + part.silent_seconds:
        return None
    return view.waits(Stage.FENCING, f"{told}: its Node is Ready; looking whether its kubelet is heard", due_at)


def _told_of(flow: Flow, method: JobMethod, job: str) -> str:
    """A Job is followed until it ends: one that is late may still run, so that no other one may begin."""
    seconds = method.config.timeout_seconds
    if flow.view.now < flow.part.run_at + seconds + LATE_SECONDS:
        return f"Job {job} runs"
    look = f"kubectl -n {NAMESPACE} describe job/{job}"
    return f"Job {job} should have ended after {seconds:g} s, and has not. See: {look}. If it is deleted, it has failed"


def _unfencing(flow: Flow, method: AgentMethod | JobMethod) -> str:
    """Why storage must not be given back yet; empty if it may, or if this method gives none back. A kubelet may have
    lost its pods' objects, and not their processes: only another boot ends those for certain."""
    if method.action != ON or method.fences is Fences.POWER or not still_runs(flow.seen):
        return ""
    runs = "the host still runs the boot whose workloads were freed"
    return f"{method.name} gives storage back, and {runs}: it has to boot again first"


def _mark(flow: Flow, what: BuiltIn) -> LeaderStep | None:
    """The write by which the Node gets or loses marks; None if it has none to get or lose by this method."""
    seen, node, number = flow.seen, flow.seen.node, flow.fence.progress.id
    if what is BuiltIn.MARK_UNSCHEDULABLE and not node.unschedulable:
        return KeepUnschedulable(node.name, node.uid, number)
    if what is BuiltIn.TAINT and not (node.tainted and node.unschedulable):
        return Cordon(node.name, node.uid, node.resource_version, number)
    return Uncordon(node.name, node.uid) if what is BuiltIn.MARK_SCHEDULABLE and seen.marked else None


def _built_in(flow: Flow, method: BuiltInMethod, running: MethodRun, key: RunKey, told: str) -> NextAction:
    view, seen, what = flow.view, flow.seen, method.built_in
    step = _mark(flow, what)
    if step is not None:
        return view.does(Stage.FENCING, step, told)
    if what is BuiltIn.CONFIRM:
        return _confirmed(flow, running, told)
    if what is BuiltIn.DRAIN:
        return _drained(flow, running, key, told)
    if what is BuiltIn.KDUMP:
        due_at = flow.part.run_at + flow.config.kdump_seconds
        waits = f"{told}: waits for its kernel's dump"
        return view.waits(Stage.FENCING, waits, due_at) if view.now < due_at else _ended(flow, running, "")
    if what is BuiltIn.CLEAN_PODS:
        return _ended(
            flow, running, "" if still_runs(seen) else "nothing proves that the host is dead, so nothing is freed"
        )
    if what in (BuiltIn.POWER_CYCLE, BuiltIn.POISON_PILL, BuiltIn.RESTART_INSTANCE):
        outcome = delegated(view, seen, flow.fence, what, running, told)
        if isinstance(outcome, NextAction):
            return outcome
        if isinstance(outcome, MethodRun):
            methods = (*flow.fence.progress.methods[:-1], outcome)
            return flow.writes(replace(flow.fence.progress, methods=methods), told)
        return _ended(flow, running, outcome)
    return _ended(flow, running, "")


def _drained(flow: Flow, running: MethodRun, key: RunKey, told: str) -> NextAction:
    """Passes, until no pod is left or the time is over. A pod whose kubelet does not end it counts as evicted: power
    management ends it. One that a disruption budget protects does not."""
    view, last = flow.view, flow.part.drained
    last = last if last is not None and last.run == key else None
    over_at = flow.part.run_at + flow.config.drain_seconds
    if last is None and view.now >= over_at + PASS_SECONDS:
        return _ended(flow, running, f"its pods could not be read, or evicted: {view.memory.trouble}")
    if last is not None and (not last.left or view.now >= over_at):
        return _ended(flow, running, f"{last.left} pods are left: {last.refused}" if last.refused else "")
    if last is not None and view.now < last.at + PASS_SECONDS:
        return view.waits(Stage.FENCING, f"{told}: {last.left} pods are left", min(over_at, last.at + PASS_SECONDS))
    return view.does(Stage.FENCING, DrainPods(view.name, key), told)


def _confirmed(flow: Flow, running: MethodRun, told: str) -> NextAction:
    confirmed, view = flow.seen.confirmed, flow.view
    if not isinstance(confirmed, Confirmation) or not is_of_this_boot(confirmed, flow.seen.node):
        return view.refuses(
            f"{told}: waits for a person. If the host is certainly off: pp-leader confirm-dead {view.name}"
        )
    proof = Proof(Fences.POWER, flow.part.looked_at, f"{confirmed.who} has confirmed that it is dead")
    machine, done = view.machine, _on_proof(flow, running, proof, clean=True)
    if isinstance(done.step, WriteFence) and machine is not None and isinstance(machine.condemnation, Requested):
        # The same command has made the request: nobody is to reset the host for it once it is back.
        clear = Clear(machine.machine_key, machine.uid, machine.resource_version, machine.condemnation.last_id)
        return view.does(Stage.CLEARING, clear, f"{told}: its request is carried out")
    return done


def _outcome(flow: Flow, running: MethodRun, ended: MethodEnded) -> NextAction:
    if not ended.done or ended.proof is None:
        return _ended(flow, running, ended.sentence)
    clean = not flow.climbs or flow.fence.progress.step is not Step.ISOLATION or _cleans(flow)
    return _on_proof(flow, running, ended.proof, clean)


def _cleans(flow: Flow) -> bool:
    """Whether the remedy of a ladder that runs now is to free workloads on its proof."""
    rung = flow.rung(len(flow.fence.progress.methods) - 1)
    return rung is not None and rung.clean


def _on_proof(flow: Flow, running: MethodRun, proof: Proof, clean: bool) -> NextAction:
    """The workloads are freed before the method counts as done: before anything is switched on again."""
    wrong = contradiction(flow.view, flow.fence, proof)
    if wrong:
        return _ended(flow, running, wrong, refuted=is_refuted(flow.view, proof))
    if not clean:
        return _ended(flow, running, "")
    return freed(flow.view, flow.seen, flow.fence, proof) or _ended(flow, running, "", cleaned=proof)


def _ended(
    flow: Flow, running: MethodRun, failure: str, *, cleaned: Proof | None = None, refuted: bool = False
) -> NextAction:
    progress, node = flow.fence.progress, flow.seen.node
    if failure and node.freeing is not None:  # first of all: it says that the workloads may be freed
        end = EndFreeing(node.name, node.uid, node.resource_version)
        return flow.view.does(Stage.CLEARING, end, f"method {running.name}: {failure}; nothing more is freed")
    if refuted:
        progress = replace(progress, refuted=(*progress.refuted, running.name)[-MOST_METHODS:])
    outcome = Outcome.FAILED if failure else Outcome.DONE
    run = replace(running, outcome=outcome, message=failure[:500])
    progress = replace(progress, methods=(*progress.methods[:-1], run))
    if cleaned is not None:
        conditions = progress.with_condition(FENCED, "WorkloadsFreed", cleaned.sentence)
        progress = replace(progress, cleaned=True, conditions=conditions)
    return flow.writes(progress, f"method {running.name}: {failure or 'done'}")
