"""Not to be armed: stopped, in maintenance, in a dry run, alone, out of the roster, opened by hand (rules 5, 6, 12)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone
from typing import Any

import pytest

from pp_hostd.agent.binding import after
from pp_hostd.agent.plan import FREEING, LOOK_INTERVAL_SECONDS, plan
from pp_hostd.agent.shutdown import POWER_OFF_SECONDS, is_last_feeding
from pp_hostd.model.boot_commitments import BootCommitments, Gate, StepFailed
from pp_hostd.model.control import Maintenance
from pp_hostd.model.evidence import HostContext
from pp_hostd.model.memory import Missing
from pp_hostd.model.promise import AgentRecord, WatchdogKind, Withdrawn
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Disarm, LookAtNode, OpenGate, Step, Store, Wait, Written
from tests.agent.test_plan_arming import CLOSED, GROUND, NOW, OLD_PROMISE, PROMISE, PROVEN, SETTINGS, booted, seen
from tests.agent.test_plan_promise import PROMISED, stored
from tests.agent.virtual_node import BOOT, HOST, WATCHDOG, electorate, node

DAY = datetime(2024, 1, 1, tzinfo=timezone.utc)
ORDER = Maintenance("anna", DAY, "new disks", DAY)
DRY_RUN = replace(SETTINGS, agent=replace(SETTINGS.agent, mode="dry-run"))
STOPPING = replace(GROUND, stopping=True)
IN_MAINTENANCE = replace(GROUND, maintenance=ORDER)
ALONE = replace(GROUND, electorate=electorate(1, HOST))
LEFT = replace(GROUND, electorate=electorate(1, "peer-1", "peer-2"))
BY_HAND = replace(GROUND, opened_by="anna")

Case = tuple[HostContext, Settings]
POWERING_OFF: Case = (replace(STOPPING, powering_off=True), SETTINGS)
OPENING = [(IN_MAINTENANCE, SETTINGS), (ALONE, SETTINGS), (GROUND, DRY_RUN)]
LEAVING = [*OPENING, (STOPPING, SETTINGS), (LEFT, SETTINGS)]
opening = pytest.mark.parametrize("case", OPENING)
leaving = pytest.mark.parametrize("case", LEAVING)


def step(commitments: BootCommitments, case: Case, after_seconds: float = 0.0) -> Step:
    host_context, settings = case
    return plan(settings, host_context, commitments, PROVEN, NOW + after_seconds)


def withdrawn(case: Case) -> Withdrawn:
    return Withdrawn(BOOT, case[0].maintenance)


@leaving
def test_it_withdraws_and_then_disarms(case: Case) -> None:
    assert step(PROMISED, case) == Store(withdrawn(case), node(2, PROMISE))
    assert step(stored(PROMISED, withdrawn(case), Written.DONE), case) == Disarm()


@leaving
@pytest.mark.parametrize("written", [Written.UNKNOWN, Written.NOT_DONE, Written.CONFLICT])
def test_what_cannot_be_withdrawn_is_kept(case: Case, written: Written) -> None:
    kept = stored(PROMISED, withdrawn(case), written)
    found = step(kept, case)
    assert isinstance(found, Wait) and found.reason.endswith("; it failed")
    assert step(kept, case, after_seconds=1) == LookAtNode()
    assert isinstance(step(seen(node(2, PROMISE), kept), case), Store)


@leaving
def test_a_promise_that_may_still_land_is_withdrawn_too(case: Case) -> None:
    unknown = stored(booted(node(record=CLOSED), watchdog=WATCHDOG), PROMISE, Written.UNKNOWN)
    assert step(seen(node(record=CLOSED), unknown), case) == Store(withdrawn(case), node(record=CLOSED))


@leaving
def test_a_promise_that_vanished_with_its_node_needs_no_withdrawal(case: Case) -> None:
    assert step(seen(None, PROMISED), case, after_seconds=1) == Disarm()


@leaving
def test_a_daemon_that_has_forgotten_all_looks_before_it_disarms(case: Case) -> None:
    forgot = BootCommitments(BOOT, Gate.OPEN, WATCHDOG)
    assert step(forgot, case) == LookAtNode()
    assert isinstance(step(seen(node(2, PROMISE), forgot), case), Store)
    assert step(seen(node(), forgot), case) == Disarm()


@leaving
def test_armed_and_certainly_not_promised_it_disarms_without_the_api(case: Case) -> None:
    refused = stored(booted(node(record=CLOSED), watchdog=WATCHDOG), PROMISE, Written.NOT_DONE)
    assert step(refused, case, after_seconds=1) == Disarm()


@leaving
def test_a_watchdog_that_stays_armed_is_tried_again_after_a_pause(case: Case) -> None:
    still = after(stored(PROMISED, withdrawn(case), Written.DONE), StepFailed("nowayout", NOW), 1.0)
    found = step(still, case)
    assert isinstance(found, Wait) and found.reason.endswith("; nowayout")
    assert step(still, case, after_seconds=1) == Disarm()


@pytest.mark.parametrize("written", [Written.DONE, Written.UNKNOWN])
def test_a_host_that_powers_off_promises_a_longer_watchdog_and_keeps_that(written: Written) -> None:
    lasting = replace(PROMISE, watchdog_timeout_seconds=POWER_OFF_SECONDS)
    assert step(PROMISED, POWERING_OFF) == Store(lasting, node(2, PROMISE))
    kept = stored(PROMISED, lasting, written)
    assert is_last_feeding(POWERING_OFF[0], kept) is (written is Written.DONE)
    assert not isinstance(step(kept, POWERING_OFF), (Store, Disarm))


def test_a_watchdog_that_is_longer_than_a_power_off_needs_is_kept_as_it_is() -> None:
    longest = replace(PROMISED, stored=replace(PROMISE, watchdog_timeout_seconds=2.0 * POWER_OFF_SECONDS))
    assert isinstance(step(longest, POWERING_OFF), Wait)


def test_only_a_promise_that_stands_and_has_a_watchdog_is_kept_in_a_power_off() -> None:
    closed = booted(node(record=CLOSED), watchdog=WATCHDOG)
    assert step(closed, POWERING_OFF) == Disarm()
    for seconds in (10.0, POWER_OFF_SECONDS):
        promise = replace(PROMISE, watchdog=WatchdogKind.SOFTWARE_ONLY, watchdog_timeout_seconds=seconds)
        software = replace(PROMISED, stored=promise)
        assert step(software, POWERING_OFF) == Store(Withdrawn(BOOT), node(2, PROMISE))
        assert not is_last_feeding(POWERING_OFF[0], software)
    assert not is_last_feeding(STOPPING, PROMISED) and not is_last_feeding(POWERING_OFF[0], PROMISED)


@leaving
def test_when_all_is_done_it_waits_and_says_why(case: Case) -> None:
    done = booted(node(3, withdrawn(case)), Gate.OPEN)
    found = step(done, case)
    assert isinstance(found, Wait) and found.reason


def test_maintenance_is_said_with_who_and_why_and_until_when() -> None:
    found = step(booted(node(record=Withdrawn(BOOT)), Gate.OPEN), (IN_MAINTENANCE, SETTINGS))
    assert found == Wait("maintenance by anna until 2024-01-01T00:00:00Z: new disks")


def test_a_stop_opens_no_gate() -> None:
    for record in (CLOSED, Withdrawn(BOOT)):
        assert isinstance(step(booted(node(3, record)), (STOPPING, SETTINGS)), Wait)


@opening
@pytest.mark.parametrize("record", [CLOSED, OLD_PROMISE])
def test_the_gate_opens_over_a_withdrawal_and_no_other_record(case: Case, record: AgentRecord) -> None:
    commitments = booted(node(record=record))
    assert step(BootCommitments(BOOT, Gate.CLOSED), case) == LookAtNode()
    assert step(commitments, case) == Store(withdrawn(case), node(record=record))
    assert isinstance(step(stored(commitments, withdrawn(case), Written.DONE), case), OpenGate)


@opening
def test_the_gate_stays_closed_over_a_withdrawal_that_may_not_have_landed(case: Case) -> None:
    commitments = stored(booted(node(record=CLOSED)), withdrawn(case), Written.UNKNOWN)
    assert isinstance(step(commitments, case), Wait)
    assert isinstance(step(seen(node(record=CLOSED), commitments), case), Store)


@opening
def test_workloads_that_run_unguarded_are_not_covered_by_another_boots_promise(case: Case) -> None:
    commitments = booted(node(record=OLD_PROMISE), Gate.ABSENT)
    assert step(commitments, case) == Store(withdrawn(case), node(record=OLD_PROMISE))
    assert isinstance(step(stored(commitments, withdrawn(case), Written.DONE), case), Wait)


@opening
def test_the_gate_honours_the_marker_and_looks_again(case: Case) -> None:
    marked = booted(node(record=CLOSED, freeing=7))
    interval = SETTINGS.api.read_interval_seconds
    assert step(marked, case) == Wait(FREEING)
    assert step(marked, case, after_seconds=interval - 0.1) == Wait(FREEING)
    assert step(marked, case, after_seconds=interval) == LookAtNode()


@opening
def test_without_a_node_the_gate_waits_for_the_leader(case: Case) -> None:
    backed_up = seen(None, BootCommitments(BOOT, Gate.CLOSED), backup=True)
    assert step(backed_up, case) == Wait("Node host does not exist; the leader recreates it")


@opening
def test_without_a_node_there_is_nothing_to_wait_for_once_the_gate_is_open(case: Case) -> None:
    found = step(booted(None, Gate.OPEN), case)
    assert isinstance(found, Wait) and "Node" not in found.reason


def test_a_dry_run_leaves_a_node_alone_that_says_nothing() -> None:
    assert step(booted(node()), (GROUND, DRY_RUN)) == OpenGate("a dry run arms nothing")
    assert step(booted(node(), Gate.ABSENT), (GROUND, DRY_RUN)) == Wait("a dry run arms nothing")
    assert step(booted(node()), (IN_MAINTENANCE, SETTINGS)) == Store(Withdrawn(BOOT, ORDER), node())


def test_a_dry_run_makes_sure_that_what_may_land_does_not() -> None:
    unknown = stored(booted(node()), CLOSED, Written.UNKNOWN)
    assert step(seen(node(), unknown), (GROUND, DRY_RUN)) == Store(Withdrawn(BOOT), node())


def test_by_hand_the_gate_opens_over_marker_and_missing_node_but_not_over_gate_closed() -> None:
    case = BY_HAND, SETTINGS
    assert step(booted(node(record=CLOSED, freeing=7)), case) == Store(Withdrawn(BOOT), node(record=CLOSED, freeing=7))
    assert step(booted(None), case) == OpenGate("anna opens the gate by hand")
    assert step(PROMISED, case) == Wait("")


@opening
def test_an_unarmed_host_looks_every_minute_whether_its_promise_is_back_and_withdraws_it_again(case: Case) -> None:
    """An etcd restore puts it back, and whoever leads relies on it."""
    left = seen(node(3, withdrawn(case)), booted(node(3, withdrawn(case)), Gate.OPEN))
    assert isinstance(step(left, case, LOOK_INTERVAL_SECONDS - 1), Wait)
    assert step(left, case, LOOK_INTERVAL_SECONDS) == LookAtNode()
    assert step(seen(node(4, PROMISE), left), case) == Store(withdrawn(case), node(4, PROMISE))


def test_the_only_node_is_not_armed_and_its_gate_opens() -> None:
    found = step(booted(node(3, Withdrawn(BOOT))), (ALONE, SETTINGS))
    assert found == OpenGate("it is the only node, and nobody could take over its workloads")


def test_out_of_the_roster_it_says_how_to_come_back() -> None:
    found = step(booted(node(3, Withdrawn(BOOT)), Gate.OPEN), (LEFT, SETTINGS))
    assert isinstance(found, Wait) and "pp-leader enroll host" in found.reason
    opened = step(booted(node(3, Withdrawn(BOOT))), (LEFT, SETTINGS))
    assert isinstance(opened, OpenGate) and opened.reason == found.reason


# Its machine is gone (rule 1)

GONE = replace(PROVEN, machine_gone=True)


def test_a_host_whose_machine_is_gone_withdraws_and_then_disarms() -> None:
    assert plan(SETTINGS, GROUND, PROMISED, GONE, NOW) == Store(Withdrawn(BOOT), node(2, PROMISE))
    assert plan(SETTINGS, GROUND, stored(PROMISED, Withdrawn(BOOT), Written.DONE), GONE, NOW) == Disarm()


def test_a_host_whose_machine_is_gone_opens_its_gate_once_it_has_stored_that_it_promises_nothing() -> None:
    closed = booted(node(1, OLD_PROMISE))
    assert plan(SETTINGS, GROUND, closed, GONE, NOW) == Store(Withdrawn(BOOT), node(1, OLD_PROMISE))
    opens = plan(SETTINGS, GROUND, stored(closed, Withdrawn(BOOT), Written.DONE), GONE, NOW)
    assert isinstance(opens, OpenGate) and "is gone" in opens.reason


@pytest.mark.parametrize("mark", [{"tainted": True}, {"freeing": 7}], ids=["the taint", "the marker"])
def test_a_node_that_a_leader_has_begun_with_is_not_left_because_its_machine_is_gone(mark: dict[str, Any]) -> None:
    touched = seen(replace(node(2, PROMISE), **mark), PROMISED)
    assert not isinstance(plan(SETTINGS, GROUND, touched, GONE, NOW), (Store, Disarm))


@pytest.mark.parametrize("commitments", [PROMISED, booted(node(1, OLD_PROMISE))], ids=["armed", "booted"])
def test_after_a_machine_was_missing_the_node_is_looked_at(commitments: BootCommitments) -> None:
    missing = replace(PROVEN, missing=Missing(NOW, NOW + 1), failed_reads=0)
    assert plan(SETTINGS, GROUND, commitments, missing, NOW + 1) == LookAtNode()


@pytest.mark.parametrize("marks", [{"tainted": True}, {"freeing": 7}])
def test_maintenance_lets_no_condemned_host_off(marks: dict[str, Any]) -> None:
    """The leader taints the Node before it condemns: then nothing is withdrawn, and after its reset nothing starts."""
    case = (IN_MAINTENANCE, SETTINGS)
    marked = replace(node(2, PROMISE), **marks)
    found = step(seen(marked, PROMISED), case)
    assert isinstance(found, Wait) and "maintenance does not end" in found.reason
    assert step(seen(marked, PROMISED), case, after_seconds=SETTINGS.api.read_interval_seconds) == LookAtNode()
    assert step(seen(node(3, PROMISE), PROMISED), case) == Store(withdrawn(case), node(3, PROMISE))
    assert isinstance(step(booted(replace(node(record=OLD_PROMISE), **marks)), case), Wait)
