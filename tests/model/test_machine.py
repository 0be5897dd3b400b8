"""A machine out of an object of the API: its identity and its condemnation, from one read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from pp_hostd.model.condemnation import NotRequested, Requested
from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.record import Unreadable
from tests.model import strategies as draw

MACHINE: dict[str, Any] = {
    "apiVersion": "machine.openshift.io/v1beta1",
    "kind": "Machine",
    "metadata": {
        "name": "machine-1",
        "namespace": "metal3",
        "uid": "u-1",
        "resourceVersion": "4711",
        "annotations": {EXTERNAL_REMEDIATION: ""},
    },
    "status": {"nodeRef": {"kind": "Node", "name": "worker-1"}},
}


def test_a_machine_has_its_identity_its_condemnation_and_its_node() -> None:
    machine = parse_machine(MACHINE)
    assert machine == Machine("metal3", "machine-1", "u-1", "4711", Requested(0), "worker-1")
    assert machine.machine_key == "metal3/machine-1"


@pytest.mark.parametrize("status", [None, {}, {"nodeRef": None}, {"nodeRef": {}}])
def test_a_machine_without_a_node_reference_has_no_node(status: object) -> None:
    machine = parse_machine({**MACHINE, "status": status})
    assert isinstance(machine, Machine)
    assert machine.node is None


def test_a_node_is_its_own_machine_where_there_are_none() -> None:
    node = parse_machine({"kind": "Node", "metadata": {"name": "worker-1", "uid": "u-2", "resourceVersion": "1"}})
    assert node == Machine(None, "worker-1", "u-2", "1", NotRequested(0), "worker-1")
    assert node.machine_key == "worker-1"


def test_a_machine_whose_condemnation_is_garbage_still_has_a_name_to_complain_about() -> None:
    machine = parse_machine(
        {**MACHINE, "metadata": {**MACHINE["metadata"], "annotations": {EXTERNAL_REMEDIATION: "?"}}}
    )
    assert isinstance(machine, Machine)
    assert isinstance(machine.condemnation, Unreadable)


@pytest.mark.parametrize("missing", ["name", "uid", "resourceVersion"])
def test_a_machine_without_an_identity_is_unreadable(missing: str) -> None:
    metadata = {key: value for key, value in MACHINE["metadata"].items() if key != missing}
    assert parse_machine({**MACHINE, "metadata": metadata}) == Unreadable(
        "the machine", f"{missing} is missing, not {'a Kubernetes name' if missing == 'name' else 'one word of ASCII'}"
    )


@draw.examples
@given(draw.anything | draw.damaged(MACHINE))
def test_reading_a_machine_never_raises(source: object) -> None:
    parsed = parse_machine(source)
    assert isinstance(parsed, Unreadable) or parsed.uid
