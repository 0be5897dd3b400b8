"""Silence is confirmed by the leader and by all who answered, and never by nobody."""

from __future__ import annotations

import itertools

import pytest

from pp_hostd.model.reachability import Finding, confirmed

FINDINGS = (True, False, None)


@pytest.mark.parametrize(
    ("own", "others", "expected"),
    [
        (False, (False, False, False), True),
        (False, (False, None, None), True),
        (False, (), True),
        (False, (None, None, None), False),
        (False, (False, False, True), False),
        (True, (False, False, False), False),
        (None, (False, False, False), False),
        (None, (), False),
    ],
)
def test_silence_is_confirmed_only_by_all_who_know(own: Finding, others: tuple[Finding, ...], expected: bool) -> None:
    assert confirmed(own, others) is expected


def test_whoever_reaches_the_host_ends_it_whatever_the_others_say() -> None:
    for findings in itertools.product(FINDINGS, repeat=4):
        if True in findings:
            assert not confirmed(findings[0], findings[1:])
