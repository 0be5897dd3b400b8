"""The saved state: what survives a crash of the daemon, and what happens to files that can't be relied on."""

from __future__ import annotations

import json
import os
from dataclasses import fields, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd import config
from pp_hostd.agent.saved_state import MAX_SENTENCE_CHARACTERS, SavedState, parse_saved_state
from pp_hostd.agent.state import StateFiles
from pp_hostd.model.boot_commitments import BootCommitments, Gate, Pending, WatchdogArmed
from pp_hostd.model.control import Maintenance
from pp_hostd.model.evidence import WatchedCondemned
from pp_hostd.model.inquiry import Inquiry, Reply, Said
from pp_hostd.model.memory import Decision, LastRead, Lifted, Memory, Outage, Proof, Source
from pp_hostd.model.promise import WatchdogKind
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings
from tests.agent.values import BOND, BOOT, INQUIRY, MEMORY, NOW, PROMISE, roster
from tests.harness.bed.namespaces import make_read_only, mount
from tests.harness.isolated import isolated
from tests.model import strategies as draw

KEPT = SavedState(MEMORY, BOND)

times = st.floats(0, NOW)
spans = st.tuples(times, times).map(lambda pair: (min(pair), max(pair)))
sentences = st.text(max_size=MAX_SENTENCE_CHARACTERS)
ids = st.none() | draw.counts
replies = st.lists(st.builds(Reply, draw.names, st.sampled_from(Said), ids), max_size=4).map(tuple)
asked = st.lists(draw.names, max_size=5).map(tuple)


@st.composite
def inquiries(drawn: st.DrawFn) -> Inquiry:
    (started_at, round_began_at), names = drawn(spans), drawn(asked)
    in_round = drawn(st.integers(0, len(names)))
    seed = drawn(st.integers(-(1 << 128), 1 << 128))
    return Inquiry(started_at, seed, drawn(st.integers(0, 20)), round_began_at, names, in_round, drawn(replies))


memories = st.builds(
    Memory,
    proof=st.none() | st.builds(Proof, times, st.sampled_from(Source), sentences),
    failed_reads=st.integers(0, 1000),
    last_read=st.none() | spans.flatmap(lambda span: st.builds(LastRead, *map(st.just, span), sentences)),
    inquiry=st.none() | inquiries(),
    outage=st.none() | spans.flatmap(lambda span: st.builds(Outage, *map(st.just, span), sentences)),
    lifted=st.lists(st.builds(Lifted, draw.words, draw.counts), max_size=3).map(tuple),
    watched=st.none() | st.builds(WatchedCondemned, draw.words, draw.counts, times),
    watched_failures=draw.counts,
    condemned_id=ids,
    decision=st.none() | st.builds(Decision, times, sentences, ids),
)
all_commitments = st.builds(
    BootCommitments,
    boot=st.just(BOOT),
    gate=st.just(Gate.OPEN),
    watchdog=st.none()
    | st.builds(
        WatchdogArmed, st.sampled_from(WatchdogKind), draw.timeouts, st.lists(sentences, max_size=2).map(tuple)
    ),
    stored=st.none() | draw.agent_records,
    promised_uid=st.just("") | draw.words,
    pending=st.lists(st.builds(Pending, draw.agent_records, draw.words), max_size=2).map(tuple),
)
kepts = st.builds(SavedState, memories, all_commitments)


@pytest.fixture
def files(tmp_path: Path) -> StateFiles:
    return StateFiles(str(tmp_path / "run"), str(tmp_path / "var"))


def state_of(files: StateFiles) -> Path:
    return Path(files.run_directory) / "state"


def before_of(files: StateFiles) -> Path:
    return Path(files.run_directory) / "state.before"


def parse(text: object) -> SavedState | Unreadable | None:
    return parse_saved_state(text, BOOT, Gate.OPEN, NOW)


@draw.examples
@given(kept=kepts, other=kepts)
def test_every_change_of_the_text_is_a_change_that_is_written(kept: SavedState, other: SavedState) -> None:
    for part in ("memory", "commitments"):
        known, news = getattr(kept, part), getattr(other, part)
        for name in (each.name for each in fields(known)):
            changed = replace(kept, **{part: replace(known, **{name: getattr(news, name)})})
            assert changed.render() == kept.render() or changed.lasting != kept.lasting, name
            assert changed.binding == kept.binding or changed.lasting != kept.lasting, name


@draw.examples
@given(kept=kepts)
def test_what_was_kept_comes_back_as_it_was(kept: SavedState) -> None:
    assert parse(kept.render()) == kept


@draw.examples
@given(kept=kepts, data=st.data())
def test_damage_is_unreadable_or_again_something_that_can_be_kept(kept: SavedState, data: st.DataObject) -> None:
    parsed = parse(json.dumps(data.draw(draw.damaged(json.loads(kept.render())))))
    assert not isinstance(parsed, SavedState) or parse(parsed.render()) == parsed


@draw.examples
@given(kept=kepts, data=st.data())
def test_half_a_file_is_unreadable(kept: SavedState, data: st.DataObject) -> None:
    text = kept.render()
    assert isinstance(parse(text[: data.draw(st.integers(0, len(text) - 1))]), Unreadable)


@draw.examples
@given(source=draw.anything | draw.json_values.map(json.dumps))
def test_foreign_content_is_unreadable_and_never_raises(source: object) -> None:
    assert isinstance(parse(source), Unreadable)


def test_the_read_under_way_died_with_the_process_and_asked_peers_did_not() -> None:
    memory = replace(MEMORY, reading_since=999.0, check_at=999.5, inquiry=INQUIRY)
    assert parse(SavedState(memory, BOND).render()) == SavedState(
        replace(memory, reading_since=None, check_at=None), BOND
    )


def test_the_look_at_the_node_is_made_anew_and_promises_are_not() -> None:
    commitments = replace(
        BOND, pending=(Pending(replace(PROMISE, roster_version=4), "17"),), trouble="x", not_before_at=1001.0
    )
    assert parse(SavedState(MEMORY, commitments).render()) == SavedState(
        MEMORY, replace(commitments, trouble="", not_before_at=0.0)
    )


@pytest.mark.parametrize(
    "memory",
    [
        replace(MEMORY, proof=Proof(NOW + 1, Source.OWN_READ)),
        replace(MEMORY, last_read=LastRead(998.0, NOW + 1, "")),
        replace(MEMORY, outage=Outage(998.0, NOW + 1, "")),
        replace(MEMORY, decision=Decision(NOW + 1, "", None)),
        replace(MEMORY, inquiry=replace(INQUIRY, round_began_at=NOW + 1)),
    ],
)
def test_a_time_in_the_future_is_no_gain_of_time(memory: Memory) -> None:
    parsed = parse(SavedState(memory, BOND).render())
    assert isinstance(parsed, Unreadable)
    assert "1001" in parsed.reason


@pytest.mark.parametrize("in_round", [-1, 4, True])
def test_no_more_peers_can_be_of_this_round_than_were_asked(in_round: int) -> None:
    inquiry = replace(INQUIRY, in_round=in_round)
    assert isinstance(parse(SavedState(replace(MEMORY, inquiry=inquiry), BOND).render()), Unreadable)


def test_a_sentence_of_any_length_can_be_kept() -> None:
    memory = replace(MEMORY, last_read=LastRead(998.0, 998.1, "x" * 100_000))
    parsed = parse(SavedState(memory, BOND).render())
    assert isinstance(parsed, SavedState)
    assert parsed.memory.last_read == LastRead(998.0, 998.1, "x" * MAX_SENTENCE_CHARACTERS)


def test_a_restarted_daemon_finds_what_the_last_one_saved(files: StateFiles) -> None:
    assert files.save(KEPT) == ""
    restarted = StateFiles(files.run_directory, files.var_directory)
    assert restarted.load(BOOT, Gate.CLOSED, NOW) == (SavedState(MEMORY, replace(BOND, gate=Gate.CLOSED)), ())
    assert state_of(files).stat().st_mode & 0o777 == 0o600


def test_a_restarted_daemon_takes_an_inquiry_up_where_answers_were_lost(files: StateFiles) -> None:
    files.save(SavedState(replace(MEMORY, inquiry=INQUIRY), BOND))
    kept, _ = files.load(BOOT, Gate.OPEN, NOW)
    assert kept is not None
    assert kept.memory.inquiry == INQUIRY.resumed()
    files.save(kept)
    assert files.load(BOOT, Gate.OPEN, NOW) == (kept, ())


def test_nothing_saved_is_nothing_known_and_no_trouble(files: StateFiles) -> None:
    assert files.load(BOOT, Gate.OPEN, NOW) == (None, ())


def test_the_state_of_another_boot_is_old_and_no_trouble(files: StateFiles) -> None:
    files.save(KEPT)
    assert files.load("another-boot", Gate.OPEN, 3.0) == (None, ())
    assert state_of(files).exists()


def test_what_has_not_changed_is_not_written_again(files: StateFiles) -> None:
    files.save(KEPT)
    state_of(files).unlink()
    assert files.save(replace(KEPT, memory=replace(MEMORY, reading_since=999.0))) == ""
    assert not state_of(files).exists()
    files.save(replace(KEPT, memory=replace(MEMORY, failed_reads=1)))
    assert state_of(files).exists()


@pytest.mark.parametrize(
    "content",
    [b"", b"\xff\x00", b"{}", b'{"v":2}', KEPT.render().encode()[:-9], b"[" * 100_000],
    ids=["nothing", "no text", "no version", "another version", "half", "too deep"],
)
def test_a_state_whose_copies_are_both_corrupt_is_set_aside_and_counts_as_nothing(
    files: StateFiles, content: bytes
) -> None:
    files.save(KEPT)
    paths = (state_of(files), before_of(files))
    for damage in (b"older damage", content):
        for path in paths:
            path.write_bytes(damage)
        kept, sentences = files.load(BOOT, Gate.OPEN, NOW)
        assert kept is None
        assert len(sentences) == 2
        for path, sentence in zip(paths, sentences):
            assert sentence.startswith(f"{path}: ")
            assert f"renamed it to {path}.corrupt" in sentence
    assert {path.name for path in Path(files.run_directory).iterdir()} == {"state.corrupt", "state.before.corrupt"}
    assert Path(f"{state_of(files)}.corrupt").read_bytes() == content
    assert files.load(BOOT, Gate.OPEN, NOW) == (None, ())


LATER = replace(KEPT, memory=replace(MEMORY, proof=Proof(NOW - 0.5, Source.OWN_READ), failed_reads=0))
DECIDED = replace(LATER, memory=replace(LATER.memory, decision=Decision(NOW, "it was condemned", 7)))
PROMISED = replace(LATER, commitments=replace(BOND, pending=(Pending(replace(PROMISE, roster_version=4), "17"),)))


def test_of_a_corrupt_state_the_judgement_before_stands_and_is_at_most_one_older(files: StateFiles) -> None:
    proofs = [replace(MEMORY, proof=Proof(NOW - 10 + number, Source.OWN_READ)) for number in range(5)]
    for memory in proofs:
        assert files.save(SavedState(memory, BOND)) == ""
    state_of(files).write_text("{")
    kept, sentences = files.load(BOOT, Gate.OPEN, NOW)
    assert kept == SavedState(proofs[-2], BOND)
    assert len(sentences) == 2
    assert f"renamed it to {state_of(files)}.corrupt" in sentences[0]
    assert sentences[1] == f"{before_of(files)}: the copy of the judgement before counts instead"
    assert files.load(BOOT, Gate.OPEN, NOW) == (kept, ())


@pytest.mark.parametrize("bound", [DECIDED, PROMISED], ids=["a decision", "a promise"])
def test_no_copy_lacks_what_the_host_has_bound_itself_to(files: StateFiles, bound: SavedState) -> None:
    files.save(KEPT)
    files.save(LATER)
    files.save(bound)
    state_of(files).write_text("{")
    assert files.load(BOOT, Gate.OPEN, NOW)[0] == bound


def test_the_copy_of_another_boot_is_old_too(files: StateFiles) -> None:
    files.save(KEPT)
    state_of(files).write_text("{")
    kept, sentences = files.load("another-boot", Gate.OPEN, 3.0)
    assert (kept, len(sentences)) == (None, 1)


def test_a_crash_between_two_copies_leaves_the_older_one(files: StateFiles) -> None:
    files.save(KEPT)
    files.save(LATER)
    state_of(files).unlink()
    assert files.is_bound(BOOT, NOW)
    assert files.load(BOOT, Gate.OPEN, NOW) == (KEPT, ())


def test_a_roster_that_is_corrupt_has_a_copy(files: StateFiles) -> None:
    kept = roster("a", "b", version=5)
    files.save_rosters([roster("a", version=3)])
    files.save_rosters([kept])
    Path(files.run_directory, "roster-5").write_text("{")
    rosters, sentences = files.load_rosters()
    assert (rosters, len(sentences)) == ((kept,), 1)
    assert files.load_rosters() == ((kept,), ())


def test_something_that_is_no_file_is_set_aside_too(files: StateFiles) -> None:
    state_of(files).parent.mkdir()
    os.mkfifo(state_of(files))
    kept, sentences = files.load(BOOT, Gate.OPEN, NOW)
    assert (kept, len(sentences)) == (None, 1)
    assert "is a FIFO" in sentences[0]


def test_a_directory_that_can_not_be_is_told_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    files = StateFiles(str(tmp_path / "file" / "run"), str(tmp_path / "file" / "var"))
    for trouble in (files.save(KEPT), files.save_report({}), files.save_rosters([roster("a")])):
        assert "can't be written (" in trouble
    assert files.load(BOOT, Gate.OPEN, NOW) == (None, ())
    assert files.load_rosters() == ((), ())


@isolated
def test_a_full_file_system_is_told_and_the_state_takes_the_place_of_the_last_if_it_fits_there(tmp_path: Path) -> None:
    mount("tmpfs", str(tmp_path), "size=64k")
    files = StateFiles(str(tmp_path), str(tmp_path))
    files.save(KEPT)
    with open(tmp_path / "ballast", "wb", buffering=0) as ballast:
        while ballast.write(b"x" * 4096) == 4096:
            if os.statvfs(tmp_path).f_bfree == 0:
                break
    later = replace(KEPT, memory=replace(MEMORY, failed_reads=1))
    assert "No space left on device" in files.save(later)
    assert files.load(BOOT, Gate.OPEN, NOW) == (later, ())
    assert parse(before_of(files).read_text()) == later, "the copy must not grow old while the disk is full"
    decided = replace(later, memory=replace(later.memory, decision=Decision(NOW, "", 7)))
    assert "No space left on device" in files.save(decided)
    assert [parse(path.read_text()) for path in (state_of(files), before_of(files))] == [decided, decided]
    files.save(later)
    proof, outage = (
        Proof(NOW, Source.OUTAGE, "x" * MAX_SENTENCE_CHARACTERS),
        Outage(NOW, NOW, "x" * MAX_SENTENCE_CHARACTERS),
    )
    larger = replace(KEPT, memory=replace(MEMORY, proof=proof, outage=outage))
    assert "No space left on device" in files.save(larger)
    assert files.load(BOOT, Gate.OPEN, NOW) == (later, ())
    (tmp_path / "ballast").unlink()
    assert files.save(later) == ""
    assert files.load(BOOT, Gate.OPEN, NOW) == (later, ())


@isolated
def test_a_read_only_file_system_is_told(tmp_path: Path) -> None:
    make_read_only(str(tmp_path))
    assert "Read-only file system" in StateFiles(str(tmp_path), str(tmp_path)).save(KEPT)


def test_the_rosters_that_may_be_in_force_are_kept_and_no_others(files: StateFiles) -> None:
    old, newer, newest = roster("a", version=3), roster("a", "b", version=5), roster("a", "b", "c", version=6)
    files.save_rosters([newer, old])
    files.save_rosters([newest, old])
    assert files.load_rosters() == ((newest, old), ())


def test_a_damaged_roster_is_set_aside_and_the_other_is_used(files: StateFiles) -> None:
    files.save_rosters([roster("a", version=3), roster("b", version=4)])
    for name in ("roster-4", "roster-4.copy"):
        (Path(files.run_directory) / name).write_text("{")
    rosters, sentences = files.load_rosters()
    assert rosters == (roster("a", version=3),)
    assert "roster-4.corrupt" in sentences[0]
    assert files.load_rosters() == (rosters, ())


def test_maintenance_outlasts_a_reboot_until_it_is_ended(files: StateFiles) -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    order = Maintenance("eve", noon, "new disk", noon.replace(hour=14))
    assert files.save_maintenance(order) == ""
    assert StateFiles("/nonexistent", files.var_directory).load_maintenance() == (order, ())
    assert files.save_maintenance(None) == ""
    assert files.save_maintenance(None) == ""
    assert files.load_maintenance() == (None, ())


def test_an_order_that_can_not_be_read_is_no_order(files: StateFiles) -> None:
    Path(files.var_directory).mkdir()
    (Path(files.var_directory) / "maintenance").write_text('{"v":1,"who":"eve"}')
    order, sentences = files.load_maintenance()
    assert order is None
    assert "maintenance.corrupt" in sentences[0]


@pytest.mark.parametrize("report", [{}, {"state": "healthy", "sentence": "ä"}])
def test_the_last_report_is_found_without_the_daemon(files: StateFiles, report: dict[str, Any]) -> None:
    assert files.last_report() is None
    files.save_report(report)
    assert files.last_report() == {"v": 1, **report}


@pytest.mark.parametrize("content", ["", "[]", "nul", "[" * 100_000], ids=["nothing", "a list", "half", "too deep"])
def test_a_damaged_report_is_no_report(files: StateFiles, content: str) -> None:
    files.save_report({})
    (Path(files.run_directory) / "report").write_text(content)
    assert files.last_report() is None


def test_the_settings_in_force_come_back_as_they_were(tmp_path: Path) -> None:
    agent = replace(Settings().agent, self_timeout_seconds=30.5, node_name="worker-1")
    settings = replace(Settings(), agent=agent, api=replace(Settings().api, servers=("https://192.0.2.1:6443",)))
    files = StateFiles(str(tmp_path), str(tmp_path))
    assert files.save_settings(settings) == ""
    assert config.load(files.settings_path).settings == settings
