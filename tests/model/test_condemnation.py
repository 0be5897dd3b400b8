"""Whether a machine is condemned, and that garbage never acquits."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.condemnation import (
    DICE,
    Condemnation,
    Condemned,
    Draw,
    NotCondemned,
    NotRequested,
    Requested,
    parse_condemnation,
)
from pp_hostd.model.keys import CONDEMNATION_ID, CONDEMNED, EXTERNAL_REMEDIATION
from pp_hostd.model.record import Unreadable
from tests.model import strategies as draw

TIME = "2026-03-01T12:00:00Z"
MOMENT = datetime(2026, 3, 1, 12, 0, 0, tzinfo=timezone.utc)


def metadata(request: object = None, number: object = None, *, label: bool = False) -> dict[str, Any]:
    """Metadata with these annotations, where given, and the label."""
    annotations = {EXTERNAL_REMEDIATION: request, CONDEMNATION_ID: number}
    present = {key: value for key, value in annotations.items() if value is not None}
    return {"name": "worker-1", "annotations": present, "labels": {CONDEMNED: ""} if label else {}}


def patched(patch: dict[str, Any]) -> dict[str, Any]:
    """Returns the metadata that the API makes of a merge patch on empty metadata."""
    return {name: {key: value for key, value in part.items() if value is not None} for name, part in patch.items()}


def test_a_machine_without_annotations_was_never_condemned() -> None:
    assert parse_condemnation({"name": "worker-1"}) == NotRequested(last_id=0)
    assert parse_condemnation({"name": "worker-1", "annotations": None, "labels": None}) == NotRequested(last_id=0)


def test_the_last_id_stays_readable_after_the_condemnation_was_lifted() -> None:
    assert parse_condemnation(metadata(number="7")) == NotRequested(last_id=7)


def test_an_empty_annotation_is_a_request_and_does_not_condemn() -> None:
    assert parse_condemnation(metadata("")) == Requested(last_id=0)
    assert parse_condemnation(metadata("", "7")) == Requested(last_id=7)


def test_without_the_annotation_nothing_is_condemned_whatever_label_is_left() -> None:
    assert parse_condemnation(metadata(None, "8", label=True)) == NotRequested(last_id=8)
    assert parse_condemnation(metadata("", "8", label=True)) == Requested(last_id=8)


def test_a_new_id_is_larger_than_the_last_one_and_than_all_that_could_be_drawn_before() -> None:
    now = 1_790_000_000
    assert Draw(now, 5).id_after(0) == now * DICE + 6
    assert Draw(now, 5).id_after(now * DICE + 70) == now * DICE + 76
    assert Draw(now, DICE - 1).id_after(0) < Draw(now + 2, 0).id_after(0)


def test_a_time_and_an_id_condemn() -> None:
    assert parse_condemnation(metadata(TIME, "8", label=True)) == Condemned(8, MOMENT)


def test_a_time_and_an_id_condemn_though_somebody_took_the_label_away() -> None:
    assert parse_condemnation(metadata(TIME, "8")) == Condemned(8, MOMENT)


GARBAGE = {
    "a word instead of a time": (metadata("true", "8"), "is 'true', not a time"),
    "a word and no id": (metadata("true"), "is 'true', not a time"),
    "a blank instead of nothing": (metadata(" "), "is ' ', not a time"),
    "a time without an id": (metadata(TIME), f"there is no {CONDEMNATION_ID}"),
    "an id that is no number": (metadata(TIME, "eight"), f"{CONDEMNATION_ID} is 'eight', not a whole number"),
    "a negative id": (metadata(TIME, "-8"), "is '-8'"),
    "an id of zero": (metadata(TIME, "0"), "is '0'"),
    "an id with a leading zero": (metadata(TIME, "08"), "is '08'"),
    "an id in other digits": (metadata(TIME, "\u0668"), "is '\\u0668'"),
    "an id without end": (metadata(TIME, "9" * 5000), "is '9999"),
    "an id that is not text": (metadata(TIME, 8), "is 8"),
    "an id that is a number without end": (metadata(TIME, 10**5000), "is of type int"),
    "a broken id beside a request": (metadata("", "eight"), "is 'eight'"),
    "a broken id beside nothing": (metadata(None, "eight"), "is 'eight'"),
    "a request that is not text": (metadata(False), "is False, not a time"),
    "annotations that are a list": ({"annotations": [EXTERNAL_REMEDIATION]}, "annotations is of type list"),
    "no metadata": (None, "metadata is missing"),
}


@pytest.mark.parametrize(("garbage", "reason"), GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_neither_a_condemnation_nor_its_absence(garbage: object, reason: str) -> None:
    parsed = parse_condemnation(garbage)
    assert isinstance(parsed, Unreadable)
    assert reason in parsed.reason


def test_an_annotation_of_null_is_garbage() -> None:
    assert isinstance(parse_condemnation({"annotations": {EXTERNAL_REMEDIATION: None}}), Unreadable)


@draw.examples
@given(draw.condemnations)
def test_a_condemnation_is_read_back_as_it_was_written(condemnation: Condemnation) -> None:
    assert parse_condemnation(patched(condemnation.render())) == condemnation


def test_lifting_removes_time_and_label_and_keeps_the_id() -> None:
    lifted = NotRequested(last_id=8).render()
    assert lifted["annotations"] == {EXTERNAL_REMEDIATION: None, CONDEMNATION_ID: "8"}
    assert lifted["labels"] == {CONDEMNED: None}


@draw.examples
@given(draw.anything | st.dictionaries(st.sampled_from(["annotations", "labels"]), draw.json_values))
def test_reading_never_raises(source: object) -> None:
    str(parse_condemnation(source))


@draw.examples
@given(draw.anything, draw.anything, st.booleans())
def test_only_an_annotation_that_is_absent_or_empty_acquits(request: object, number: object, label: bool) -> None:
    annotations = {EXTERNAL_REMEDIATION: request, CONDEMNATION_ID: number}
    parsed = parse_condemnation({"annotations": annotations, "labels": {CONDEMNED: ""} if label else {}})
    assert not isinstance(parsed, NotCondemned) or request == ""
