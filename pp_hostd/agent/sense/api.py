"""The agent's exchanges with the API: linearizable reads of machines, which are all that a proof may rest on (rule 1),
and the record on its own Node.

The agent lists no machines to find its own: its Node names it, and the Machine must name that Node in turn. Whoever
runs these coroutines provides the API: the agent's client, or the simulator.
"""

from __future__ import annotations

from typing import Any, Callable, Protocol

from pp_hostd.agent.witness import ReadOutcome, Unread
from pp_hostd.frozen import replace
from pp_hostd.kube.outcome import ApiError, Outcome, is_missing, written_by
from pp_hostd.kube.resources import CONFIG_MAPS, MACHINES, NODES, Resource
from pp_hostd.kube.served import ServedVersion
from pp_hostd.model.boot_commitments import Look, StoreEnded
from pp_hostd.model.evidence import Read
from pp_hostd.model.keys import AGENT, NAMESPACE, backup_name
from pp_hostd.model.machine import Machine, machine_of_node, parse_machine
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import AgentRecord
from pp_hostd.model.record import Unreadable
from pp_hostd.model.step import Written
from pp_hostd.peers.message import MachineReference

Clock = Callable[[], float]
OF_ANOTHER_NODE = "machine of another node"
Json = dict[str, Any]


class Api(Protocol):
    """The exchanges that are needed here, as ApiClient has them. Reads are linearizable. Each raises ApiError if it
    fails."""

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        deadline_seconds: float | None = None,
        may_rest: bool = False,
        every_server: bool = False,
    ) -> Json: ...

    async def patch(self, resource: Resource, name: str, patch: Json) -> Json: ...


class MachineReader:
    """Reads any machine of the cluster's kind, which is the setting api.machines."""

    def __init__(self, api: Api, machines: str, clock: Clock) -> None:
        self.clock = clock
        self._api = api
        self._machines = machines
        self._version = ServedVersion(MACHINES[machines])

    async def read(self, machine_key: str, deadline_seconds: float, *, may_rest: bool = False) -> Read:
        """The machine that rosters and peers call so. Nothing is raised."""
        began_at = self.clock()
        try:
            machine = await self._machine(machine_key, deadline_seconds, may_rest)
        except ApiError as error:
            missing = is_missing(error)
            failure, outcome = "" if missing else error.sentence, error.outcome.value
            return Read(
                began_at, self.clock(), missing=missing, failure=failure, machine_key=machine_key, outcome=outcome
            )
        if isinstance(machine, Unreadable):
            failure, outcome = f"reading {machine_key}: {machine}", Outcome.GARBAGE.value
            return Read(began_at, self.clock(), failure=failure, machine_key=machine_key, outcome=outcome)
        return Read(began_at, self.clock(), machine, machine_key=machine_key)

    async def read_for_peer(self, about: MachineReference, deadline_seconds: float) -> ReadOutcome:
        """The read behind an answer on the peer port. In an outage it rests, and the host's own reads go on: else each
        of n hosts would make n connections."""
        read = await self.read(about.machine_key, deadline_seconds, may_rest=True)
        if read.machine is not None:
            return read.machine
        return Unread.NOT_FOUND if read.missing else Unread.FAILED

    async def machine_key_of(self, node: str, deadline_seconds: float) -> str | Unreadable:
        """The machine that this Node names as its own. ApiError if the Node can't be read."""
        if self._machines == "node":
            return node
        found = await self._api.get(NODES, node, deadline_seconds=deadline_seconds, every_server=True)
        return machine_of_node(found, self._machines)

    async def _machine(self, machine_key: str, deadline_seconds: float, may_rest: bool) -> Machine | Unreadable:
        namespace, _, name = machine_key.rpartition("/")
        resource = self._version.first
        if resource.namespaced != bool(namespace):
            return Unreadable("its name", f"it is not that of a {resource.kind}, and api.machines is {self._machines}")
        try:
            found = await self._api.get(
                resource,
                name,
                namespace=namespace or None,
                deadline_seconds=deadline_seconds,
                may_rest=may_rest,
                every_server=True,
            )
        except ApiError as error:
            self._version.note(error, resource)  # costs one read for each time that a cluster changes its versions
            raise
        machine = parse_machine(found)
        if isinstance(machine, Unreadable):
            return machine
        return machine.condemnation if isinstance(machine.condemnation, Unreadable) else machine


class OwnMachine:
    """Reads the machine of this host, found through its Node once, and again when it is gone or another node's."""

    def __init__(self, reader: MachineReader, node: str, deadline_seconds: float) -> None:
        self.machine_key = ""
        """The machine as last found; empty before that."""
        self._reader = reader
        self._node = node
        self._deadline_seconds = deadline_seconds
        self._found = False

    async def read(self) -> Read:
        """One read, by its deadline whether the machine had to be found first or not. Nothing is raised."""
        began_at = self._reader.clock()
        failure, outcome = ("", "") if self._found else await self._find()
        ended_at = self._reader.clock()
        if failure:
            told = f"finding the machine of Node {self._node}: {failure}"
            return Read(began_at, ended_at, failure=told, outcome=outcome)
        read = await self._reader.read(self.machine_key, self._deadline_seconds - (ended_at - began_at))
        ours = read.machine is None or read.machine.node == self._node
        self._found = ours and not read.missing
        if ours:
            return read
        belongs = f"belongs to Node {read.machine.node}" if read.machine and read.machine.node else "belongs to no Node"
        told = f"machine {self.machine_key} {belongs}, not to {self._node}"
        return replace(read, machine=None, failure=told, outcome=OF_ANOTHER_NODE)

    async def _find(self) -> tuple[str, str]:
        """Why the machine can't be found, and the outcome; empty if it is found."""
        try:
            found = await self._reader.machine_key_of(self._node, self._deadline_seconds)
        except ApiError as error:
            return error.sentence, error.outcome.value
        if isinstance(found, Unreadable):
            return str(found), Outcome.GARBAGE.value
        self.machine_key, self._found = found, True
        return "", ""


async def read_node(api: Api, name: str, clock: Clock) -> Look:
    """The Node now, by a linearizable read; for one that is missing, also whether there is a backup (rule 6)."""
    began_at = clock()
    try:
        node = parse_node(await api.get(NODES, name))
    except ApiError as error:
        if not is_missing(error):
            return Look(began_at, clock(), failure=error.sentence)
        return await _missing(api, name, began_at, clock)
    if isinstance(node, Unreadable):
        return Look(began_at, clock(), failure=f"reading Node {name}: {node}")
    return Look(began_at, clock(), node)


async def _missing(api: Api, name: str, began_at: float, clock: Clock) -> Look:
    try:
        backup = await backup_exists(api, name)
    except ApiError as error:
        return Look(began_at, clock(), failure=error.sentence)
    return Look(began_at, clock(), missing=True, backup=backup)


async def backup_exists(api: Api, node: str) -> bool:
    """Whether a leader holds a backup of this Node (rule 6). ApiError if that can't be told."""
    try:
        await api.get(CONFIG_MAPS, backup_name(node), namespace=NAMESPACE)
    except ApiError as error:
        if is_missing(error):
            return False
        raise
    return True


async def store(api: Api, node: Node, record: AgentRecord, clock: Clock) -> StoreEnded:
    """Write the record, if the Node is still the one that was read."""
    try:
        reply = parse_node(await api.patch(NODES, node.name, _patch(node, record)))
    except ApiError as error:
        return StoreEnded(record, node.resource_version, written_by(error), clock(), sentence=error.sentence)
    if isinstance(reply, Unreadable) or reply.agent != record or reply.uid != node.uid:
        sentence = f"patching Node {node.name}: the reply does not show what was written"
        return StoreEnded(record, node.resource_version, Written.UNKNOWN, clock(), sentence=sentence)
    return StoreEnded(record, node.resource_version, Written.DONE, clock(), reply)


def _patch(node: Node, record: AgentRecord) -> Json:
    condition = {"uid": node.uid, "resourceVersion": node.resource_version}
    return {"metadata": {**condition, "annotations": {AGENT: record.render()}}}


async def post_annotation(api: Api, name: str, key: str, value: str | None) -> str:
    """Has this value stand on the Node under that key, or none. Writes only if another one stands there. Returns why it
    failed; empty if it did not.

    The write is conditional on the uid alone: this agent is the annotation's only writer.
    """
    try:
        found = await api.get(NODES, name)
        node = parse_node(found)
        if isinstance(node, Unreadable):
            return f"reading Node {name}: {node}"
        if (found["metadata"].get("annotations") or {}).get(key) != value:
            await api.patch(NODES, name, {"metadata": {"uid": node.uid, "annotations": {key: value}}})
    except ApiError as error:
        return "" if is_missing(error) and value is None else error.sentence
    return ""


async def commit(api: Api, name: str, record: AgentRecord, clock: Clock) -> None:
    """Rule 7's record, in the time that the disks get; nobody waits for it. The leader has touched the Node since it
    was last read (rule 9), so it is read again."""
    look = await read_node(api, name, clock)
    if look.node is not None:
        await store(api, look.node, record, clock)
