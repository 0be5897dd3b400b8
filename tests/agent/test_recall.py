"""The state that a starting daemon takes over from the run before it, and the state that it ignores."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.binding import standing
from pp_hostd.agent.judge import judge
from pp_hostd.agent.saved_state import SavedState
from pp_hostd.agent.sense.boot import RECORD, Ending
from pp_hostd.agent.state import Recalled, StateFiles, recall
from pp_hostd.model.boot_commitments import BootCommitments, Gate
from pp_hostd.model.memory import Decision, Outage, Proof, Source, Standing
from pp_hostd.model.settings import Agent, Settings
from pp_hostd.model.verdict import State
from tests.agent.values import BOND, BOOT, GROUND, MEMORY, NOW, PROMISE

DECIDED = replace(MEMORY, decision=Decision(NOW - 1, "no peer confirms that it is healthy", None))


@pytest.fixture
def files(tmp_path: Path) -> StateFiles:
    os.mkdir(tmp_path / "run")
    return StateFiles(str(tmp_path / "run"), str(tmp_path / "var"))


def recalled(files: StateFiles, kept: SavedState) -> Recalled:
    assert files.save(kept) == ""
    return recall(files, GateFiles(files.run_directory), Settings(), BOOT, NOW)


def test_what_a_dry_run_decided_is_not_done_by_a_run_that_enforces(files: StateFiles) -> None:
    assert recalled(files, SavedState(DECIDED, BootCommitments(BOOT, Gate.OPEN))).memory.decision is None


def test_what_an_armed_or_promised_host_decided_is_done(files: StateFiles) -> None:
    for commitments in (replace(BOND, stored=None), replace(BOND, watchdog=None)):
        assert recalled(files, SavedState(DECIDED, commitments)).memory.decision == DECIDED.decision


def test_that_the_end_of_the_last_boot_was_told_is_known_to_every_run_of_this_boot(files: StateFiles) -> None:
    kept = SavedState(MEMORY, BOND)
    assert not recalled(files, kept).last_boot_told
    Path(files.var_directory, RECORD).write_text(Ending("another-boot", "it was condemned", 7).render())
    first, second = recalled(files, kept), recalled(files, kept)
    assert "it was condemned" in first.last_boot and first.last_boot_told
    assert second.last_boot == "" and second.last_boot_told


def begun(files: StateFiles, gate: str, mode: str = "enforce") -> Gate:
    settings = Settings(agent=Agent(gate=gate, mode=mode))
    return recall(files, GateFiles(files.run_directory), settings, BOOT, NOW).commitments.gate


def test_a_boot_that_relies_on_the_taint_does_so_from_its_first_run_on(files: StateFiles) -> None:
    assert begun(files, "taint") is Gate.CLOSED
    files.save(SavedState(MEMORY, BootCommitments(BOOT, Gate.CLOSED)))
    assert begun(files, "taint") is Gate.CLOSED


@pytest.mark.parametrize(("gate", "mode"), [("none", "enforce"), ("hold", "enforce"), ("taint", "dry-run")])
def test_a_boot_that_began_without_a_gate_has_none_by_a_later_setting(files: StateFiles, gate: str, mode: str) -> None:
    assert begun(files, gate, mode) is Gate.ABSENT
    files.save(SavedState(MEMORY, BootCommitments(BOOT, Gate.ABSENT)))
    assert begun(files, "taint") is Gate.ABSENT


def test_a_run_that_finds_its_state_damaged_does_not_rely_on_the_taint_alone(files: StateFiles) -> None:
    Path(files.run_directory, "state").write_text("{")
    assert begun(files, "taint") is Gate.ABSENT


def standing_of(found: Recalled) -> Standing:
    return standing(Settings(), GROUND, found.commitments, found.memory, {3: ("a", "b", "c", "d")}, "")


def test_an_armed_host_that_finds_its_state_damaged_in_an_outage_goes_on_feeding(files: StateFiles) -> None:
    outage = Outage(NOW - 5, NOW - 4, "3 api-error of 3 asked")
    for at in (NOW - 9, NOW - 5):
        files.save(SavedState(replace(MEMORY, proof=Proof(at, Source.OUTAGE, "3 api-error"), outage=outage), BOND))
    Path(files.run_directory, "state").write_text("{")
    found = recall(files, GateFiles(files.run_directory), Settings(), BOOT, NOW)
    verdict = judge(Settings(), standing_of(found), found.memory, (), NOW, seed=1).verdict
    assert (verdict.state, verdict.feed) == (State.OUTAGE, True)
    assert verdict.feed_until_at == NOW - 9 + PROMISE.self_timeout_seconds  # of the older proof: no time is gained


def test_a_damaged_state_talks_no_host_out_of_its_reset(files: StateFiles) -> None:
    files.save(SavedState(MEMORY, BOND))
    files.save(SavedState(DECIDED, BOND))
    Path(files.run_directory, "state").write_text("{")
    found = recall(files, GateFiles(files.run_directory), Settings(), BOOT, NOW)
    assert found.memory.decision == DECIDED.decision
    assert not judge(Settings(), standing_of(found), found.memory, (), NOW, seed=1).verdict.feed
