"""The report: the same values for status, explain and everything else, with ages from one moment, and bounded."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timezone

import pytest

from pp_hostd.agent.report import MAX_ANSWERS, Extras, report
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.boot_commitments import Gate, Look, Pending, WatchdogArmed
from pp_hostd.model.control import Maintenance
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.inquiry import Inquiry, Reply, Said
from pp_hostd.model.memory import Decision, LastRead, Proof, Source
from pp_hostd.model.promise import WatchdogKind, Withdrawn
from pp_hostd.model.settings import Agent, Settings
from pp_hostd.model.verdict import State, Verdict
from tests.agent.values import BOND, BOOT, GROUND, INQUIRY, MEMORY, NOW, PROMISE, UID, UNARMED, judged, looked, node


def test_a_healthy_host_is_told_with_proof_watchdog_promise_and_deadline() -> None:
    told = judged()
    assert (told["node"], told["boot"], told["at"], told["mode"]) == ("a", BOOT, NOW, "enforce")
    assert (told["state"], told["sentence"]) == ("healthy", "healthy: its machine is not condemned")
    assert told["proof"] == {"source": "own read", "detail": "", "age_seconds": 2.0}
    assert told["feed_until_seconds"] == 20.0
    assert told["armed"] == {"kind": "hardware", "timeout_seconds": 10.0, "troubles": []}
    assert told["gate"] == {"kind": "hold", "state": "open", "opened_by": None}
    assert told["promise"]["stored"] == json.loads(PROMISE.render())
    assert told["machine"] == {"subject": "a", "uid": UID}
    assert told["roster"] == {"version": 3, "nodes": 4, "lists_this_node": True}
    assert told["next"] == {"what": "without a newer proof it stops feeding its watchdog", "seconds": 20.0}
    assert told["inquiry"] is None


def test_ages_are_those_of_the_moment_of_asking_not_of_judging() -> None:
    proof = Proof(998.0, Source.OWN_READ)
    verdict = Verdict(NOW, State.HEALTHY, "", proof, 1020.0, True, False, (), None, NOW + 2)
    told = report(Settings(), GROUND, BOND, MEMORY, verdict, Extras(), NOW + 1.5)
    assert told["proof"]["age_seconds"] == 3.5
    assert told["feed_until_seconds"] == 18.5
    assert told["reads"]["last_age_seconds"] == 3.5


def test_a_real_timeout_and_what_made_it_so_are_told() -> None:
    watchdog = WatchdogArmed(WatchdogKind.SOFTDOG, 12.0, ("/dev/watchdog does not exist",))
    told = judged(commitments=replace(BOND, watchdog=watchdog))["armed"]
    assert told == {"kind": "softdog", "timeout_seconds": 12.0, "troubles": ["/dev/watchdog does not exist"]}


def test_failed_reads_are_counted_with_the_last_reason() -> None:
    told = judged(replace(MEMORY, failed_reads=2, last_read=LastRead(997.0, 999.0, "timed out"), reading_since=999.5))
    assert told["state"] == "suspect"
    assert told["reads"] == {
        "failed_in_a_row": 2,
        "last_failure": "timed out",
        "last_age_seconds": 3.0,
        "under_way_seconds": 0.5,
    }


def test_an_inquiry_is_told_with_its_round_and_what_was_said() -> None:
    told = judged(replace(MEMORY, inquiry=replace(INQUIRY, round_began_at=999.0)))
    assert told["inquiry"] == {
        "round": 2,
        "rounds": 4,
        "age_seconds": 10.0,
        "asked": 3,
        "answers": {"api-error": 1, "unhealthy": 1},
        "summary": INQUIRY.summary(),
    }
    assert told["next"] == {"what": "this round of the inquiry ends", "seconds": 1.0}


def test_a_write_with_an_unknown_outcome_is_told_beside_what_stands() -> None:
    told = judged(commitments=replace(BOND, pending=(Pending(Withdrawn(BOOT), "17"),)))["promise"]
    assert told["stored"]["state"] == "armed"
    assert [each["state"] for each in told["outcome_unknown"]] == ["withdrawn"]


def test_a_waiting_host_feeds_nothing_and_says_what_it_waits_for() -> None:
    told = judged(commitments=UNARMED, host_context=replace(GROUND, electorate=None))
    assert (told["state"], told["waiting_for"]) == ("waiting", "there is no roster yet")
    assert (told["armed"], told["feed_until_seconds"], told["next"], told["roster"]) == (None, None, None, None)
    assert told["gate"]["state"] == "closed"
    assert told["promise"]["stored"]["state"] == "gate-closed"


@pytest.mark.parametrize(
    ("look", "seen"),
    [
        (None, {"seen": "unknown", "freeing": False}),
        (looked(missing=True), {"seen": "missing", "freeing": False}),
        (looked(node=node()), {"seen": "present", "freeing": False}),
        (looked(node=node(freeing=7)), {"seen": "present", "freeing": True}),
    ],
)
def test_the_node_is_told_as_last_seen(look: Look | None, seen: object) -> None:
    assert judged(commitments=replace(UNARMED, look=look))["node_object"] == seen


def test_a_reset_is_told_with_the_time_by_which_the_watchdog_does_it() -> None:
    told = judged(replace(MEMORY, decision=Decision(997.0, "no peer confirms that it is healthy", 7)))
    assert (told["state"], told["feed_until_seconds"]) == ("resetting", None)
    assert told["next"] == {"what": "its watchdog resets this host, if nothing else did", "seconds": 7.0}


def test_a_dry_run_says_so() -> None:
    commitments = replace(BOND, watchdog=None, stored=None, gate=Gate.ABSENT)
    told = judged(commitments=commitments, settings=Settings(agent=Agent(mode="dry-run")))
    assert (told["mode"], told["state"], told["armed"]) == ("dry-run", "healthy", None)


def test_maintenance_troubles_and_the_last_boot_are_told() -> None:
    noon = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
    host_context = replace(GROUND, maintenance=Maintenance("eve", noon, "new disk", noon), roster_trouble="no watch")
    extras = Extras(troubles=("memory is not locked",), last_boot="the last boot ended because of that")
    told = judged(commitments=replace(UNARMED, trouble="the API is away"), host_context=host_context, extras=extras)
    assert told["maintenance"]["who"] == "eve"
    assert told["troubles"] == ["the API is away", "no watch", "memory is not locked"]
    assert told["last_boot"] == "the last boot ended because of that"


def test_the_last_answers_of_peers_are_told_newest_first() -> None:
    unhealthy = Answer(Health.UNHEALTHY, 7, "token", "nonce", "c", "a", "a")
    extras = Extras(answers=(PeerAnswered("b", 990, 992, None, "no route"), PeerAnswered("c", 990, 999, unhealthy)))
    assert judged(extras=extras)["answers"] == [
        {"peer": "c", "said": "unhealthy", "id": 7, "why": "", "age_seconds": 1.0},
        {"peer": "b", "said": "silent", "id": None, "why": "no route", "age_seconds": 8.0},
    ]


def test_thousands_of_peers_make_no_long_report() -> None:
    names = tuple(f"worker-{number}" for number in range(5000))
    replies = tuple(Reply(name, Said.API_ERROR, None) for name in names[:-1])
    inquiry = Inquiry(990.0, 1, 4, 999.5, names, 5000, replies)
    extras = Extras(answers=tuple(PeerAnswered(name, 990, 992, None, "silence") for name in names))
    told = judged(replace(MEMORY, inquiry=inquiry), extras=extras)
    assert len(told["answers"]) == MAX_ANSWERS
    assert len(json.dumps(told)) < 10_000
