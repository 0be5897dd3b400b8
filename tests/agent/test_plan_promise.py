"""The promises of an agent, those that it may make, and those that bind the judgement: each clause of rule 5."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from pp_hostd.agent.binding import after, ordered, standing
from pp_hostd.agent.plan import LOOK_INTERVAL_SECONDS
from pp_hostd.model.boot_commitments import (
    BootCommitments,
    Gate,
    Look,
    Pending,
    StepFailed,
    StoreEnded,
    WatchdogDisarmed,
)
from pp_hostd.model.memory import Memory, Standing
from pp_hostd.model.promise import AgentRecord, Armed, GateClosed, Withdrawn
from pp_hostd.model.roster import Electorate, Member, Roster
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Arm, LookAtNode, Store, Wait, Written
from tests.agent.test_plan_arming import CLOSED, GROUND, NOW, PROMISE, PROVEN, SETTINGS, booted, seen, step
from tests.agent.virtual_node import BOOT, HOST, MACHINE, UID, WATCHDOG, electorate, node

PROMISED = booted(node(2, PROMISE), Gate.OPEN, WATCHDOG)
LONGER, SHORTER = replace(PROMISE, self_timeout_seconds=30.0), replace(PROMISE, self_timeout_seconds=15.0)
OTHER_ROSTER = replace(PROMISE, roster_version=2)
ROSTERS = {version: electorate(version).names for version in (1, 2)}


def timeout(seconds: float) -> Settings:
    return replace(SETTINGS, agent=replace(SETTINGS.agent, self_timeout_seconds=seconds))


def bound(commitments: BootCommitments, settings: Settings = SETTINGS, roster: int = 1) -> Standing:
    return standing(settings, replace(GROUND, electorate=electorate(roster)), commitments, PROVEN, ROSTERS, "")


def storing(commitments: BootCommitments, record: AgentRecord) -> BootCommitments:
    assert commitments.look is not None and commitments.look.node is not None
    return ordered(commitments, Store(record, commitments.look.node))


def ended(commitments: BootCommitments, record: AgentRecord, written: Written) -> BootCommitments:
    assert commitments.look is not None and commitments.look.node is not None
    version = commitments.look.node.resource_version
    found = node(9, record) if written is Written.DONE else None
    return after(commitments, StoreEnded(record, version, written, NOW, found, "" if found else "it failed"), 1.0)


def stored(commitments: BootCommitments, record: AgentRecord, written: Written) -> BootCommitments:
    return ended(storing(commitments, record), record, written)


def test_what_stands_as_wanted_is_left_alone_and_looked_at_now_and_then() -> None:
    assert step(PROMISED) == Wait("")
    assert step(PROMISED, after_seconds=LOOK_INTERVAL_SECONDS - 0.1) == Wait("")
    assert step(PROMISED, after_seconds=LOOK_INTERVAL_SECONDS) == LookAtNode()


def test_a_longer_timeout_is_stored_then_used() -> None:
    assert step(PROMISED, settings=timeout(30.0)) == Store(LONGER, node(2, PROMISE))
    assert bound(PROMISED, timeout(30.0)).self_timeout_seconds == 22.0
    assert bound(storing(PROMISED, LONGER), timeout(30.0)).self_timeout_seconds == 22.0
    assert bound(stored(PROMISED, LONGER, Written.DONE), timeout(30.0)).self_timeout_seconds == 30.0


def test_a_shorter_timeout_is_used_then_stored() -> None:
    assert bound(PROMISED, timeout(15.0)).self_timeout_seconds == 15.0
    assert step(PROMISED, settings=timeout(15.0)) == Store(SHORTER, node(2, PROMISE))


def test_another_roster_is_stored_then_used_and_both_bind_meanwhile() -> None:
    host_context = replace(GROUND, electorate=electorate(2))
    assert step(PROMISED, host_context=host_context) == Store(OTHER_ROSTER, node(2, PROMISE))
    assert bound(PROMISED, roster=2).electorates == (ROSTERS[1],)
    assert bound(storing(PROMISED, OTHER_ROSTER), roster=2).electorates == (ROSTERS[1], ROSTERS[2])
    assert bound(stored(PROMISED, OTHER_ROSTER, Written.DONE), roster=2).electorates == (ROSTERS[2],)


def test_a_write_binds_from_its_order_on_and_over_a_restart() -> None:
    assert storing(PROMISED, SHORTER).pending == (Pending(SHORTER, "2"),)
    assert bound(storing(PROMISED, SHORTER)).self_timeout_seconds == 15.0


def test_an_unknown_outcome_keeps_both_until_a_look_at_another_version() -> None:
    unknown = stored(PROMISED, SHORTER, Written.UNKNOWN)
    assert unknown.look is None and unknown.trouble == "it failed"
    assert bound(unknown).self_timeout_seconds == 15.0
    assert bound(seen(node(2, PROMISE), unknown)).self_timeout_seconds == 15.0, "it may still land"
    assert bound(seen(node(3, PROMISE), unknown)).self_timeout_seconds == 22.0
    landed = seen(node(3, SHORTER), unknown)
    assert (landed.stored, landed.pending) == (SHORTER, ())


def test_an_unknown_outcome_is_tried_again_until_it_is_known() -> None:
    unknown = stored(PROMISED, SHORTER, Written.UNKNOWN)
    assert step(unknown) == Wait("it failed")
    assert step(unknown, after_seconds=1) == LookAtNode()
    looked = seen(node(2, PROMISE), unknown, NOW)
    assert step(looked) == Store(PROMISE, node(2, PROMISE)), "what stands is stored again, so that nothing else lands"
    assert stored(looked, PROMISE, Written.DONE).pending == ()


def test_the_same_write_may_stay_unknown_for_ever_and_takes_no_more_memory() -> None:
    commitments = PROMISED
    for _ in range(3):
        commitments = seen(node(2, PROMISE), stored(commitments, SHORTER, Written.UNKNOWN))
    assert commitments.pending == (Pending(SHORTER, "2"),)


@pytest.mark.parametrize("written", [Written.CONFLICT, Written.NOT_DONE])
def test_a_write_that_was_not_done_binds_nobody_and_is_paced(written: Written) -> None:
    refused = stored(PROMISED, SHORTER, written)
    assert refused.pending == () and refused.stored == PROMISE
    assert step(refused) == Wait("it failed")
    assert step(refused, after_seconds=1) == LookAtNode()


def test_a_refusal_says_nothing_about_the_same_write_of_before() -> None:
    unknown = seen(node(2, PROMISE), stored(PROMISED, SHORTER, Written.UNKNOWN))
    assert stored(unknown, SHORTER, Written.NOT_DONE).pending == (Pending(SHORTER, "2"),)


def test_a_write_that_is_done_leaves_no_other_that_could_land() -> None:
    unknown = seen(node(2, PROMISE), stored(PROMISED, SHORTER, Written.UNKNOWN))
    done = stored(unknown, LONGER, Written.DONE)
    assert (done.stored, done.pending, done.look) == (LONGER, (), Look(-math.inf, NOW, node(9, LONGER)))


def test_a_failed_look_changes_nothing_but_the_pace() -> None:
    failed = after(PROMISED, Look(NOW, NOW, failure="timed out"), 1.0)
    assert failed == replace(PROMISED, look=None, not_before_at=NOW + 1, trouble="timed out")
    assert step(failed) == Wait("timed out")
    assert step(failed, after_seconds=1) == LookAtNode()


def test_a_look_that_was_not_told_that_there_is_no_node_says_nothing_about_it() -> None:
    commitments = after(PROMISED, Look(NOW, NOW), 1.0)
    assert commitments.promises == PROMISED.promises
    assert commitments.look is None


def test_a_watchdog_that_stays_armed_is_said_and_paced() -> None:
    assert after(PROMISED, StepFailed("nowayout", NOW), 1.0) == replace(
        PROMISED, not_before_at=NOW + 1, trouble="nowayout"
    )


def test_a_roster_that_is_promised_and_not_known_leaves_no_majority() -> None:
    unknown = stored(PROMISED, replace(PROMISE, roster_version=3), Written.UNKNOWN)
    assert bound(unknown).electorates == ()


def test_before_a_promise_the_newest_roster_and_the_settings_bind() -> None:
    fresh = bound(booted(node(record=CLOSED), watchdog=WATCHDOG), timeout(15.0), roster=2)
    assert (fresh.node, fresh.machine_uid, fresh.armed) == (HOST, UID, True)
    assert (fresh.self_timeout_seconds, fresh.electorates) == (15.0, (ROSTERS[2],))
    assert not bound(booted(node())).armed


def test_a_promise_binds_even_without_its_watchdog_which_is_armed_again() -> None:
    assert bound(replace(PROMISED, watchdog=None)).armed
    assert step(replace(PROMISED, watchdog=None)) == Arm()


def test_a_dry_run_judges_as_if_armed_once_it_has_a_proof() -> None:
    dry = replace(SETTINGS, agent=replace(SETTINGS.agent, mode="dry-run"))
    commitments = booted(node(), Gate.ABSENT)
    assert bound(commitments, dry).armed
    assert not standing(dry, GROUND, commitments, Memory(), ROSTERS, "").armed


def test_the_promised_machine_stays_the_same_when_another_takes_its_name() -> None:
    other = replace(MACHINE, uid="another")
    assert standing(SETTINGS, replace(GROUND, machine=other), PROMISED, PROVEN, ROSTERS, "").machine_uid == UID
    members = (Member(name, f"ns/{name}", "192.0.2.1", "another", 1, None) for name in (HOST, "peer-1", "peer-2"))
    renewed = Roster.of(1, 1, members).as_of(1)
    assert isinstance(renewed, Electorate)
    host_context = replace(GROUND, machine=other, electorate=renewed)
    assert step(PROMISED, host_context=host_context, settings=timeout(30.0)) == Store(LONGER, node(2, PROMISE))


def test_a_promise_that_vanished_with_its_node_keeps_its_machine_and_its_watchdog() -> None:
    gone = seen(None, PROMISED)
    failing = replace(PROVEN, failed_reads=1)
    assert (gone.stored, gone.promised_uid) == (None, UID)
    assert step(gone, failing) == Wait("Node host does not exist; its kubelet registers it when it starts")
    back = seen(node(7, uid="node-7"), gone)
    other = replace(GROUND, machine=replace(MACHINE, uid="another"))
    assert standing(SETTINGS, other, back, PROVEN, ROSTERS, "").machine_uid == UID
    assert step(back) == Store(PROMISE, node(7, uid="node-7"))
    assert step(back, failing, after_seconds=3) != step(booted(node(), watchdog=WATCHDOG), failing, after_seconds=3)
    assert stored(back, PROMISE, Written.DONE).promised_uid == ""
    assert after(gone, WatchdogDisarmed(), 1.0).promised_uid == ""


def test_a_promise_that_was_withdrawn_did_not_vanish() -> None:
    unknown = stored(PROMISED, Withdrawn(BOOT), Written.UNKNOWN)
    assert seen(node(3, Withdrawn(BOOT)), unknown).promised_uid == ""


def test_a_promise_that_was_never_known_to_stand_does_not_vanish() -> None:
    unknown = stored(booted(node(record=CLOSED), watchdog=WATCHDOG), PROMISE, Written.UNKNOWN)
    assert seen(node(3, CLOSED), unknown).promised_uid == ""


def test_with_roster_and_machine_apart_the_promise_that_stands_is_kept_as_it_is() -> None:
    apart = replace(GROUND, machine=replace(MACHINE, uid="another"), electorate=electorate(2))
    found = step(PROMISED, host_context=apart, settings=timeout(15.0))
    assert isinstance(found, Wait) and "uid another" in found.reason


def test_with_roster_and_machine_apart_a_first_promise_of_unknown_outcome_opens_no_gate() -> None:
    unknown = stored(booted(node(record=CLOSED), watchdog=WATCHDOG), PROMISE, Written.UNKNOWN)
    apart = replace(GROUND, machine=replace(MACHINE, uid="another"))
    found = step(seen(node(record=CLOSED), unknown), host_context=apart)
    assert isinstance(found, Wait) and "uid another" in found.reason


@pytest.mark.parametrize("record", [GateClosed("boot-before", CLOSED.gate), Withdrawn("boot-before")])
def test_another_boots_record_is_none_of_ours(record: GateClosed | Withdrawn) -> None:
    assert booted(node(record=record)).stored is None


def test_the_boot_of_every_record_counts() -> None:
    assert booted(node(record=CLOSED)).stored == CLOSED
    assert booted(node(record=Withdrawn(BOOT))).stored == Withdrawn(BOOT)
    assert isinstance(PROMISED.stored, Armed)
