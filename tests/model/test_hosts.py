"""Machines, BareMetalHosts and remediation objects: each is read in full, or refused with a reason; nothing raises."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.leader.remedies.power_cycle.bare_metal_host import (
    BareMetalHost,
    PowerRequest,
    parse_bare_metal_host,
    parse_request,
)
from pp_hostd.leader.requests.remediation_objects.remediation import (
    KINDS,
    METAL3,
    Remediation,
    RemediationKind,
    Strategy,
    parse_remediation,
)
from pp_hostd.model.machine_details import Claim, HostReference, MachineDetails, parse_machine_details
from pp_hostd.model.record import Unreadable

SUFFIX = "machine-remediation"
WORDS = st.sampled_from(
    ["", "Machine", "reboot.metal3.io/x", "metal3://a/b/c", "baremetalhost:///a/b", "10m0s", "escalate"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | WORDS
KEYS = st.sampled_from(
    [
        *("metadata", "spec", "status", "name", "namespace", "uid", "resourceVersion", "annotations", "labels"),
        *("ownerReferences", "finalizers", "deletionTimestamp", "providerID", "online", "poweredOn", "provisioning"),
        *("state", "consumerRef", "kind", "strategy", "type", "retryLimit", "timeout", "timeoutSeconds", "phase"),
        *("retryCount", "conditions", "pp-hostd.io/flow", "pp-hostd.io/requested-by", "metal3.io/BareMetalHost"),
        "reboot.metal3.io/machine-remediation",
    ]
)
ANYTHING = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=8))


@given(ANYTHING)
def test_any_json_is_a_host_or_is_refused(found: Any) -> None:
    assert isinstance(parse_bare_metal_host(found, SUFFIX), (BareMetalHost, Unreadable))


@given(ANYTHING)
def test_any_json_is_what_a_machine_says_or_is_refused(found: Any) -> None:
    assert isinstance(parse_machine_details(found), (MachineDetails, Unreadable))


@given(ANYTHING, st.sampled_from(KINDS))
def test_any_json_is_a_remediation_or_is_refused(found: Any, kind: RemediationKind) -> None:
    assert isinstance(parse_remediation(found, kind), (Remediation, Unreadable))


@given(ANYTHING | st.text())
def test_any_value_is_our_request_or_is_refused(found: Any) -> None:
    assert isinstance(parse_request(found), (PowerRequest, Unreadable))


@pytest.mark.parametrize("node", ["w", ""])
def test_a_request_reads_back_as_it_was_written_and_is_one_to_the_operator(node: str) -> None:
    request = PowerRequest("machines/w", "uid-1", node, 7)
    assert parse_request(request.render()) == request
    assert json.loads(request.render()).items() >= {"mode": "hard", "force": False}.items()


@pytest.mark.parametrize("flow", ["poison-pill", ""])
@pytest.mark.parametrize("place", [{"namespace": "machines"}, {}], ids=["Machine", "Node"])
def test_a_claim_reads_back_as_it_was_written(place: dict[str, str], flow: str) -> None:
    claim = Claim("PoisonPillRemediation machines/w", "uid-1", flow)
    machine = {"metadata": {**place, "annotations": {"pp-hostd.io/requested-by": claim.render()}}}
    found = parse_machine_details(machine)
    assert isinstance(found, MachineDetails)
    assert found.claim == claim


@pytest.mark.parametrize(
    ("provider", "reference"),
    [
        ("baremetalhost:///metal/m", HostReference("metal/m", "")),
        ("baremetalhost:///metal/m/uid", HostReference("metal/m", "uid")),
        ("metal3://metal/m/machine", HostReference("metal/m", "")),
        ("metal3://uid", HostReference("", "uid")),
        ("aws:///zone/i-1", None),
        ("", None),
    ],
)
def test_every_form_of_a_providers_id_names_its_host(provider: str, reference: HostReference | None) -> None:
    machine = {"metadata": {"namespace": "machines"}, "spec": {"providerID": provider}}
    found = parse_machine_details(machine)
    assert isinstance(found, MachineDetails)
    assert found.host == reference


def test_a_node_that_stands_for_itself_names_no_host_and_nobody_may_delete_it_as_a_machine() -> None:
    node = {"metadata": {"name": "w"}, "spec": {"providerID": "baremetalhost:///metal/m"}}
    found = parse_machine_details(node)
    assert isinstance(found, MachineDetails)
    assert found.host is None and "it is a Node" in found.kept


@pytest.mark.parametrize(
    ("timeout", "seconds"), [("10m0s", 600.0), ("600s", 600.0), ("1h30m", 5400.0), ("1.5s", 1.0), ("24h", 86400.0)]
)
def test_durations_are_read_as_go_writes_them(timeout: str, seconds: float) -> None:
    metadata = {"name": "w", "namespace": "machines", "uid": "u", "resourceVersion": "1"}
    spec = {"strategy": {"type": "Reboot", "timeout": timeout}}
    found = parse_remediation({"metadata": metadata, "spec": spec}, METAL3)
    assert isinstance(found, Remediation)
    assert found.strategy == Strategy(1, seconds)
