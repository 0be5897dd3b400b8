"""Explaining: each state says why and what would change it; each thing that is waited for says who can end it."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

import pytest

from pp_hostd.agent.explain import explain
from pp_hostd.model.boot_commitments import BootCommitments, Gate, Pending
from pp_hostd.model.control import Maintenance
from pp_hostd.model.evidence import HostContext
from pp_hostd.model.machine import Machine
from pp_hostd.model.memory import Decision, LastRead, Memory, Outage, Proof, Source
from pp_hostd.model.promise import Withdrawn
from pp_hostd.model.settings import Agent, Settings
from tests.agent.values import (
    BOND,
    BOOT,
    GROUND,
    INQUIRY,
    MEMORY,
    UNARMED,
    electorate,
    judged,
    looked,
    node,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
DRY_RUN = Settings(agent=Agent(mode="dry-run"))


def test_a_healthy_host_says_how_long_it_is_fed_and_what_would_change_that() -> None:
    assert explain(judged()) == [
        "Healthy: its machine is not condemned.",
        "The last proof that it is not condemned began 2.0 s ago: own read.",
        "Its watchdog is fed for 20.0 s more, and longer with each new proof; it reads its machine every 4 s.",
        "3 failed reads in a row would make it ask its peers; a condemnation would reset it.",
    ]


def test_a_suspect_host_counts_its_failed_reads() -> None:
    memory = replace(MEMORY, failed_reads=2, last_read=LastRead(997.0, 999.0, "timed out"))
    sentences = explain(judged(memory))
    assert "2 of 3 reads in a row have failed; after 3 it asks its peers." in sentences
    assert 'One good read, or one peer that says "healthy", proves that it may live on.' in sentences
    assert "Without a new proof it is fed for 20.0 s more." in sentences


def test_an_armed_host_without_proof_does_not_count_failures_that_never_were() -> None:
    sentences = explain(judged(Memory()))
    assert "There is no proof yet that this host's machine is not condemned." in sentences
    assert not any("0 of 3" in sentence for sentence in sentences)


def test_an_inquiry_is_explained_by_what_the_peers_said() -> None:
    sentences = explain(judged(replace(MEMORY, inquiry=replace(INQUIRY, round_began_at=999.0))))
    assert f"It has been asking its peers for 10.0 s, in round 2 of 4: {INQUIRY.summary()}." in sentences


def test_an_outage_says_that_the_host_stays_up() -> None:
    memory = replace(
        MEMORY,
        proof=Proof(990.0, Source.OUTAGE, "3 api-error of 3 asked"),
        outage=Outage(990.0, 996.0, "3 api-error of 3 asked"),
    )
    sentences = explain(judged(memory))
    assert any("the control plane is what failed, so it stays up" in sentence for sentence in sentences)
    assert "A good read ends this." in sentences


def test_a_condemned_host_with_nothing_started_waits_for_the_leader() -> None:
    sentences = explain(judged(replace(MEMORY, condemned_id=7), UNARMED))
    waits = "It waits until condemnation 7 is lifted: the leader does that once it has released the workloads."
    assert waits in sentences


def test_a_reset_is_final_and_has_a_time() -> None:
    sentences = explain(judged(replace(MEMORY, decision=Decision(997.0, "no peer confirms that it is healthy", None))))
    assert "The decision is final: nothing can talk this host out of it." in sentences
    assert "Its watchdog resets this host, if nothing else did, in 7.0 s." in sentences


def test_a_reset_in_a_dry_run_says_how_to_have_it_in_earnest() -> None:
    memory = replace(MEMORY, decision=Decision(999.0, "no peer confirms that it is healthy", None))
    sentences = explain(judged(memory, replace(UNARMED, gate=Gate.ABSENT, stored=None), settings=DRY_RUN))
    assert "A dry run does nothing about it; the next proof ends this state." in sentences
    assert any('agent.mode = "enforce"' in sentence for sentence in sentences)


ELSEWHERE = replace(GROUND, machine=Machine(None, "a", "another-uid", "5", GROUND.machine.condemnation, "a"))  # type: ignore[union-attr]
API = "The agent continues by itself as soon as the API answers"
FAILED = replace(MEMORY, proof=None, last_read=LastRead(999.5, 999.6, "401 Unauthorized"))
WAITS: list[tuple[str, HostContext, BootCommitments, Memory, str]] = [
    ("the agent is stopping", replace(GROUND, stopping=True), UNARMED, MEMORY, "systemctl start pp-hostd"),
    (
        "maintenance by eve",
        replace(GROUND, maintenance=Maintenance("eve", NOON, "new disk", NOON)),
        replace(UNARMED, gate=Gate.OPEN, stored=Withdrawn(BOOT)),
        MEMORY,
        "It ends at 2026-03-01T12:00:00Z, or at once with: pp-hostd maintenance off",
    ),
    (
        "it is the only node",
        replace(GROUND, electorate=electorate("a")),
        replace(UNARMED, gate=Gate.OPEN, stored=Withdrawn(BOOT)),
        MEMORY,
        "With three nodes in the roster",
    ),
    (
        "of two nodes none is armed",
        replace(GROUND, electorate=electorate("a", "b")),
        replace(UNARMED, gate=Gate.OPEN, stored=Withdrawn(BOOT)),
        MEMORY,
        "with two, if agent.arm_pairs is true",
    ),
    ("timed out", GROUND, replace(UNARMED, look=None, not_before_at=1001.0, trouble="timed out"), MEMORY, API),
    (
        "Node a does not exist; the leader recreates it",
        GROUND,
        replace(UNARMED, look=looked(missing=True, backup=True), not_before_at=1001.0),
        MEMORY,
        "as soon as Node a exists",
    ),
    (
        "the leader is freeing its workloads",
        GROUND,
        replace(UNARMED, look=looked(node=node(freeing=7))),
        MEMORY,
        "once the leader has made the Node usable again",
    ),
    ("there is no roster yet", replace(GROUND, electorate=None), UNARMED, MEMORY, "pp-leader writes the roster"),
    (
        "Node a is not in the roster",
        replace(GROUND, electorate=electorate("b", "c")),
        replace(UNARMED, gate=Gate.OPEN, stored=Withdrawn(BOOT)),
        MEMORY,
        "enrol it with: pp-leader enroll a",
    ),
    ("its machine has not been read yet", replace(GROUND, machine=None), UNARMED, MEMORY, API),
    ("the roster names machine a", ELSEWHERE, UNARMED, MEMORY, "enrol it again with: pp-leader enroll a"),
    ("401 Unauthorized", GROUND, UNARMED, FAILED, "/etc/pp-hostd/kubeconfig are valid"),
]


@pytest.mark.parametrize(
    ("reason", "host_context", "commitments", "memory", "remedy"), WAITS, ids=[each[0] for each in WAITS]
)
def test_each_thing_that_is_waited_for_says_who_can_end_it(
    reason: str, host_context: HostContext, commitments: BootCommitments, memory: Memory, remedy: str
) -> None:
    told = judged(memory, commitments, host_context)
    assert (told["state"], told["waiting_for"][: len(reason)]) == ("waiting", reason)
    sentences = explain(told)
    assert reason in sentences[0]
    assert "This host is not armed: nothing resets it, and the leader may not count on its death." in sentences
    assert any(remedy in sentence for sentence in sentences)


def test_an_armed_host_that_wants_something_says_so_beside_its_health() -> None:
    commitments = replace(BOND, look=looked())
    sentences = explain(
        judged(MEMORY, commitments, replace(GROUND, electorate=None, roster_trouble="the roster is unreadable"))
    )
    assert sentences[0] == "Healthy: its machine is not condemned."
    assert "The roster is unreadable." in sentences


@pytest.mark.parametrize(
    ("gate", "settings", "said"),
    [
        (Gate.CLOSED, Settings(), "The gate holds kubelet.service until then, so no workload starts."),
        (Gate.CLOSED, Settings(agent=Agent(gate="taint")), "the leader's taint is what keeps workloads away"),
        (Gate.ABSENT, Settings(), "Nothing holds kubelet.service in this boot"),
    ],
)
def test_a_gate_that_is_not_open_is_explained(gate: Gate, settings: Settings, said: str) -> None:
    host_context = replace(GROUND, electorate=None)
    assert any(
        said in each
        for each in explain(
            judged(commitments=replace(UNARMED, gate=gate), host_context=host_context, settings=settings)
        )
    )


def test_writes_with_an_unknown_outcome_are_explained() -> None:
    commitments = replace(BOND, pending=(Pending(Withdrawn(BOOT), "17"),), not_before_at=1001.0, look=looked())
    assert any("outcome of 1 write" in sentence for sentence in explain(judged(commitments=commitments)))
