"""Linearizable reads of machines, the host's own and those that peers ask about: all that a proof may rest on (rule 1).

The agent lists no machines to find its own: its Node names it, and the Machine must name that Node in turn.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Callable

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.outcome import ApiError, is_missing
from pp_hostd.kube.resources import CONFIG_MAPS, MACHINES, NODES
from pp_hostd.kube.served import ServedVersion
from pp_hostd.model.evidence import Read
from pp_hostd.model.keys import NAMESPACE, backup_name
from pp_hostd.model.machine import Machine, machine_of_node, parse_machine
from pp_hostd.model.record import Unreadable

Clock = Callable[[], float]


class MachineReader:
    """Reads any machine of the cluster's kind, which is the setting api.machines."""

    def __init__(self, client: ApiClient, machines: str, clock: Clock) -> None:
        self.clock = clock
        self._client = client
        self._machines = machines
        self._version = ServedVersion(MACHINES[machines])

    async def read(self, machine_key: str, deadline_seconds: float, *, may_rest: bool = False) -> Read:
        """The machine that rosters and peers call so. Nothing is raised."""
        began_at = self.clock()
        try:
            machine = await self._machine(machine_key, deadline_seconds, may_rest)
        except ApiError as error:
            missing = is_missing(error)
            failure = "" if missing else error.sentence
            return Read(began_at, self.clock(), missing=missing, failure=failure, machine_key=machine_key)
        if isinstance(machine, Unreadable):
            return Read(began_at, self.clock(), failure=f"reading {machine_key}: {machine}", machine_key=machine_key)
        return Read(began_at, self.clock(), machine, machine_key=machine_key)

    async def machine_key_of(self, node: str, deadline_seconds: float) -> str | Unreadable:
        """The machine that this Node names as its own. ApiError if the Node can't be read."""
        if self._machines == "node":
            return node
        found = await self._client.get(NODES, node, deadline_seconds=deadline_seconds, every_server=True)
        return machine_of_node(found, self._machines)

    async def _machine(self, machine_key: str, deadline_seconds: float, may_rest: bool) -> Machine | Unreadable:
        namespace, _, name = machine_key.rpartition("/")
        resource = self._version.first
        if resource.namespaced != bool(namespace):
            return Unreadable("its name", f"it is not that of a {resource.kind}, and api.machines is {self._machines}")
        try:
            found = await self._client.get(
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
        if machine.machine_key != machine_key:  # a lying server proves nothing
            return Unreadable("the reply", f"it is {machine.machine_key}")
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
        failure = "" if self._found else await self._find()
        ended_at = self._reader.clock()
        if failure:
            return Read(began_at, ended_at, failure=f"finding the machine of Node {self._node}: {failure}")
        read = await self._reader.read(self.machine_key, self._deadline_seconds - (ended_at - began_at))
        ours = read.machine is None or read.machine.node == self._node
        self._found = ours and not read.missing
        if ours:
            return read
        belongs = f"belongs to Node {read.machine.node}" if read.machine and read.machine.node else "belongs to no Node"
        return replace(read, machine=None, failure=f"machine {self.machine_key} {belongs}, not to {self._node}")

    async def _find(self) -> str:
        """Why the machine can't be found; empty if none."""
        try:
            found = await self._reader.machine_key_of(self._node, self._deadline_seconds)
        except ApiError as error:
            return error.sentence
        if isinstance(found, Unreadable):
            return str(found)
        self.machine_key, self._found = found, True
        return ""


async def backup_exists(client: ApiClient, node: str) -> bool:
    """Whether a leader holds a backup of this Node (rule 6). ApiError if that can't be told."""
    try:
        await client.get(CONFIG_MAPS, backup_name(node), namespace=NAMESPACE)
    except ApiError as error:
        if is_missing(error):
            return False
        raise
    return True
