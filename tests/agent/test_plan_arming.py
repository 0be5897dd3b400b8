"""From the boot to the first promise: each clause of rule 6, one step of the plan at a time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pp_hostd.agent.binding import after
from pp_hostd.agent.plan import FREEING, plan
from pp_hostd.model.boot_commitments import BootCommitments, Gate, GateHeld, GateOpened, Look, StepFailed, WatchdogArmed
from pp_hostd.model.evidence import HostContext
from pp_hostd.model.memory import Decision, LastRead, Memory, Proof, Source
from pp_hostd.model.node import Node
from pp_hostd.model.promise import Armed, Committed, GateClosed, GateKind, WatchdogKind, Withdrawn
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Arm, Disarm, LookAtNode, OpenGate, ReadMachine, Step, Store, Wait
from tests.agent.virtual_node import BOOT, HOST, MACHINE, UID, WATCHDOG, electorate, node

NOW = 1000.0
SETTINGS = Settings()
GROUND = HostContext(HOST, electorate(1), machine=MACHINE)
CLOSED = GateClosed(BOOT, GateKind.HOLD)
PROMISE = Armed(BOOT, 22.0, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, UID, 1)
OLD_PROMISE = replace(PROMISE, boot="boot-before")
PROVEN = Memory(proof=Proof(NOW, Source.OWN_READ), last_read=LastRead(NOW, NOW, ""))


def with_gate(kind: str) -> Settings:
    return replace(SETTINGS, agent=replace(SETTINGS.agent, gate=kind))


def seen(found: Node | None, commitments: BootCommitments, at: float = NOW, *, backup: bool = False) -> BootCommitments:
    return after(commitments, Look(at, at, found, missing=found is None, backup=backup), 1.0)


def booted(found: Node | None, gate: Gate = Gate.CLOSED, watchdog: WatchdogArmed | None = None) -> BootCommitments:
    """A boot that has looked at its Node."""
    return seen(found, BootCommitments(BOOT, gate, watchdog))


def step(
    commitments: BootCommitments,
    memory: Memory = PROVEN,
    host_context: HostContext = GROUND,
    settings: Settings = SETTINGS,
    after_seconds: float = 0.0,
) -> Step:
    return plan(settings, host_context, commitments, memory, NOW + after_seconds)


def test_first_it_looks_at_its_node() -> None:
    assert step(BootCommitments(BOOT, Gate.CLOSED), Memory()) == LookAtNode()


@pytest.mark.parametrize("before", [None, OLD_PROMISE, Unreadable("the agent's record", "it is no JSON")])
def test_a_held_boot_records_that_the_gate_is_closed_before_anything_else(before: Armed | Unreadable | None) -> None:
    found = replace(node(), agent=before)
    assert step(booted(found)) == Store(CLOSED, found)
    assert step(booted(found), Memory(), HostContext(HOST)) == Store(CLOSED, found)


def test_the_record_names_the_kind_of_gate() -> None:
    assert step(booted(node()), settings=with_gate("taint")) == Store(GateClosed(BOOT, GateKind.TAINT), node())


def test_it_records_a_closed_gate_even_under_the_marker_and_a_condemnation() -> None:
    marked = node(freeing=7)
    assert step(booted(marked), replace(PROVEN, condemned_id=7)) == Store(CLOSED, marked)


def test_a_kubelet_that_is_held_later_makes_a_withdrawn_boot_a_closed_one() -> None:
    found = node(2, Withdrawn(BOOT))
    held = after(booted(found, Gate.ABSENT), GateHeld(), 1.0)
    assert step(held) == Store(CLOSED, found)


def test_it_records_it_once() -> None:
    assert step(booted(node(record=CLOSED))) == Arm()


@pytest.mark.parametrize("gate", [Gate.ABSENT, Gate.OPEN])
def test_it_never_says_closed_of_a_gate_that_holds_nobody(gate: Gate) -> None:
    assert step(booted(node(), gate)) == Arm()


def test_it_never_says_closed_without_a_gate_in_the_settings() -> None:
    assert step(booted(node()), settings=with_gate("none")) == Arm()
    assert step(booted(node(record=OLD_PROMISE)), settings=with_gate("none")) == Arm()


@pytest.mark.parametrize("gate", [Gate.ABSENT, Gate.OPEN])
@pytest.mark.parametrize("record", [OLD_PROMISE, Committed(OLD_PROMISE, 7), GateClosed("boot-before", GateKind.HOLD)])
def test_a_boot_that_nobody_held_is_not_covered_by_another_boots_record(
    gate: Gate, record: Armed | Committed | GateClosed
) -> None:
    found = node(record=record)
    assert step(booted(found, gate), replace(PROVEN, condemned_id=7)) == Store(Withdrawn(BOOT), found)


@pytest.mark.parametrize("host_context", [GROUND, replace(GROUND, stopping=True), HostContext(HOST)])
def test_a_gate_that_was_opened_by_others_is_first_of_all_withdrawn_from_the_node(host_context: HostContext) -> None:
    found = node(record=CLOSED)
    opened = after(booted(found), GateOpened(), 1.0)
    assert step(opened, replace(PROVEN, condemned_id=7), host_context) == Store(Withdrawn(BOOT), found)
    assert step(opened, PROVEN, host_context, after_seconds=3600) == Store(Withdrawn(BOOT), found)


def test_what_is_stored_names_the_boot_that_the_kubelet_had_reported_then() -> None:
    found = replace(node(), boot="boot-before")
    closed = replace(CLOSED, reported_boot="boot-before")
    assert step(booted(found)) == Store(closed, found)
    armed = booted(replace(found, agent=closed), watchdog=WatchdogArmed(WatchdogKind.HARDWARE, 10.0))
    promise = replace(PROMISE, reported_boot="boot-before")
    assert step(armed) == Store(promise, replace(found, agent=closed))
    reported = replace(found, agent=promise, boot=BOOT)
    kept = seen(reported, replace(armed, gate=Gate.OPEN))
    assert step(kept) == Wait("")  # the kubelet's report is no reason for another promise


def test_it_arms_only_after_a_read_begun_after_the_look() -> None:
    commitments = booted(node(record=CLOSED))
    before = Memory(proof=Proof(NOW - 0.1, Source.OWN_READ), last_read=LastRead(NOW - 0.1, NOW, ""))
    assert step(commitments, before) == ReadMachine()
    assert step(commitments, Memory()) == ReadMachine()
    assert step(commitments, PROVEN) == Arm()


FEW = {"one": electorate(1, HOST), "two": electorate(1, HOST, "peer")}


@pytest.mark.parametrize("few", FEW.values(), ids=FEW)
def test_too_few_nodes_are_not_armed_and_start_after_a_read_and_a_stored_withdrawal(few: Electorate) -> None:
    host_context, found = replace(GROUND, electorate=few), node(record=OLD_PROMISE)
    assert step(BootCommitments(BOOT, Gate.CLOSED), PROVEN, host_context) == LookAtNode()
    commitments = booted(found)
    assert step(commitments, Memory(), host_context) == ReadMachine()
    assert step(commitments, replace(PROVEN, failed_reads=1), host_context) == Wait("")
    assert step(commitments, PROVEN, host_context, after_seconds=3600) == LookAtNode()
    assert step(commitments, PROVEN, host_context) == Store(Withdrawn(BOOT), found)
    assert isinstance(step(booted(node(record=Withdrawn(BOOT))), PROVEN, host_context), OpenGate)


@pytest.mark.parametrize("few", FEW.values(), ids=FEW)
@pytest.mark.parametrize("record", [OLD_PROMISE, Withdrawn(BOOT)])
def test_too_few_nodes_do_not_start_while_they_are_condemned(few: Electorate, record: Armed | Withdrawn) -> None:
    condemned, host_context = replace(PROVEN, condemned_id=7), replace(GROUND, electorate=few)
    assert step(booted(node(record=record)), condemned, host_context) == Wait("condemned under id 7")


def test_two_nodes_are_armed_where_that_is_set() -> None:
    settings = replace(SETTINGS, agent=replace(SETTINGS.agent, arm_pairs=True))
    host_context = replace(GROUND, electorate=FEW["two"])
    assert step(booted(node(record=CLOSED)), PROVEN, host_context, settings) == Arm()


def test_no_other_read_is_ordered_while_one_is_under_way() -> None:
    commitments = booted(node(record=CLOSED))
    assert step(commitments, Memory(reading_since=NOW)) == Wait("its machine is being read")


@pytest.mark.parametrize("source", [Source.PEER, Source.OUTAGE])
def test_no_peer_can_vouch_for_a_boot_without_a_promise(source: Source) -> None:
    memory = Memory(proof=Proof(NOW + 1, source), last_read=LastRead(NOW - 1, NOW - 1, ""))
    assert step(booted(node(record=CLOSED)), memory) == ReadMachine()


def test_a_read_that_failed_after_the_look_comes_again_by_itself() -> None:
    failed = Memory(last_read=LastRead(NOW, NOW, "timed out"), failed_reads=1)
    assert step(booted(node(record=CLOSED)), failed) == Wait("timed out")


def test_a_read_that_failed_after_the_proof_keeps_a_boot_unarmed() -> None:
    last = LastRead(NOW + 1, NOW + 2, "timed out")
    assert step(booted(node(record=CLOSED)), replace(PROVEN, last_read=last, failed_reads=1)) == Wait("timed out")


def test_a_look_grows_old_before_the_first_promise() -> None:
    commitments = booted(node(record=CLOSED))
    interval = SETTINGS.api.read_interval_seconds
    assert step(commitments, after_seconds=interval - 0.1) == Arm()
    assert step(commitments, after_seconds=interval) == LookAtNode()


def test_the_marker_keeps_a_boot_unarmed() -> None:
    assert step(booted(node(record=CLOSED, freeing=7))) == Wait(FREEING)
    unreadable = replace(node(record=CLOSED), freeing=Unreadable("the freeing marker", "it is no number"))
    assert step(booted(unreadable)) == Wait(FREEING)


def test_the_marker_keeps_an_armed_boot_from_its_first_promise() -> None:
    assert step(booted(node(record=CLOSED, freeing=7), watchdog=WATCHDOG)) == Wait(FREEING)


def test_condemned_while_unarmed_it_waits() -> None:
    assert step(booted(node(record=CLOSED)), replace(PROVEN, condemned_id=7)) == Wait("condemned under id 7")


@pytest.mark.parametrize(
    ("host_context", "sentence"),
    [
        (HostContext(HOST, None, "it can't be read", MACHINE), "it can't be read"),
        (HostContext(HOST, None, machine=MACHINE), "there is no roster yet"),
        (HostContext(HOST, electorate(1)), "its machine has not been read yet"),
        (replace(GROUND, machine=replace(MACHINE, uid="another")), "uid another"),
        (replace(GROUND, machine=replace(MACHINE, name="another")), "ns/another"),
        (replace(GROUND, machine=replace(MACHINE, namespace=None)), "the roster names machine ns/host"),
    ],
)
def test_roster_and_machine_must_agree_about_this_host(host_context: HostContext, sentence: str) -> None:
    for watchdog in (None, WATCHDOG):
        found = step(booted(node(record=CLOSED), watchdog=watchdog), host_context=host_context)
        assert isinstance(found, Wait) and sentence in found.reason


def test_a_host_that_is_not_in_the_roster_is_not_armed_and_its_gate_opens() -> None:
    left = HostContext(HOST, electorate(1, "a", "b"), machine=MACHINE)
    assert step(booted(node(record=CLOSED), watchdog=WATCHDOG), host_context=left) == Disarm()
    found = booted(node(record=CLOSED))
    assert step(found, Memory(), host_context=left) == ReadMachine()
    assert isinstance(step(found, replace(PROVEN, condemned_id=7), host_context=left), Wait)
    assert step(found, host_context=left) == Store(Withdrawn(BOOT), node(record=CLOSED))
    assert isinstance(step(booted(node(record=Withdrawn(BOOT))), host_context=left), OpenGate)


@pytest.mark.parametrize("gate", [Gate.OPEN, Gate.ABSENT])
def test_a_promise_that_somebody_put_back_is_armed_whatever_else_is_wrong(gate: Gate) -> None:
    """As an etcd restore does, on a host that had withdrawn: whoever leads relies on it."""
    withdrawn = booted(replace(node(), agent=Withdrawn(BOOT)), gate)
    restored = seen(replace(node(), agent=PROMISE), withdrawn)
    of_another_machine = replace(GROUND, machine=replace(MACHINE, uid="another"))
    assert step(restored, host_context=of_another_machine) == Arm()
    failed = after(restored, StepFailed("no such device", NOW), 1.0)
    assert isinstance(step(failed, host_context=of_another_machine), Wait)
    assert step(failed, host_context=of_another_machine, after_seconds=1.0) == Arm()


def test_the_promise_is_stored_conditional_on_the_node_as_read_and_then_the_gate_opens() -> None:
    commitments = booted(node(record=CLOSED), watchdog=WATCHDOG)
    assert step(commitments) == Store(PROMISE, node(record=CLOSED))
    assert step(seen(node(2, PROMISE), commitments)) == OpenGate("its promise is stored")


def test_a_gate_that_could_not_be_opened_is_tried_again_after_a_pause() -> None:
    commitments = seen(node(2, PROMISE), replace(booted(node()), watchdog=WATCHDOG))
    commitments = after(commitments, StepFailed("/run is full", NOW), 1.0)
    assert step(commitments, after_seconds=0.5) == Wait("/run is full")
    assert step(commitments, after_seconds=1.0) == OpenGate("its promise is stored")


def test_a_holder_that_starts_after_the_agent_is_held_and_let_go() -> None:
    commitments = after(seen(node(2, PROMISE), BootCommitments(BOOT, Gate.ABSENT, WATCHDOG)), GateHeld(), 1.0)
    assert step(commitments) == OpenGate("its promise is stored")
    opened = after(commitments, GateOpened(), 1.0)
    assert after(opened, GateHeld(), 1.0).gate is Gate.OPEN


def test_the_promise_names_the_timeout_and_kind_that_the_device_really_has() -> None:
    commitments = booted(node(record=CLOSED), watchdog=WatchdogArmed(WatchdogKind.SOFTDOG, 12.0))
    wanted = replace(PROMISE, watchdog_timeout_seconds=12.0, watchdog=WatchdogKind.SOFTDOG)
    assert step(commitments) == Store(wanted, node(record=CLOSED))


def test_a_promise_without_a_gate_says_so() -> None:
    commitments = booted(node(), Gate.ABSENT, WATCHDOG)
    assert step(commitments, settings=with_gate("none")) == Store(replace(PROMISE, gate=GateKind.NONE), node())


@pytest.mark.parametrize(("gate", "kind"), [(Gate.ABSENT, GateKind.NONE), (Gate.OPEN, GateKind.HOLD)])
def test_a_gate_that_holds_nobody_is_not_opened(gate: Gate, kind: GateKind) -> None:
    assert step(booted(node(2, replace(PROMISE, gate=kind)), gate, WATCHDOG)) == Wait("")


def test_a_gate_that_was_in_nobodys_way_is_not_promised() -> None:
    found = node(2, PROMISE)
    assert step(booted(found, Gate.ABSENT, WATCHDOG)) == Store(replace(PROMISE, gate=GateKind.NONE), found)


def test_armed_without_any_promise_while_the_api_fails_it_is_disarmed_again() -> None:
    failing = replace(PROVEN, failed_reads=1)
    assert step(booted(node(record=CLOSED), watchdog=WATCHDOG), failing) == Disarm()
    assert step(booted(node(2, PROMISE), Gate.OPEN, WATCHDOG), failing) == Wait("")


def test_what_could_not_be_disarmed_is_tried_again_after_a_pause() -> None:
    commitments = replace(booted(node(record=CLOSED), watchdog=WATCHDOG), not_before_at=NOW + 1)
    assert step(commitments, replace(PROVEN, failed_reads=1)) != Disarm()
    assert step(commitments, replace(PROVEN, failed_reads=1), after_seconds=1) == Disarm()


def test_a_daemon_that_has_forgotten_all_does_not_disarm_before_it_has_looked() -> None:
    forgot = BootCommitments(BOOT, Gate.OPEN, WATCHDOG)
    assert step(forgot, Memory(failed_reads=1)) == LookAtNode()
    assert step(seen(node(2, PROMISE), forgot), Memory(failed_reads=1)) == Wait("")


def test_a_host_whose_node_no_leader_has_a_backup_of_passes() -> None:
    assert step(booted(None)) == OpenGate("Node host does not exist, and no leader has a backup of it")
    waiting = booted(None, Gate.OPEN)
    assert step(waiting) == Wait("Node host does not exist; its kubelet registers it when it starts")
    assert step(waiting, after_seconds=1) == LookAtNode()


def test_every_other_host_waits_for_the_leader_to_recreate_its_node() -> None:
    backed_up = seen(None, BootCommitments(BOOT, Gate.CLOSED), backup=True)
    assert step(backed_up) == Wait("Node host does not exist; the leader recreates it")
    assert step(backed_up, after_seconds=1) == LookAtNode()


def test_after_a_decision_nothing_is_promised_or_withdrawn() -> None:
    decided = replace(PROVEN, decision=Decision(NOW, "condemned", 7))
    for commitments in (
        booted(node(record=CLOSED)),
        booted(node(2, PROMISE), Gate.OPEN, WATCHDOG),
        BootCommitments(BOOT, Gate.CLOSED),
    ):
        assert step(commitments, decided) == Wait("")
        assert step(commitments, decided, replace(GROUND, stopping=True)) == Wait("")
