"""The agent's record on its Node: each state needs its fields, and no absurd figure becomes a promise."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.promise import (
    AgentRecord,
    Armed,
    Committed,
    GateClosed,
    GateKind,
    WatchdogKind,
    Withdrawn,
    parse_agent_record,
)
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import every_setting
from tests.model import strategies as draw

ARMED = Armed(
    boot="2f6c9c5e-2a0f-4a43-8a5e-2d6f3a1f0c11",
    self_timeout_seconds=22,
    watchdog_timeout_seconds=10,
    watchdog=WatchdogKind.HARDWARE,
    gate=GateKind.HOLD,
    machine_uid="7d3b1c1e-6f0b-4a8e-9f57-0c4f1b2a3d4e",
    roster_version=12,
)
STATES: dict[str, AgentRecord] = {
    "armed": ARMED,
    "committed": Committed(ARMED, 8),
    "gate-closed": GateClosed(ARMED.boot, GateKind.TAINT),
    "withdrawn": Withdrawn(ARMED.boot),
}


def changed(record: AgentRecord, **fields: object) -> str:
    return json.dumps({**json.loads(record.render()), **fields})


def reason(text: str) -> str:
    parsed = parse_agent_record(text)
    assert isinstance(parsed, Unreadable)
    return parsed.reason


def test_a_promise_is_stored_with_the_names_that_the_design_gives_its_parts() -> None:
    assert json.loads(Committed(ARMED, 8).render()) == {
        "v": 1,
        "state": "committed",
        "boot": ARMED.boot,
        "T": 22,
        "W": 10,
        "watchdog": "hardware",
        "gate": "hold",
        "machine": ARMED.machine_uid,
        "roster": 12,
        "id": 8,
    }


@pytest.mark.parametrize(("state", "record"), STATES.items())
def test_a_state_needs_every_field_that_it_writes(state: str, record: AgentRecord) -> None:
    fields = json.loads(record.render())
    assert fields["state"] == state
    for key in fields.keys() - {"v"}:
        assert f"{key} is missing" in reason(json.dumps({name: fields[name] for name in fields if name != key}))


@pytest.mark.parametrize("key", ["T", "W"])
@pytest.mark.parametrize("absurd", [0, 0.0, -0.0, -10, 0.999, 3600.1, 10**19, 1e308, True, False, "22", None, [22], {}])
def test_an_absurd_timeout_is_no_promise(key: str, absurd: object) -> None:
    assert f"{key} is " in reason(changed(ARMED, **{key: absurd}))
    assert "1 to 3600 seconds" in reason(changed(Committed(ARMED, 8), **{key: absurd}))


def test_a_timeout_that_overflows_is_no_promise() -> None:
    assert reason(ARMED.render().replace('"T":22', '"T":1e999')) == "T is inf, not 1 to 3600 seconds"


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("state", "ARMED", "not one of armed, gate-closed, committed, withdrawn"),
        ("watchdog", "none", "not one of hardware, softdog, software-only"),
        ("gate", True, "not one of hold, taint, none"),
        ("boot", "", "boot is ''"),
        ("boot", "two words", "boot is 'two words', not one word of ASCII"),
        ("machine", "x" * 129, "machine is 'xxx"),
        ("roster", 0, "roster is 0, not a whole number"),
        ("roster", 1.0, "roster is 1.0"),
        ("roster", True, "roster is True"),
        ("id", -1, "id is -1"),
        ("id", "8", "id is '8'"),
        ("id", 10**15, "id is 1000000000000000"),
    ],
)
def test_a_field_out_of_its_range_is_named(field: str, value: object, why: str) -> None:
    assert why in reason(changed(Committed(ARMED, 8), **{field: value}))


def test_a_closed_gate_of_no_kind_is_no_evidence() -> None:
    assert "that there is none" in reason(changed(GateClosed("boot", GateKind.HOLD), gate="none"))


def test_a_promise_may_say_that_it_has_no_gate() -> None:
    assert parse_agent_record(changed(ARMED, gate="none")) != ARMED
    assert not isinstance(parse_agent_record(changed(ARMED, gate="none")), Unreadable)


@draw.examples
@given(st.data())
def test_whatever_befalls_a_promise_its_figures_stay_in_range(data: st.DataObject) -> None:
    fields = data.draw(draw.damaged(json.loads(ARMED.render())))
    parsed = parse_agent_record(json.dumps(fields))
    if isinstance(parsed, Armed):
        assert 1 <= parsed.self_timeout_seconds <= 3600
        assert 1 <= parsed.watchdog_timeout_seconds <= 3600
        assert parsed.roster_version >= 1
        assert parsed.boot
        assert parsed.machine_uid


def test_no_setting_allows_a_timeout_that_the_leader_would_refuse() -> None:
    timeouts = [row for row in every_setting() if row.key in ("agent.self_timeout_seconds", "watchdog.timeout_seconds")]
    assert len(timeouts) == 2
    for row in timeouts:
        assert row.allowed.accept(row.default) == row.default
        assert [row.allowed.accept(refused) for refused in (0, 0.999, 3601)] == [None, None, None]
