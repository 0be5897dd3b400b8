"""The agent's figures: why a host is not protected, how inquiries end, what reset the host before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pp_hostd.agent.act.reset import ordered_by
from pp_hostd.agent.figures import (
    Concluded,
    EndedBy,
    Inquiries,
    Unprotected,
    ended_by,
    reset_figures,
    standing_figures,
    why_unprotected,
)
from pp_hostd.agent.sense.boot import Ending
from pp_hostd.model.boot_commitments import BootCommitments, Gate
from pp_hostd.model.evidence import HostContext
from pp_hostd.model.memory import Decision, Memory, Outage, Proof, Source
from pp_hostd.model.promise import Withdrawn
from pp_hostd.model.settings import Agent, Settings
from pp_hostd.service.metric import render
from tests.agent.values import BOND, BOOT, INQUIRY, MEMORY, electorate, looked, node

UNARMED = BootCommitments(BOOT, Gate.CLOSED)
LISTED = HostContext("a", electorate("a", "b", "c"))
DECIDED = Decision(999.0, "its machine is condemned", 7)


def why(
    commitments: BootCommitments = UNARMED, memory: Memory = MEMORY, host: HostContext = LISTED, **agent: Any
) -> Unprotected | None:
    return why_unprotected(Settings(agent=Agent(**agent)), host, commitments, memory)


def test_a_host_is_protected_if_it_is_armed_and_its_promise_stored() -> None:
    assert why(BOND) is None
    assert why(replace(BOND, stored=Withdrawn(BOOT, None))) is Unprotected.ARMING
    assert why(replace(BOND, watchdog=None)) is Unprotected.ARMING
    assert why(BOND, replace(MEMORY, decision=DECIDED)) is Unprotected.RESETTING


REASONS = {
    Unprotected.DRY_RUN: {"mode": "dry-run", "memory": replace(MEMORY, decision=DECIDED)},
    Unprotected.STOPPING: {"host": replace(LISTED, stopping=True)},
    Unprotected.CONDEMNED: {"memory": replace(MEMORY, condemned_id=7)},
    Unprotected.FREEING: {"commitments": replace(UNARMED, look=looked(node=node(freeing=7)))},
    Unprotected.NO_MACHINE: {"memory": replace(MEMORY, machine_gone=True)},
    Unprotected.NO_ROSTER: {"host": HostContext("a")},
    Unprotected.NOT_ENROLLED: {"host": HostContext("x", electorate("a", "b", "c"))},
    Unprotected.TOO_FEW_NODES: {"host": HostContext("a", electorate("a", "b"))},
    Unprotected.NO_NODE: {"commitments": replace(UNARMED, look=looked(missing=True, node=None))},
    Unprotected.NO_PROOF: {"memory": Memory()},
    Unprotected.ARMING: {},
}


@pytest.mark.parametrize(("reason", "given"), REASONS.items(), ids=lambda each: getattr(each, "value", ""))
def test_a_host_that_is_not_protected_has_one_reason(reason: Unprotected, given: dict[str, Any]) -> None:
    assert why(**given) is reason


def test_every_reason_is_a_figure() -> None:
    text = render(standing_figures(Settings(), LISTED, UNARMED, MEMORY))
    assert "pp_hostd_protected 0\n" in text
    assert 'pp_hostd_unprotected_reason{reason="arming"} 1\n' in text
    assert text.count("pp_hostd_unprotected_reason{") == len(Unprotected)
    assert text.endswith("# TYPE pp_hostd_watchdog_timeout_seconds gauge\n")
    armed = render(standing_figures(Settings(), LISTED, BOND, MEMORY))
    assert 'pp_hostd_watchdog_armed{kind="hardware"} 1\n' in armed
    assert armed.endswith("pp_hostd_watchdog_timeout_seconds 10.0\n")


ASKING = replace(MEMORY, inquiry=INQUIRY)
ENDS = {
    Concluded.CONFIRMED: replace(MEMORY, proof=Proof(999.0, Source.PEER, "b")),
    Concluded.OUTAGE: replace(MEMORY, proof=Proof(990.0, Source.OUTAGE), outage=Outage(990.0, 999.0, "")),
    Concluded.OWN_READ: replace(MEMORY, proof=Proof(999.0, Source.OWN_READ)),
    Concluded.CONDEMNED: replace(MEMORY, decision=DECIDED),
    Concluded.NOTHING: MEMORY,
}


@pytest.mark.parametrize(("verdict", "after"), ENDS.items(), ids=lambda each: getattr(each, "value", ""))
def test_an_inquiry_is_counted_once_when_it_ends(verdict: Concluded, after: Memory) -> None:
    inquiries = Inquiries()
    for memory in (MEMORY, ASKING, replace(ASKING, inquiry=replace(INQUIRY, round=3)), after, after):
        inquiries.follow(memory)
    text = render(inquiries.metrics())
    assert f'pp_hostd_inquiries_total{{verdict="{verdict.value}"}} 1\n' in text
    assert text.count("} 0\n") == len(Concluded) - 1


CAUSES = {
    "its machine is condemned": EndedBy.CONDEMNED,
    "no peer confirms that it is healthy: 2 silent of 2 asked": EndedBy.OUTVOTED,
    "b says unhealthy, and no majority says api-error: 1 unhealthy of 1 asked": EndedBy.OUTVOTED,
    "no proof for 22 s that its machine is not condemned": EndedBy.NO_PROOF,
    "its watchdog was not fed in time; that boot left no reason": EndedBy.WATCHDOG,
    ordered_by("root", False): EndedBy.TEST,
    ordered_by("root", True): EndedBy.TEST,
    "its promise could neither be prolonged nor withdrawn within 20 s of the order to reboot": EndedBy.SHUTDOWN,
    "of something new": EndedBy.OTHER,
}


@pytest.mark.parametrize(("cause", "reason"), CAUSES.items())
def test_each_cause_of_a_reset_has_its_reason(cause: str, reason: EndedBy) -> None:
    assert ended_by(cause) is reason


def test_the_record_of_resets_becomes_figures() -> None:
    endings = [
        Ending("boot-1", "its machine is condemned", 7, "2026-03-01T12:00:00Z"),
        Ending("boot-2", "its machine is condemned", 8, "2026-03-02T12:00:00Z"),
        Ending("unknown", "its watchdog was not fed in time; that boot left no reason"),
    ]
    text = render(reset_figures(endings))
    assert 'pp_hostd_recorded_resets{reason="condemned"} 2\n' in text
    assert 'pp_hostd_recorded_resets{reason="watchdog"} 1\n' in text
    assert 'pp_hostd_recorded_resets{reason="test"} 0\n' in text
    assert "pp_hostd_last_reset_timestamp_seconds 1772452800.0\n" in text
    assert render(reset_figures([])).endswith("# TYPE pp_hostd_last_reset_timestamp_seconds gauge\n")
