"""When the suspects are written: if they change, not too often, and again after what failed."""

from __future__ import annotations

import pytest

from pp_hostd.agent.posting import AGAIN_SECONDS, GAP_SECONDS, LONGEST_GAP_SECONDS, Posting
from pp_hostd.model.suspicion import Suspicion

A, B = Suspicion(("a",)), Suspicion(("b",))


def posted(suspicion: Suspicion | None = None) -> Posting:
    """At a time of 0."""
    posting = Posting()
    posting.ended(suspicion, False, 0.0)
    return posting


@pytest.mark.parametrize("wanted", [None, A])
def test_a_new_run_brings_the_node_up_to_date_whatever_an_earlier_one_left(wanted: Suspicion | None) -> None:
    assert Posting().is_due(wanted, 0.0)
    assert not posted(wanted).is_due(wanted, GAP_SECONDS)


def test_a_change_is_written_once_there_was_a_gap() -> None:
    for before, after in ((None, A), (A, B), (A, None)):
        assert not posted(before).is_due(after, GAP_SECONDS - 0.1)
        assert posted(before).is_due(after, GAP_SECONDS)


def test_a_suspicion_that_lasts_is_looked_at_again_and_none_is_not() -> None:
    assert not posted(A).is_due(A, AGAIN_SECONDS - 0.1)
    assert posted(A).is_due(A, AGAIN_SECONDS)
    assert not posted().is_due(None, 10 * AGAIN_SECONDS)


def test_what_failed_is_tried_again_less_and_less_often_even_if_it_is_no_longer_wanted() -> None:
    posting, now = posted(), 0.0
    gaps: list[float] = []
    for _ in range(20):
        posting.ended(A, True, now)
        gap = next(seconds for seconds in range(1, 100) if posting.is_due(None, now + seconds))
        now, gaps = now + gap, [*gaps, gap]
    assert gaps[:4] == [2 * GAP_SECONDS, 4 * GAP_SECONDS, 8 * GAP_SECONDS, 16 * GAP_SECONDS]
    assert set(gaps[5:]) == {LONGEST_GAP_SECONDS}
    posting.ended(None, False, now)
    assert posting.is_due(A, now + GAP_SECONDS)
