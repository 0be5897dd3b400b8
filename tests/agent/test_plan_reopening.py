"""A daemon finds the watchdog armed and no descriptor: it opens the device, which feeds it, only with proof."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pp_hostd.agent.plan import Reopening, next_reopening
from pp_hostd.model.boot_commitments import BootCommitments
from pp_hostd.model.memory import Decision, Memory
from pp_hostd.model.settings import Settings
from tests.agent.values import BOND, MEMORY, PROMISE

SETTINGS = Settings()
T = SETTINGS.agent.self_timeout_seconds
assert MEMORY.proof is not None
PROVEN_AT = MEMORY.proof.at
SHORT = replace(BOND, stored=replace(PROMISE, self_timeout_seconds=T - 10))
DECIDED = replace(MEMORY, decision=Decision(PROVEN_AT, "for a test", None))


@pytest.mark.parametrize(
    ("commitments", "memory", "at", "expected"),
    [
        (BOND, MEMORY, PROVEN_AT + T - 0.1, Reopening.OPEN),
        (BOND, MEMORY, PROVEN_AT + T, Reopening.LEAVE),
        (SHORT, MEMORY, PROVEN_AT + T - 10, Reopening.LEAVE),
        (BOND, replace(MEMORY, proof=None), PROVEN_AT, Reopening.LEAVE),
        (BOND, DECIDED, PROVEN_AT, Reopening.LEAVE),
        (replace(BOND, stored=None), MEMORY, PROVEN_AT, Reopening.FORGET),
    ],
    ids=["proven", "proof too old", "by a shorter promise", "no proof", "decided to reset", "withdrawn"],
)
def test_it_is_opened_only_with_proof(
    commitments: BootCommitments, memory: Memory, at: float, expected: Reopening
) -> None:
    assert next_reopening(SETTINGS, commitments, memory, at) is expected
