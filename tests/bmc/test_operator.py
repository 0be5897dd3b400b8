"""The stand-in operator decides as the real one is known to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.bmc.operator import FINALIZER, REBOOT, change_of_marks, due_minutes, is_news, reboot_mode


def a_host(powered_on: bool = True, **metadata: Any) -> dict[str, Any]:
    known = {"name": "metal", "uid": "uid", "generation": 1, "finalizers": [FINALIZER]}
    return {"metadata": {**known, **metadata}, "status": {"poweredOn": powered_on}}


@pytest.mark.parametrize(
    ("annotations", "mode"),
    [
        ({}, ""),
        ({"reboot.metal3.iodine/x": ""}, ""),
        ({REBOOT: ""}, "soft"),
        ({f"{REBOOT}/x": "not JSON"}, "soft"),
        ({f"{REBOOT}/x": "[]"}, "soft"),
        ({f"{REBOOT}/x": '{"mode": "hard", "force": false}'}, "hard"),
        ({f"{REBOOT}/x": '{"mode": "hard"}', REBOOT: ""}, "hard"),
        ({f"{REBOOT}/x": '{"mode": "soft"}'}, "soft"),
    ],
)
def test_a_host_goes_off_for_any_key_and_hard_if_anybody_wants_it_so(annotations: dict[str, str], mode: str) -> None:
    assert reboot_mode(annotations) == mode


def test_the_bare_key_is_taken_off_once_the_host_is_off_and_no_other_ever() -> None:
    asked = {REBOOT: "", f"{REBOOT}/x": ""}
    assert change_of_marks(a_host(annotations=asked)) is None
    assert change_of_marks(a_host(powered_on=False, annotations=asked)) == {"annotations": {REBOOT: None}}
    assert change_of_marks(a_host(powered_on=False, annotations={f"{REBOOT}/x": ""})) is None


def test_a_host_has_its_finalizer_until_it_is_deleted() -> None:
    assert change_of_marks(a_host(finalizers=["other"])) == {"finalizers": ["other", FINALIZER]}
    deleted = a_host(finalizers=["other", FINALIZER], deletionTimestamp="2026-03-01T00:00:00Z")
    assert change_of_marks(deleted) == {"finalizers": ["other"]}


def test_what_only_tells_another_status_is_no_news() -> None:
    assert is_news(None, a_host())
    assert not is_news(a_host(), a_host(powered_on=False, resourceVersion="2"))
    assert is_news(a_host(), a_host(generation=2))
    assert is_news(a_host(), a_host(annotations={REBOOT: ""}))
    assert is_news(a_host(), a_host(finalizers=[]))


def test_after_each_failure_it_waits_twice_as_long_up_to_seventeen_hours() -> None:
    assert [due_minutes(errors) for errors in (0, 1, 2, 3)] == [1.0, 2.0, 4.0, 8.0]
    assert due_minutes(10) == due_minutes(30) == 1024.0
