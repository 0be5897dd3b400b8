"""The port through which every step works, and the news that steps tell.

The leader's shell, the simulator and the tests' virtual cluster each provide a port: the API, the leader's clocks and
its Lease. A step itself opens no socket and runs no loop.
"""

from __future__ import annotations

from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import datetime
from typing import Callable, Protocol

from pp_hostd.fencing.call import AgentCall, AgentReply
from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import ApiError, is_missing, written_by
from pp_hostd.kube.resources import CONFIG_MAPS, Resource
from pp_hostd.leader.steps.api import Api, Json, Served, ServedMachines
from pp_hostd.model.answer import Answer
from pp_hostd.model.backup import Backup
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.machine import Machine
from pp_hostd.model.observed import NodeSeen
from pp_hostd.model.reachability import Finding
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written

Clock = Callable[[], float]
Exchange = Callable[[], Awaitable[Json]]
"""Begins one exchange with the API."""
SEEN_SECONDS = 5.0


@frozen
class Kind:
    """Of objects that the leader watches; `called` is how sentences call one."""

    called: str


NODE, MACHINE, CONFIG_MAP, CLUSTER = Kind("Node"), Kind("machine"), Kind("ConfigMap"), Kind("Cluster")


class Watching(Protocol):
    """The leader's watches, as far as a write needs them."""

    async def shows(self, kind: Kind, name: str, version_before: str | None, deadline_seconds: float, /) -> bool:
        """Wait until they show it gone, or in a later version than this (None: absent). False if that takes longer."""


class Unwritten(Exception):
    """A step that ends without its write, or without knowing its outcome, and why."""

    def __init__(self, written: Written, sentence: str) -> None:
        super().__init__(sentence)
        self.written, self.sentence = written, sentence


@dataclass
class Pace:
    """When the next workload may be deleted: all passes of all steps keep this pace."""

    per_second: float
    next_at: float = float("-inf")


@dataclass
class Port:
    """`key` names the node, machine or object whose step this is. `acting_until` gives the CLOCK_BOOTTIME until which
    the Lease is valid, -inf if it is not. `within` ends an exchange after so many seconds, with None."""

    key: str
    settings: Settings
    api: Api
    machines: ServedMachines
    served: Callable[[tuple[Resource, ...]], Served]
    """A kind of object, in whichever of these versions the cluster serves."""
    watching: Watching
    pace: Pace
    clock: Clock
    wallclock: Callable[[], datetime]
    acting_until: Clock
    within: Callable[[float, Exchange], Awaitable[Json | None]]
    sleep: Callable[[float], Awaitable[None]]
    ask_peers: Callable[[str, str, str, tuple[Member, ...]], Awaitable[None]]
    """Puts, for the step of a node, the question of the machine of that key and uid to these peers, and tells each
    answer."""
    try_host: Callable[[Member, tuple[Member, ...]], Awaitable[tuple[Finding, tuple[Finding, ...]]]]
    """Tries the first host, and has the others try it, all at once. Returns the leader's own finding and theirs."""
    connects: Callable[[str, int], Awaitable[bool]]
    """Returns whether somebody takes a connection at this address and port."""
    run_agent: Callable[[AgentCall], Awaitable[AgentReply]]
    """Runs a fence agent, and ends it if nobody waits for it any more."""
    hand_over: Callable[[], Awaitable[None]]
    """Gives the Lease up."""
    tell: Callable[[StepNews], None]

    async def send(self, exchange: Exchange) -> Json:
        """The API's reply; ApiError or Unwritten if there is none. Rule 14: it is not sent without a valid Lease."""
        left_seconds = self.acting_until() - self.clock()
        if left_seconds <= 0:
            raise Unwritten(Written.NOT_DONE, "the Lease is not valid")
        reply = await self.within(left_seconds, exchange)
        if reply is None:
            raise Unwritten(Written.UNKNOWN, "the Lease ran out while this was being written")
        return reply

    async def write(self, exchange: Exchange, kind: Kind, name: str, version_before: str | None) -> str:
        """Send it, and wait until the watch shows its effect. Returns what is not as it should be; empty if nothing."""
        reply = await self.send(exchange)
        metadata = reply.get("metadata") or {}
        unchanged = version_before is not None and metadata.get("resourceVersion") == version_before
        if unchanged or await self.watching.shows(kind, name, version_before, SEEN_SECONDS):
            return ""
        return f"{kind.called} {name} is written, but the watch has not shown it within {SEEN_SECONDS:g} s"

    async def store(self, name: str, data: Json, version: str | None) -> str:
        """Write a ConfigMap of ours: in place of that version, or as a new one."""
        metadata = {"name": name} if version is None else {"name": name, "resourceVersion": version}
        write = self.api.create if version is None else self.api.update
        body = {"metadata": metadata, "data": data}
        return await self.write(lambda: write(CONFIG_MAPS, body, namespace=NAMESPACE), CONFIG_MAP, name, version)


class Look(Protocol):
    """A read that an inspection makes beside those of the machine and its Node."""

    async def read(self, port: Port) -> object:
        """Returns the object, by a linearizable read; None if the API says that there is none."""


class LeaderStep(Protocol):
    """The leader's next step for a node: one write, one look, one round of questions or one pass of deletions."""

    async def run(self, port: Port) -> str:
        """Returns what people should know of a step that is done; empty if nothing. Raises ApiError or Unwritten if the
        step is not done."""


class OnlyReads:
    """A step that writes nothing."""


async def outcome_of(step: LeaderStep, port: Port) -> tuple[Written, str]:
    """Run the step to its end: its outcome, and a sentence about it."""
    try:
        return Written.DONE, await step.run(port)
    except Unwritten as unwritten:
        return unwritten.written, unwritten.sentence
    except ApiError as error:
        return written_by(error), error.sentence


def conditional(patch: Json, uid: str, version: str) -> Json:
    """The merge patch for this version alone of that very object."""
    return {**patch, "metadata": {**patch.get("metadata", {}), "uid": uid, "resourceVersion": version}}


async def if_there(read: Awaitable[Json]) -> Json | None:
    """Returns the object that is read; None if the API itself says that there is no such object."""
    try:
        return await read
    except ApiError as error:
        if is_missing(error):
            return None
        raise


# The news that steps tell.


class StepNews(Protocol):
    """The finding of a step, or its end; `node` is the key of the step."""

    @property
    def node(self) -> str: ...


@frozen
class Inspection:
    """The findings of linearizable reads that began at `began_at`. None: the object does not exist. `backup` is what
    would be restored of that Node. `kubelet_renewed` is compared, never read as a time."""

    began_at: float
    ended_at: float
    machine: Machine | None = None
    node: NodeSeen | None = None
    backup: Backup | Unreadable | None = None
    kubelet_renewed: str = ""
    beside: tuple[object, ...] = ()
    """The findings of its looks, in their order; None for an object that does not exist."""


@frozen
class Inspected:
    """The outcome of Inspect."""

    node: str
    inspection: Inspection


@frozen
class Acknowledged:
    """A peer answered "unhealthy" under this id (rule 10), when asked at `asked_at`."""

    node: str
    peer: str
    id: int
    token: str
    asked_at: float


@frozen
class NotAcknowledged:
    """A peer answered otherwise, or not at all; `answered` tells the two apart."""

    node: str
    peer: str
    asked_at: float
    answered: bool
    sentence: str


def acknowledgement(node: str, peer: str, answer: Answer, asked_at: float) -> Acknowledged | NotAcknowledged:
    """The news in a peer's answer about the machine of this node."""
    if answer.id is None:  # it is there exactly when the answer is "unhealthy"
        return NotAcknowledged(node, peer, asked_at, answered=True, sentence=f"it says {answer.health.value}")
    return Acknowledged(node, peer, answer.id, answer.token, asked_at)


@frozen
class Freed:
    """The outcome of FreeWorkloads: how many are left that nobody has begun to delete, or that must still go."""

    node: str
    left: int
    at: float


@frozen
class Noticed:
    """Something that people are told by an Event about the object of this kind, namespace, name and uid."""

    node: str
    kind: Resource
    namespace: str | None
    name: str
    uid: str
    reason: str
    sentence: str
    warning: bool


@frozen
class StepEnded:
    """The step is over. It comes last, after what it has found, and a write's effect has been observed by then."""

    node: str
    step: LeaderStep
    written: Written
    at: float
    sentence: str = ""
