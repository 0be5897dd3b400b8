"""A NodeFence as the leader reads and writes it: how far the fencing of one node has come.

The object is the lock: it bears the node's name, so there is one for a node at most. It holds progress, never proof:
whoever leads next asks the devices again before anything is freed.
"""

from __future__ import annotations

import enum
import math

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import NODE_FENCES
from pp_hostd.leader.caches import Cache
from pp_hostd.leader.facts.nodes import wallclock_of
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Kind
from pp_hostd.leader.steps.status import rendered_conditions, stored_conditions
from pp_hostd.model.record import MAX_COUNT, NAME, OPAQUE, Fields, Refused, Unreadable, read

FENCE = Kind(NODE_FENCES.kind)
PREFIX = "node-fence-"
MOST_METHODS = 20
"""So many methods a step has at most."""
MOST_JOBS = 50
"""So many names of Jobs an object remembers."""


class Step(enum.Enum):
    """The three steps of a flow; each has a list of methods."""

    ISOLATION = "Isolation"
    POWER_MANAGEMENT = "Power-Management"
    RECOVERY = "Recovery"


class Status(enum.Enum):
    """How far a step has come."""

    NEW = "New"
    RUNNING = "Running"
    DONE = "Done"
    FINAL = "Final"
    ERROR = "Error"


class State(enum.Enum):
    """The state of the node, which follows from the step and its status."""

    NEW = "new"
    RUNNING = "running"
    DONE = "done"
    FINAL = "final"
    ERROR = "error"


class Outcome(enum.Enum):
    """Of a method. Running: it has begun, or is about to."""

    RUNNING = "Running"
    DONE = "Done"
    FAILED = "Failed"


@frozen
class MethodRun:
    """A method of the present step. `tried` counts its attempts; `job` is its Job, once that is there."""

    name: str
    action: str
    outcome: Outcome
    tried: int = 1
    job: str = ""
    message: str = ""


@frozen
class Cause:
    """The threshold that made the leader fence the node: its NodeRemedyConfiguration, and the condition. All are empty
    where a person made the object."""

    configuration: str = ""
    condition: str = ""
    status: str = ""

    def __str__(self) -> str:
        return f"{self.condition}={self.status} ({self.configuration})" if self.configuration else "a person's request"


CONDITIONS = FENCED, RECOVERED, GAVE_UP = "Fenced", "Recovered", "GaveUp"


@frozen
class Progress:
    """All that the leader writes to a NodeFence. `started_wallclock` is when this status of the step began. `id` is on
    the Node's taint and marker. `boot` is the boot of the host that is fenced. `cleaned` says that its workloads were
    freed. `refuted` are the names of methods that called a host dead which was heard since: this flow believes them no
    more. `conditions` are status, reason and message by type."""

    step: Step = Step.ISOLATION
    status: Status = Status.NEW
    retries: int = 0
    restarts: int = 0
    reason: str = ""
    started_wallclock: float = math.inf
    id: int = 0
    boot: str = ""
    methods: tuple[MethodRun, ...] = ()
    jobs: tuple[str, ...] = ()
    cleaned: bool = False
    refuted: tuple[str, ...] = ()
    conditions: tuple[tuple[str, str, str, str], ...] = ()

    @property
    def state(self) -> State:
        if self.status is Status.ERROR:
            return State.ERROR
        if self.status is Status.FINAL or (self.step is Step.RECOVERY and self.status is Status.DONE):
            return State.FINAL
        if self.step is Step.RECOVERY:
            return State.DONE
        if self.step is Step.POWER_MANAGEMENT:
            return State.DONE if self.status is Status.DONE else State.RUNNING
        return State.RUNNING if self.status is Status.DONE else State.NEW

    @property
    def gave_up(self) -> bool:
        return any(each[:2] == (GAVE_UP, "True") for each in self.conditions)

    def with_condition(self, of_type: str, reason: str, message: str) -> tuple[tuple[str, str, str, str], ...]:
        """Its conditions, with this one True."""
        others = (each for each in self.conditions if each[0] != of_type)
        return (*others, (of_type, "True", reason, message))


@frozen
class NodeFence:
    """`deleting`: somebody has deleted it, and a finalizer keeps it. Of a flow that no leader has begun (it has no id)
    the object may claim what it likes: the flow begins at its beginning, where the limits hold it."""

    name: str
    uid: str
    resource_version: str
    node: str
    cause: Cause
    progress: Progress
    deleting: bool = False

    @property
    def key(self) -> str:
        return f"{NODE_FENCES.kind} {self.name}"


class NodeFences(Cache[NodeFence]):
    """By the name of their node."""

    def __init__(self) -> None:
        super().__init__(NODE_FENCES.kind)
        self.seen: dict[str, NodeFence] = {}
        self.changes = 0

    def _find(self, api_object: object) -> NodeFence | Unreadable:
        return parse_fence(api_object)

    def _fault(self, found: NodeFence | Unreadable | None) -> str:
        if not isinstance(found, Unreadable):
            return ""
        return f"{found}. Nothing is done for its node: correct it, or delete it to begin again"

    def _take(self, name: str, found: NodeFence | None) -> None:
        self.changes += 1
        self.seen.pop(name[len(PREFIX) :], None)
        if found is not None:
            self.seen[found.node] = found


def fence_name(node: str) -> str:
    return f"{PREFIX}{node}"


def parse_fence(api_object: object) -> NodeFence | Unreadable:
    return read(f"the {NODE_FENCES.kind}", lambda source: _fence(Fields(source)), api_object)


def _fence(fields: Fields) -> NodeFence:
    metadata = fields.section("metadata")
    name, node = metadata.text("name", NAME), fields.text("node", NAME)
    if name != fence_name(node):
        raise Refused(f"it is about Node {node}, and then its name is {fence_name(node)}")
    cause, progress = fields.section("cause"), _progress(fields)
    return NodeFence(
        name=name,
        uid=metadata.text("uid", OPAQUE),
        resource_version=metadata.text("resourceVersion", OPAQUE),
        node=node,
        cause=Cause(*(str(cause.anything(key) or "") for key in ("configuration", "condition", "status"))),
        progress=progress if progress.id else Progress(reason=progress.reason),
        deleting=metadata.anything("deletionTimestamp") is not None,
    )


def _progress(fields: Fields) -> Progress:
    methods = tuple(_method(Fields(each, "an element of methods")) for each in fields.elements("methods"))
    if len(methods) > MOST_METHODS:
        raise Refused(f"it has {len(methods)} methods, and {MOST_METHODS} are allowed")
    return Progress(
        step=fields.choice("step", Step) if "step" in fields else Step.ISOLATION,
        status=fields.choice("status", Status) if "status" in fields else Status.NEW,
        retries=_number(fields, "retries"),
        restarts=_number(fields, "restarts"),
        reason=str(fields.anything("reason") or ""),
        started_wallclock=wallclock_of(fields.anything("stepStartedAt")),
        id=_number(fields, "id"),
        boot=str(fields.anything("boot") or ""),
        methods=methods,
        jobs=tuple(str(each) for each in fields.elements("jobs"))[:MOST_JOBS],
        cleaned=fields.anything("cleaned") is True,
        refuted=tuple(str(each) for each in fields.elements("refuted"))[:MOST_METHODS],
        conditions=stored_conditions(fields, CONDITIONS),
    )


def _method(fields: Fields) -> MethodRun:
    return MethodRun(
        name=str(fields.anything("name") or ""),
        action=str(fields.anything("action") or ""),
        outcome=fields.choice("outcome", Outcome),
        tried=max(1, _number(fields, "tried")),
        job=str(fields.anything("job") or ""),
        message=str(fields.anything("message") or ""),
    )


def _number(fields: Fields, key: str) -> int:
    value = fields.anything(key)
    if value is None:
        return 0
    if type(value) is not int or not 0 <= value <= MAX_COUNT:
        raise Refused(f"{key} is not a whole number from 0 to {MAX_COUNT}")
    return value


def rendered(progress: Progress, stored: Json, moment: str, started: str) -> Json:
    """The merge patch. `moment` is now, `started` when this status of the step began."""
    return {
        "step": progress.step.value,
        "status": progress.status.value,
        "retries": progress.retries,
        "restarts": progress.restarts,
        "reason": progress.reason,
        "stepStartedAt": started,
        "id": progress.id,
        "boot": progress.boot,
        "methods": [_rendered_method(each) for each in progress.methods],
        "jobs": list(progress.jobs),
        "cleaned": progress.cleaned,
        "refuted": list(progress.refuted),
        "conditions": rendered_conditions(progress.conditions, CONDITIONS, stored.get("conditions"), moment),
    }


def _rendered_method(run: MethodRun) -> Json:
    method: Json = {"name": run.name, "action": run.action, "outcome": run.outcome.value, "tried": run.tried}
    return {**method, **({"job": run.job} if run.job else {}), **({"message": run.message} if run.message else {})}
