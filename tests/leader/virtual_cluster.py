"""A cluster in memory that the leader's real driver works on: every step takes effect as it would in an API.

What truly runs on a host is told in tests/leader/virtual_host.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Callable

from pp_hostd.leader import node_writes, remediation_writes
from pp_hostd.leader.driver import Driver
from pp_hostd.model.backup import back_up
from pp_hostd.model.bare_metal_host import parse_bare_metal_host, reboot_key
from pp_hostd.model.case import Course
from pp_hostd.model.condemnation import Condemned, Draw, NotRequested, Requested, parse_condemnation
from pp_hostd.model.keys import BUDGET, CONTROL, ENROLLED, EXTERNAL_REMEDIATION, ROSTER, backup_name
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.observed import NodeSeen, Observed, parse_node_seen
from pp_hostd.model.record import Unreadable
from pp_hostd.model.remedy import (
    AskFor,
    AskPeers,
    Clear,
    Complete,
    Condemn,
    Cordon,
    DeleteMachine,
    DeleteNode,
    DropBackup,
    DropClaim,
    Freed,
    Freeing,
    FreeWorkloads,
    HandOver,
    HandToOwner,
    Inspect,
    Inspected,
    Inspection,
    MarkFreeing,
    NoteRequest,
    Recreate,
    Remedy,
    RemedyEnded,
    RemedyNews,
    SetFinalizer,
    SetPhase,
    SetRemediated,
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
from tests.leader.virtual_api import Conflict, Json, VirtualApi

Step = tuple[str, Remedy, float]
SINCE = datetime(2026, 3, 1, tzinfo=timezone.utc)
MOST_TURNS_AT_ONCE = 200


class VirtualCluster:
    """Senses and hands of the real driver. `done` is every step that took effect, and when; each takes so long."""

    latency_seconds = 0.0
    wallclock_ahead_seconds: int | None = None
    """Of `now`. If None, the wall clock stands still, so that ids are small numbers."""

    def __init__(self, machines: str = "openshift", settings: Settings | None = None) -> None:
        self.api = VirtualApi(machines)
        settings = settings or Settings()
        self.settings = replace(settings, api=replace(settings.api, machines=machines))
        self.now = 1000.0
        self.driver = self.a_term("leader-host")
        self.under_way: list[Step] = []
        self.done: list[tuple[float, Remedy]] = []
        self.pods: dict[str, int] = {}
        self.leases: dict[str, str] = {}
        self._news: list[RemedyNews] = []
        self._revision = 0
        self._writes: dict[type, Callable[[Any], None]] = {
            SpendBudget: self._spend_budget,
            Cordon: self._cordon,
            MarkFreeing: self._mark_freeing,
            DeleteNode: self._delete_node,
            Condemn: self._condemn,
            Clear: self._clear,
            NoteRequest: self._note_request,
            Uncordon: self._uncordon,
            Complete: self._complete,
            SetUnknown: self._set_unknown,
            Recreate: self._recreate,
            StoreBackup: self._store_backup,
            DropBackup: self._drop_backup,
            SwitchOff: self._switch_off,
            SwitchOn: self._switch_on,
            DeleteMachine: self._delete_machine,
            AskFor: self._ask_for,
            DropClaim: self._drop_claim,
            HandToOwner: self._hand_to_owner,
            SetRemediated: self._set_remediated,
            SetPhase: self._set_phase,
            SetFinalizer: self._set_finalizer,
        }

    def a_term(self, own_node: str) -> Driver:
        """A leader begins; what another one had under way, or was told, is lost."""
        self.under_way, self._news, self._revision = [], [], 0
        self.driver = Driver(
            self.settings,
            self,
            self,
            own_node=own_node,
            clock=lambda: self.now,
            draw=lambda: Draw(self.wallclock_seconds(), 0),
        )
        return self.driver

    def wallclock_seconds(self) -> int:
        return 0 if self.wallclock_ahead_seconds is None else int(self.now) + self.wallclock_ahead_seconds

    # The driver's senses and hands

    def observed(self) -> Observed:
        return self.api.observed()

    def take(self) -> list[RemedyNews]:
        taken, self._news = self._news, []
        return taken

    def nodes_changed(self) -> bool:
        before, self._revision = self._revision, self.api.revision
        return before != self._revision

    def start(self, node: str, remedy: Remedy) -> None:
        self.under_way.append((node, remedy, self.now))

    def write_roster(self, order: WriteRoster) -> None:
        try:
            self._store(ROSTER, {ROSTER: order.roster.render()}, order.resource_version)
        except Conflict:
            self._revision = -1  # it is planned again

    def show(self, courses: tuple[Course, ...]) -> None:
        pass

    # What the hosts are for

    def answers(self, node: str, step: AskPeers, asked_at: float) -> Iterable[RemedyNews]:
        """What the peers say about that node."""
        raise NotImplementedError

    def frees(self, node: str) -> None:
        """The workloads of this node are about to be freed."""
        raise NotImplementedError

    def live(self) -> None:
        """Time has passed."""
        raise NotImplementedError

    # Time

    def run(self, until: Callable[[], bool], seconds: float = 600.0) -> None:
        """Turn after turn until that is so: each step takes effect at once, and then the clock is set to the next."""
        assert self._run(until, self.now + seconds), f"not within {seconds:g} s: {self.driver.courses}"

    def spend(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """The same for a certain time, or until that is so."""
        self._run(until, self.now + seconds)

    def _run(self, until: Callable[[], bool], end: float) -> bool:
        turns = 0
        while not until():
            due = self.driver.turn()
            turns += 1
            assert turns < MOST_TURNS_AT_ONCE, f"it spins: {self.under_way or self.driver.courses}"
            if until():
                return True
            if self.under_way:
                self.pass_until(self.now + self.latency_seconds)
                self.carry_out()
            elif self.now >= end:
                return False
            elif due > self.now:
                self.pass_until(min(due, end))
                turns = 0
        return True

    def pass_until(self, moment: float) -> None:
        self.now = moment
        self.live()

    def carry_out(self) -> None:
        """The step that has been under way for longest takes effect, and is told."""
        node, remedy, began_at = self.under_way.pop(0)
        try:
            self._news += self._effect(node, remedy, began_at)
            self.done.append((self.now, remedy))
            written, sentence = Written.DONE, ""
        except Conflict as conflict:
            written, sentence = Written.CONFLICT, f"{conflict} is no longer what it was"
        self._news.append(RemedyEnded(node, remedy, written, self.now, sentence))

    def fail(self, written: Written, sentence: str = "the API does not answer") -> None:
        """The step that has been under way for longest fails, without any effect."""
        node, remedy, _ = self.under_way.pop(0)
        self._news.append(RemedyEnded(node, remedy, written, self.now, sentence))

    # What steps do

    def _effect(self, node: str, remedy: Remedy, began_at: float) -> Iterable[RemedyNews]:
        if isinstance(remedy, Inspect):
            return (Inspected(node, self.inspection(remedy, began_at)),)
        if isinstance(remedy, AskPeers):
            return tuple(self.answers(node, remedy, began_at))
        if isinstance(remedy, FreeWorkloads):
            return (Freed(node, self._free(remedy), self.now),)
        if not isinstance(remedy, HandOver):
            self._writes[type(remedy)](remedy)
        return ()

    def _spend_budget(self, step: SpendBudget) -> None:
        self._store(BUDGET, {BUDGET: step.budget.render()}, step.resource_version)

    def _cordon(self, step: Cordon) -> None:
        change = node_writes.cordon(self._current(step), condemnation_id=step.id)
        self.api.patch("nodes", step.node, change)

    def _mark_freeing(self, step: MarkFreeing) -> None:
        node = self._current(step)
        self.frees(step.node)
        change = node_writes.mark_freeing(node, condemnation_id=step.id, out_of_service=step.out_of_service)
        self.api.patch("nodes", step.node, change)

    def _delete_node(self, step: DeleteNode) -> None:
        self._current(step)
        self.frees(step.node)
        self.delete_node(step.node)

    def _condemn(self, step: Condemn) -> None:
        self._change_machine(step, Condemned(step.id, SINCE))

    def _clear(self, step: Clear) -> None:
        self._change_machine(step, NotRequested(step.last_id))

    def _note_request(self, step: NoteRequest) -> None:
        self.api.patch("nodes", step.node, node_writes.note_request(self._current(step)))

    def _uncordon(self, step: Uncordon) -> None:
        node = self.api.matching("nodes", step.node, step.uid)
        self.api.patch("nodes", step.node, node_writes.uncordon(node))

    def _complete(self, step: Complete) -> None:
        node = self.api.matching("nodes", step.backup.name, step.uid)
        change = node_writes.complete(node, step.backup, is_machine=self.api.machines == "node")
        self.api.patch("nodes", step.backup.name, change)

    def _set_unknown(self, step: SetUnknown) -> None:
        self.api.patch("nodes", step.node, node_writes.unheard(self._current(step), SINCE))

    def _recreate(self, step: Recreate) -> None:
        if self.api.get("nodes", step.backup.name) is not None:
            raise Conflict(f"Node {step.backup.name}")
        body = node_writes.recreated(step.backup, SINCE, is_machine=self.api.machines == "node")
        self.api.put("nodes", step.backup.name, body)

    def _store_backup(self, step: StoreBackup) -> None:
        self._store(backup_name(step.backup.name), step.backup.data(), step.resource_version)

    def _drop_backup(self, step: DropBackup) -> None:
        if step.uid is not None:
            self.api.matching("nodes", step.node, step.uid)
        elif self.api.get("nodes", step.node) is not None:
            raise Conflict(f"Node {step.node}")
        self.api.matching("config maps", backup_name(step.node), version=step.resource_version)
        self.config_map(backup_name(step.node), None)

    def _change_machine(self, step: Condemn | Clear, state: Condemned | NotRequested) -> None:
        patch = {"metadata": state.render()}
        self.api.patch(self.api.machine_kind, step.subject, patch, uid=step.uid, version=step.resource_version)

    def _switch_off(self, step: SwitchOff) -> None:
        self._change_host(step, step.request.render())

    def _switch_on(self, step: SwitchOn) -> None:
        self._change_host(step, None)

    def _change_host(self, step: SwitchOff | SwitchOn, request: str | None) -> None:
        patch = {"metadata": {"annotations": {reboot_key(self.settings.power.suffix): request}}}
        self.api.patch("hosts", step.host, patch, uid=step.uid, version=step.resource_version)

    def _delete_machine(self, step: DeleteMachine) -> None:
        self.api.matching("machines", step.subject, step.uid, step.resource_version)
        self.api.put("machines", step.subject, None)

    def _ask_for(self, step: AskFor) -> None:
        found = self.api.matching("machines", step.subject, step.uid, step.resource_version)
        condemnation = parse_condemnation(found["metadata"])
        if not isinstance(condemnation, NotRequested):
            raise Conflict(f"Machine {step.subject}")
        self.api.patch("machines", step.subject, remediation_writes.asked_for(condemnation, step.claim))

    def _drop_claim(self, step: DropClaim) -> None:
        self.api.matching("machines", step.subject, step.uid, step.resource_version)
        self.api.patch("machines", step.subject, remediation_writes.unclaimed())

    def _hand_to_owner(self, step: HandToOwner) -> None:
        found = self.api.matching("machines", step.subject, step.uid)
        self.api.patch("machines", step.subject, remediation_writes.handed_to_owner(found, step.sentence, SINCE))

    def _set_remediated(self, step: SetRemediated) -> None:
        found = self.api.matching("machines", step.subject, step.uid)
        self.api.patch("machines", step.subject, remediation_writes.kept_true(found, step.word, step.sentence, SINCE))

    def _set_phase(self, step: SetPhase) -> None:
        self._change_remediation(step, remediation_writes.in_phase(step, SINCE))

    def _set_finalizer(self, step: SetFinalizer) -> None:
        found = self.api.matching(step.remediation.kind.name, step.remediation.subject)
        self._change_remediation(step, remediation_writes.finalized(found, step))

    def _change_remediation(self, step: SetPhase | SetFinalizer, patch: Json) -> None:
        """Without finalizers, one that was deleted is gone."""
        known = step.remediation
        kind, name = known.kind.name, known.subject
        self.api.patch(kind, name, patch, uid=known.uid, version=known.resource_version)
        metadata = (self.api.get(kind, name) or {})["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.api.put(kind, name, None)

    def _current(self, remedy: Cordon | MarkFreeing | DeleteNode | SetUnknown | NoteRequest) -> Json:
        return self.api.matching("nodes", remedy.node, remedy.uid, remedy.resource_version)

    def _store(self, name: str, data: Json, version: str | None) -> None:
        found = self.api.get("config maps", name)
        if (None if found is None else found["metadata"]["resourceVersion"]) != version:
            raise Conflict(f"ConfigMap {name}")
        self.config_map(name, data)

    def _free(self, remedy: FreeWorkloads) -> int:
        pods = self.pods.get(remedy.node, 0)
        if remedy.freeing is Freeing.ALL and self.api.get("nodes", remedy.node) is not None:
            return 0  # a kubelet is back, and the pods are its own
        if pods:
            self.frees(remedy.node)
        # Somebody else's controllers take one pod at each look; our own hands take all.
        self.pods[remedy.node] = pods - 1 if remedy.freeing is Freeing.AWAIT and pods else 0
        return pods if remedy.freeing is Freeing.AWAIT else 0

    def inspection(self, step: Inspect, began_at: float) -> Inspection:
        machine, node = self.machine(step.subject), self.api.get("nodes", step.node)
        seen = None if node is None else self.node(step.node)
        condemnation = None if machine is None else machine.condemnation
        backup = None
        if node is not None and isinstance(condemnation, (Condemned, Requested)):
            backup = back_up(node, condemnation.id if isinstance(condemnation, Condemned) else condemnation.last_id + 1)
        found = self.api.get("hosts", step.host) if step.host else None
        host = None if found is None else parse_bare_metal_host(found, self.settings.power.suffix)
        assert not isinstance(host, Unreadable), host
        return Inspection(began_at, self.now, machine, seen, backup, self.leases.get(step.node, ""), host)

    # What others look at and do

    def machine(self, subject: str) -> Machine | None:
        found = self.api.get(self.api.machine_kind, subject)
        machine = None if found is None else parse_machine(found)
        assert not isinstance(machine, Unreadable), machine
        return machine

    def node(self, name: str) -> NodeSeen:
        seen = parse_node_seen(self.api.get("nodes", name), self.api.machines)
        assert not isinstance(seen, Unreadable), seen
        return seen

    def annotate_node(self, name: str, **annotations: str | None) -> None:
        """Keys are spelled with dots and slashes: use `**{key: value}`."""
        self.api.patch("nodes", name, {"metadata": {"annotations": annotations}})

    def annotate_machine(self, subject: str, **annotations: str | None) -> None:
        self.api.patch(self.api.machine_kind, subject, {"metadata": {"annotations": annotations}})

    def delete_node(self, name: str) -> None:
        """The kubelet's Lease is the Node's, and goes with it."""
        self.api.put("nodes", name, None)
        self.leases.pop(name, None)

    def request(self, subject: str) -> None:
        self.annotate_machine(subject, **{EXTERNAL_REMEDIATION: ""})

    def lift(self, subject: str) -> None:
        """As a person would, or `pp-leader absolve`: the id stays."""
        machine = self.machine(subject)
        assert machine is not None
        condemnation = machine.condemnation
        last_id = condemnation.id if isinstance(condemnation, Condemned) else getattr(condemnation, "last_id", 0)
        self.api.patch(self.api.machine_kind, subject, {"metadata": NotRequested(last_id).render()})

    def enrol(self, names: Iterable[str]) -> None:
        self.config_map(ENROLLED, dict.fromkeys(names, "{}"))

    def order(self, data: Json) -> None:
        self.config_map(CONTROL, data)

    def config_map(self, name: str, data: Json | None) -> None:
        body = None if data is None else {"metadata": {"name": name, "namespace": "pp-hostd"}, "data": data}
        self.api.put("config maps", name, body)
