"""A Node out of an object of the API: its agent's record and the leader's marks."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from pp_hostd.model.keys import AGENT, FREEING
from pp_hostd.model.node import Node, condemned_taint, freeing_marker, parse_node
from pp_hostd.model.promise import Withdrawn
from pp_hostd.model.record import Unreadable
from tests.model import strategies as draw

METADATA: dict[str, Any] = {"name": "worker-1", "uid": "u-1", "resourceVersion": "4711"}
NODE: dict[str, Any] = {
    "metadata": {**METADATA, "annotations": {AGENT: Withdrawn("b").render(), FREEING: "8"}},
    "spec": {"unschedulable": True, "taints": [{"key": "example.com/x", "effect": "NoSchedule"}, condemned_taint(8)]},
    "status": {
        "addresses": [{"type": "Hostname", "address": "worker-1"}, {"type": "InternalIP", "address": "192.0.2.1"}]
    },
}


def node(**parts: object) -> Node:
    parsed = parse_node({"metadata": METADATA, **parts})
    assert isinstance(parsed, Node)
    return parsed


def annotated(annotations: dict[str, object]) -> Node:
    return node(metadata={**METADATA, "annotations": annotations})


def test_a_node_has_its_identity_its_agents_record_and_the_leaders_marks() -> None:
    assert parse_node(NODE) == Node(
        name="worker-1",
        uid="u-1",
        resource_version="4711",
        address="192.0.2.1",
        agent=Withdrawn("b"),
        freeing=8,
        tainted=True,
        unschedulable=True,
    )


def test_a_bare_node_has_none_of_them() -> None:
    assert node() == Node("worker-1", "u-1", "4711", None, None, None, tainted=False, unschedulable=False)


@pytest.mark.parametrize("garbage", ["", "eight", "0", "-1", None, 8])
def test_a_marker_that_cannot_be_read_is_still_a_marker(garbage: object) -> None:
    assert isinstance(annotated({FREEING: garbage}).freeing, Unreadable)


def test_the_marker_is_read_back_as_it_was_written() -> None:
    assert annotated(freeing_marker(8)["annotations"]).freeing == 8


@pytest.mark.parametrize("garbage", ["", "{}", None, 8])
def test_a_record_that_cannot_be_read_is_not_taken_for_none(garbage: object) -> None:
    assert isinstance(annotated({AGENT: garbage}).agent, Unreadable)


@pytest.mark.parametrize("effect", ["NoSchedule", "PreferNoSchedule", "", None])
def test_our_taint_counts_only_with_the_effect_that_evicts(effect: object) -> None:
    assert not node(spec={"taints": [{**condemned_taint(8), "effect": effect}]}).tainted


def test_a_taint_of_somebody_else_is_not_ours() -> None:
    assert not node(spec={"taints": [{**condemned_taint(8), "key": "example.com/condemned"}]}).tainted


@pytest.mark.parametrize("value", [False, None, "true", 1])
def test_only_true_is_a_cordon(value: object) -> None:
    assert not node(spec={"unschedulable": value}).unschedulable


@pytest.mark.parametrize(
    ("addresses", "address"),
    [
        (
            [{"type": "InternalIP", "address": "2001:db8::1"}, {"type": "InternalIP", "address": "192.0.2.1"}],
            "2001:db8::1",
        ),
        ([{"type": "InternalIP", "address": "worker-1"}, {"type": "InternalIP", "address": "192.0.2.1"}], "192.0.2.1"),
        ([{"type": "ExternalIP", "address": "192.0.2.1"}], None),
        ([{"type": "InternalIP", "address": 1}, {"type": "InternalIP"}], None),
        ([], None),
        (None, None),
    ],
)
def test_the_address_is_the_first_internal_literal(addresses: object, address: object) -> None:
    assert node(status={"addresses": addresses}).address == address


@draw.examples
@given(draw.anything | draw.damaged(NODE))
def test_reading_a_node_never_raises(source: object) -> None:
    parsed = parse_node(source)
    assert isinstance(parsed, Unreadable) or parsed.uid
