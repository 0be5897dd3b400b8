"""The leader's hands on the API: each step of a plan is started, never waited for, and what becomes of it is told."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from datetime import datetime
from functools import cached_property, partial
from typing import Any, Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, written_by
from pp_hostd.kube.resources import BARE_METAL_HOSTS, CONFIG_MAPS, NODES
from pp_hostd.leader import node_writes
from pp_hostd.leader.ask import MAX_OPEN_IN_ALL, Asking
from pp_hostd.leader.free import Free
from pp_hostd.leader.inspection import if_there, inspect
from pp_hostd.leader.machines import ServedMachines
from pp_hostd.leader.observe import Kind
from pp_hostd.leader.remediating import Remediating
from pp_hostd.leader.write import Clock, Unwritten, Watching, Writer, conditional
from pp_hostd.model.bare_metal_host import reboot_key
from pp_hostd.model.condemnation import Condemned, NotRequested
from pp_hostd.model.keys import BUDGET, NAMESPACE, ROSTER, backup_name
from pp_hostd.model.remedy import (
    AskPeers,
    Clear,
    Complete,
    Condemn,
    Cordon,
    DeleteMachine,
    DeleteNode,
    DropBackup,
    Freed,
    FreeWorkloads,
    HandOver,
    Inspect,
    Inspected,
    MarkFreeing,
    NoteRequest,
    Recreate,
    Remedy,
    RemedyEnded,
    RemedyNews,
    SetUnknown,
    SpendBudget,
    StoreBackup,
    SwitchOff,
    SwitchOn,
    Uncordon,
    WriteRoster,
)
from pp_hostd.model.settings import Settings
from pp_hostd.model.written import Written
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.ending import end

MAX_UNDER_WAY = 64
"""So many steps talk to the API at once; others wait, so that there is always a descriptor left for the Lease."""
_Work = Callable[[Any], Awaitable[str]]
"""From a step to what people should know of it although it is done; ApiError or Unwritten if it is not."""


class Apply:
    """`keyring` may be replaced while it runs."""

    def __init__(
        self,
        settings: Settings,
        own_node: str,
        client: ApiClient,
        keyring: Keyring,
        watching: Watching,
        acting_until: Clock,
        clock: Clock,
        wallclock: Callable[[], datetime],
        hand_over: Callable[[], Awaitable[None]],
        tell: Callable[[RemedyNews], None],
    ) -> None:
        """`acting_until` gives the CLOCK_BOOTTIME until which the Lease is valid, -inf if it is not; `hand_over` gives
        it up."""
        self.keyring = keyring
        self._settings, self._own_node, self._client = settings, own_node, client
        self._clock, self._wallclock, self._hand_over, self._tell = clock, wallclock, hand_over, tell
        self._writer = Writer(watching, acting_until, clock)
        self._machines = ServedMachines(client, settings.api.machines)
        self._free = Free(client, self._writer, clock, settings.leader.deletions_per_second)
        self._tasks: set[asyncio.Task[None]] = set()
        self._works: Mapping[type, _Work] = {
            SpendBudget: self._spend_budget,
            Cordon: self._cordon,
            Condemn: self._condemn,
            Inspect: self._inspect,
            StoreBackup: self._store_backup,
            DeleteNode: self._delete_node,
            MarkFreeing: self._mark_freeing,
            FreeWorkloads: self._free_workloads,
            Recreate: self._recreate,
            Complete: self._complete,
            SetUnknown: self._set_unknown,
            Clear: self._clear,
            NoteRequest: self._note_request,
            Uncordon: self._uncordon,
            DropBackup: self._drop_backup,
            SwitchOff: self._switch_off,
            SwitchOn: self._switch_on,
            DeleteMachine: self._delete_machine,
            HandOver: self._resign,
            **Remediating(client, self._machines, self._writer, wallclock).works,
        }

    @cached_property
    def _turns(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(MAX_UNDER_WAY)  # made where it is used: Python 3.9 binds it to the loop that runs

    @cached_property
    def _questions(self) -> asyncio.Semaphore:
        return asyncio.Semaphore(MAX_OPEN_IN_ALL)

    def start(self, node: str, remedy: Remedy) -> None:
        """Begin the step. RemedyEnded is told last, whatever happens but `close`."""
        task = asyncio.create_task(self._run(node, remedy))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Drop what is under way; nothing more is told."""
        await end(self._tasks)

    async def write_roster(self, step: WriteRoster) -> str:
        """Why the roster can't be written or seen, or nothing."""
        try:
            return await self._store(ROSTER, {ROSTER: step.roster.render()}, step.resource_version)
        except (ApiError, Unwritten) as error:
            return error.sentence
        except Exception as error:
            return f"unforeseen: {error!r}"

    async def _run(self, node: str, remedy: Remedy) -> None:
        try:
            written, sentence = Written.DONE, await self._work(node, remedy)
        except Unwritten as unwritten:
            written, sentence = unwritten.written, unwritten.sentence
        except ApiError as error:
            written, sentence = written_by(error), error.sentence
        except Exception as error:
            written, sentence = Written.UNKNOWN, f"unforeseen: {error!r}"
        self._tell(RemedyEnded(node, remedy, written, self._clock(), sentence))

    async def _work(self, node: str, remedy: Remedy) -> str:
        if isinstance(remedy, AskPeers):
            return await self._ask_peers(node, remedy)
        async with self._turns:
            return await self._works[type(remedy)](remedy)

    async def _cordon(self, step: Cordon) -> str:
        change = partial(node_writes.cordon, condemnation_id=step.id)
        return await self._change_node(step.node, step.uid, step.resource_version, change)

    async def _mark_freeing(self, step: MarkFreeing) -> str:
        change = partial(node_writes.mark_freeing, condemnation_id=step.id, out_of_service=step.out_of_service)
        return await self._change_node(step.node, step.uid, step.resource_version, change)

    async def _note_request(self, step: NoteRequest) -> str:
        return await self._change_node(step.node, step.uid, step.resource_version, node_writes.note_request)

    async def _uncordon(self, step: Uncordon) -> str:
        return await self._change_node(step.node, step.uid, None, node_writes.uncordon)

    async def _complete(self, step: Complete) -> str:
        change = partial(node_writes.complete, backup=step.backup, is_machine=self._machines.are_nodes)
        return await self._change_node(step.backup.name, step.uid, None, change)

    async def _set_unknown(self, step: SetUnknown) -> str:
        change = partial(node_writes.unheard, now=self._wallclock())
        return await self._change_node(step.node, step.uid, step.resource_version, change, "status")

    async def _change_node(
        self, name: str, uid: str, version: str | None, change: Callable[[Json], Json], part: str | None = None
    ) -> str:
        """Change the Node as it is now, if it is still the one of this uid and, if one is given, this version."""
        node = await self._client.get(NODES, name)
        found = node["metadata"]["resourceVersion"]
        if node["metadata"]["uid"] != uid or version not in (None, found):
            raise Unwritten(Written.CONFLICT, f"Node {name} is no longer what it was when this was planned")
        patch = change(node)
        if not patch and version is None:  # else it would be planned again and again until the watch shows it
            raise Unwritten(Written.CONFLICT, f"Node {name} is so already, and the watch has not shown it yet")
        if not patch:
            return ""
        patch = conditional(patch, uid, found)
        return await self._writer.write(
            lambda: self._client.patch(NODES, name, patch, subresource=part), Kind.NODES, name, found
        )

    async def _delete_node(self, step: DeleteNode) -> str:
        name, version = step.node, step.resource_version
        return await self._writer.write(
            lambda: self._client.delete(NODES, name, uid=step.uid, resource_version=version),
            Kind.NODES,
            name,
            version,
        )

    async def _recreate(self, step: Recreate) -> str:
        body = node_writes.recreated(step.backup, self._wallclock(), is_machine=self._machines.are_nodes)
        return await self._writer.write(
            lambda: self._client.create(NODES, body), Kind.NODES, step.backup.name, version_before=None
        )

    async def _condemn(self, step: Condemn) -> str:
        condemned = Condemned(step.id, self._wallclock())
        return await self._change_machine(step.subject, step.uid, step.resource_version, condemned)

    async def _clear(self, step: Clear) -> str:
        return await self._change_machine(step.subject, step.uid, step.resource_version, NotRequested(step.last_id))

    async def _change_machine(self, subject: str, uid: str, version: str, state: Condemned | NotRequested) -> str:
        patch = conditional({"metadata": state.render()}, uid, version)
        return await self._writer.write(lambda: self._machines.patch(subject, patch), Kind.MACHINES, subject, version)

    async def _store_backup(self, step: StoreBackup) -> str:
        return await self._store(backup_name(step.backup.name), step.backup.data(), step.resource_version)

    async def _spend_budget(self, step: SpendBudget) -> str:
        return await self._store(BUDGET, {BUDGET: step.budget.render()}, step.resource_version)

    async def _store(self, name: str, data: Json, version: str | None) -> str:
        """A ConfigMap of ours: in place of that version, or as a new one."""
        metadata = {"name": name} if version is None else {"name": name, "resourceVersion": version}
        write = self._client.create if version is None else self._client.update
        body = {"metadata": metadata, "data": data}
        return await self._writer.write(
            lambda: write(CONFIG_MAPS, body, namespace=NAMESPACE), Kind.CONFIG_MAPS, name, version
        )

    async def _drop_backup(self, step: DropBackup) -> str:
        name, version = backup_name(step.node), step.resource_version
        node = await if_there(self._client.get(NODES, step.node))  # the watch may be late, and this is all that is left
        if (None if node is None else node["metadata"]["uid"]) != step.uid:
            raise Unwritten(Written.CONFLICT, f"Node {step.node} is no longer what it was when this was planned")
        return await self._writer.write(
            lambda: self._client.delete(CONFIG_MAPS, name, namespace=NAMESPACE, resource_version=version),
            Kind.CONFIG_MAPS,
            name,
            version,
        )

    async def _inspect(self, step: Inspect) -> str:
        suffix = self._settings.power.suffix
        found = await inspect(self._client, self._machines, step, self._clock, suffix)
        self._tell(Inspected(step.node or step.subject, found))
        return ""

    async def _switch_off(self, step: SwitchOff) -> str:
        await self._machines.check_wish(await self._machines.get(step.request.machine))
        return await self._change_host(step, step.request.render())

    async def _switch_on(self, step: SwitchOn) -> str:
        return await self._change_host(step, None)

    async def _change_host(self, step: SwitchOff | SwitchOn, request: str | None) -> str:
        namespace, _, name = step.host.partition("/")
        annotations = {"annotations": {reboot_key(self._settings.power.suffix): request}}
        patch = conditional({"metadata": annotations}, step.uid, step.resource_version)
        return await self._writer.write(
            lambda: self._client.patch(BARE_METAL_HOSTS, name, patch, namespace=namespace),
            Kind.HOSTS,
            step.host,
            step.resource_version,
        )

    async def _delete_machine(self, step: DeleteMachine) -> str:
        return await self._writer.write(
            lambda: self._machines.delete(step.subject, step.uid, step.resource_version),
            Kind.MACHINES,
            step.subject,
            step.resource_version,
        )

    async def _ask_peers(self, node: str, step: AskPeers) -> str:
        asking = Asking(node, self._own_node, self._settings, self.keyring, self._clock, self._tell, self._questions)
        await asking.ask(step)
        return ""

    async def _free_workloads(self, step: FreeWorkloads) -> str:
        one_pass = await self._free.run(step.node, step.freeing)
        self._tell(Freed(step.node, one_pass.left, self._clock()))
        return one_pass.trouble

    async def _resign(self, _step: HandOver) -> str:
        await self._hand_over()
        return ""
