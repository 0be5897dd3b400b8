"""Properties of every record that is stored as JSON: it comes back as it was, and nothing that is read can raise."""

from __future__ import annotations

import json
from typing import Any, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.model.agent_info import parse_agent_info
from pp_hostd.model.answer import parse_answer
from pp_hostd.model.backup import parse_backup
from pp_hostd.model.budget import parse_budget
from pp_hostd.model.control import parse_control
from pp_hostd.model.promise import parse_agent_record
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import parse_roster
from pp_hostd.model.suspicion import parse_suspicion
from tests.model import strategies as draw

RECORDS: dict[str, tuple[Callable[[object], Any], st.SearchStrategy[Any]]] = {
    "agent": (parse_agent_record, draw.agent_records),
    "agent info": (parse_agent_info, draw.agent_infos),
    "answer": (parse_answer, draw.answers),
    "backup": (parse_backup, draw.backups),
    "roster": (parse_roster, draw.rosters()),
    "pause": (lambda text: parse_control({"paused": text}).paused, draw.pauses),
    "maintenance": (lambda text: parse_control({"maintenance": text}).maintenance, draw.maintenances),
    "grant": (lambda text: parse_control({"more-resets": text}).grant, draw.grants),
    "budget": (parse_budget, draw.budgets),
    "suspicion": (parse_suspicion, draw.suspicions),
}
every_record = pytest.mark.parametrize("kind", RECORDS)


@every_record
@draw.examples
@given(data=st.data())
def test_a_record_is_read_back_as_it_was_written(kind: str, data: st.DataObject) -> None:
    parse, records = RECORDS[kind]
    record = data.draw(records)
    assert parse(record.render()) == record
    assert parse(record.render().encode()) == record


@every_record
@draw.examples
@given(data=st.data())
def test_foreign_input_is_unreadable_with_a_reason_and_never_raises(kind: str, data: st.DataObject) -> None:
    parse, _ = RECORDS[kind]
    source = data.draw(draw.anything | draw.json_values.map(json.dumps))
    parsed = parse(source)
    assert isinstance(parsed, Unreadable)
    assert parsed.what
    assert parsed.reason
    str(parsed).encode()


@every_record
@draw.examples
@given(data=st.data())
def test_a_damaged_record_is_unreadable_or_again_a_valid_one(kind: str, data: st.DataObject) -> None:
    parse, records = RECORDS[kind]
    sound = json.loads(data.draw(records).render())
    parsed = parse(json.dumps(data.draw(draw.damaged(sound))))
    assert isinstance(parsed, Unreadable) or parse(parsed.render()) == parsed


@every_record
@draw.examples
@given(data=st.data())
def test_text_that_was_cut_short_is_unreadable(kind: str, data: st.DataObject) -> None:
    parse, records = RECORDS[kind]
    text = data.draw(records).render()
    assert isinstance(parse(text[: data.draw(st.integers(0, len(text) - 1))]), Unreadable)


@every_record
@draw.examples
@given(data=st.data())
def test_unknown_fields_are_ignored(kind: str, data: st.DataObject) -> None:
    parse, records = RECORDS[kind]
    record = data.draw(records)
    fields = json.loads(record.render())
    assert parse(json.dumps({**fields, "of-the-future": data.draw(draw.finite_values)})) == record


@every_record
@draw.examples
@given(data=st.data())
def test_another_version_is_refused_by_name(kind: str, data: st.DataObject) -> None:
    parse, records = RECORDS[kind]
    fields = json.loads(data.draw(records).render())
    version = data.draw(st.sampled_from([2, 0, -1, 1.0, True, "1", None, [1]]))
    parsed = parse(json.dumps({**fields, "v": version}))
    assert isinstance(parsed, Unreadable)
    assert "reads version 1" in parsed.reason
