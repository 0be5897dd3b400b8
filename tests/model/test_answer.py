"""The peer's answer: an "unhealthy" always says under which condemnation."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from pp_hostd.model.answer import Answer, Health, parse_answer
from pp_hostd.model.record import Unreadable

UNHEALTHY = Answer(
    health=Health.UNHEALTHY,
    id=8,
    token="t0k3n",
    nonce="n0nce",
    answered_by="worker-2",
    asked_by="worker-1",
    about="metal3/machine-1",
)


def changed(**fields: object) -> str:
    return json.dumps({**json.loads(UNHEALTHY.render()), **fields})


def test_an_answer_is_stored_with_the_words_of_the_design() -> None:
    assert json.loads(UNHEALTHY.render()) == {
        "v": 1,
        "answer": "unhealthy",
        "id": 8,
        "token": "t0k3n",
        "nonce": "n0nce",
        "by": "worker-2",
        "to": "worker-1",
        "about": "metal3/machine-1",
    }


def test_an_unhealthy_without_an_id_is_unreadable() -> None:
    parsed = parse_answer(changed(id=None))
    assert parsed == Unreadable("the peer's answer", "id is missing, not a whole number from 1 to 999999999999999")


@pytest.mark.parametrize("health", [Health.HEALTHY, Health.NOT_FOUND, Health.API_ERROR])
def test_every_other_answer_has_no_id(health: Health) -> None:
    parsed = parse_answer(changed(answer=health.value))
    assert isinstance(parsed, Answer)
    assert parsed.health is health
    assert parsed.id is None
    assert "id" not in json.loads(parsed.render())


def test_a_healthy_tells_what_was_lifted_and_nothing_else_does() -> None:
    healthy = replace(UNHEALTHY, health=Health.HEALTHY, id=None, lifted_id=7)
    assert json.loads(healthy.render())["lifted"] == 7
    assert parse_answer(healthy.render()) == healthy
    assert parse_answer(changed(lifted=7)) == UNHEALTHY
    assert isinstance(parse_answer(changed(answer="healthy", lifted="7")), Unreadable)


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("answer", "Healthy", "answer is 'Healthy', not one of healthy, unhealthy, not-found, api-error"),
        ("answer", True, "answer is True"),
        ("answer", None, "answer is missing"),
        ("id", True, "id is True"),
        ("token", "", "token is ''"),
        ("nonce", "two words", "nonce is 'two words'"),
        ("by", "Worker_2", "by is 'Worker_2', not a Kubernetes name"),
        ("to", "../worker-1", "to is '../worker-1'"),
        ("about", "a/b/c", "about is 'a/b/c', not namespace/name of a Machine or the name of a Node"),
        ("about", "worker-1\n", "about is 'worker-1\\n'"),
    ],
)
def test_a_field_out_of_its_form_is_named(field: str, value: object, why: str) -> None:
    parsed = parse_answer(changed(**{field: value}))
    assert isinstance(parsed, Unreadable)
    assert why in parsed.reason


def test_an_answer_about_a_node_names_it_without_a_namespace() -> None:
    parsed = parse_answer(changed(about="worker-1"))
    assert isinstance(parsed, Answer)
    assert parsed.about == "worker-1"
