"""BootCommitments: the records that may stand on the Node, and the promises that must so be kept (rule 5)."""

from __future__ import annotations

from dataclasses import replace

from pp_hostd.model.boot_commitments import BootCommitments, Gate, Pending
from pp_hostd.model.promise import Armed, Committed, GateClosed, GateKind, WatchdogKind, Withdrawn

PROMISE = Armed("boot", 22.0, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, "uid", 1)
SHORTER = replace(PROMISE, self_timeout_seconds=15.0)
FRESH = BootCommitments("boot", Gate.CLOSED)


def test_nothing_stands_before_anything_was_written() -> None:
    assert FRESH.may_stand == () and FRESH.promises == ()


def test_what_is_stored_may_stand_and_so_may_every_write_of_unknown_outcome() -> None:
    commitments = replace(FRESH, stored=PROMISE, pending=(Pending(SHORTER, "1"), Pending(Withdrawn("boot"), "1")))
    assert commitments.may_stand == (PROMISE, SHORTER, Withdrawn("boot"))
    assert commitments.promises == (PROMISE, SHORTER)


def test_a_promise_that_is_carried_out_still_stands() -> None:
    assert replace(FRESH, stored=Committed(PROMISE, 7)).promises == (PROMISE,)


def test_neither_a_closed_gate_nor_a_withdrawal_is_a_promise() -> None:
    assert replace(FRESH, stored=GateClosed("boot", GateKind.HOLD)).promises == ()
    assert replace(FRESH, stored=Withdrawn("boot")).promises == ()
