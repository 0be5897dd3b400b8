"""The definition of NodeHealthCheck: the real API refuses and admits the same objects as the leader's own reading."""

from __future__ import annotations

import subprocess
import uuid
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NODE_HEALTH_CHECKS
from pp_hostd.leader.requests.health_checks.check import HealthCheck, Rules, parse_health_check
from pp_hostd.leader.requests.health_checks.definitions import default_check
from pp_hostd.model.record import Unreadable
from tests.harness.build import binaries
from tests.harness.controlplane import RealCluster
from tests.harness.eventually import HANGS_SECONDS
from tests.leader.access.attempts import Attempt, World

REMOVED = object()
TEMPLATE = {
    "apiVersion": "pp-hostd.io/v1",
    "kind": "PoisonPillRemediationTemplate",
    "namespace": "default",
    "name": "reset",
}


@pytest.fixture(scope="module")
def world(real_cluster: RealCluster) -> Iterator[World]:
    with closing(World(real_cluster)) as world:
        yield world


def check(**changes: object) -> Json:
    """The default one, changed so."""
    made = default_check()
    spec = {**made["spec"], **changes}
    spec = {key: value for key, value in spec.items() if value is not REMOVED}
    return {**made, "metadata": {"name": f"check-{uuid.uuid4().hex[:8]}"}, "spec": spec}


def expression(**expression: object) -> Json:
    return check(selector={"matchExpressions": [{"key": "a", **expression}]})


def condition(**changes: object) -> Json:
    return check(unhealthyConditions=[{"type": "Ready", "status": "Unknown", "timeout": "60s", **changes}])


def template(**changes: object) -> Json:
    return check(remediationTemplate={**TEMPLATE, **changes})


def read(api_object: Json) -> Rules | Unreadable:
    """As the leader reads an object that the API has stored."""
    metadata = {**api_object["metadata"], "uid": "uid-1", "resourceVersion": "1", "generation": 1}
    found = parse_health_check({**api_object, "metadata": metadata})
    assert isinstance(found, HealthCheck), found
    return found.rules


ADMITTED: dict[str, Json] = {
    "the default": default_check(),
    "the default with the control plane": default_check("2", control_plane=True),
    "an empty selector": check(selector={}),
    "labels": check(selector={"matchLabels": {"zone": "a"}}),
    "In": expression(operator="In", values=["a", "b"]),
    "NotIn": expression(operator="NotIn", values=["a"]),
    "Exists": expression(operator="Exists"),
    "DoesNotExist without values": expression(operator="DoesNotExist", values=[]),
    "hours and minutes": condition(timeout="1h30m"),
    "fractions": condition(timeout="1.5h0.25s"),
    "fractions as Go writes them": condition(timeout=".5s"),
    "a point without digits": condition(timeout="5.s"),
    "milliseconds": condition(timeout="250ms"),
    "microseconds, by the sign": condition(timeout="250µs"),
    "microseconds, by the letter": condition(timeout="250μs"),
    "no time": condition(timeout="0"),
    "thirty days": condition(timeout="720h"),
    "only probes": check(unhealthyConditions=REMOVED, unreachableSeconds=0),
    "no probes": check(unreachableSeconds=REMOVED),
    "the longest silence": check(unreachableSeconds=3600),
    "nobody": check(maxUnhealthy=0),
    "one": check(maxUnhealthy=1),
    "a million": check(maxUnhealthy=10**6),
    "a number in quotes": check(maxUnhealthy="3"),
    "no part": check(maxUnhealthy="0%"),
    "a part with zeros": check(maxUnhealthy="040%"),
    "all": check(maxUnhealthy="100%"),
    "no limit said": check(maxUnhealthy=REMOVED),
    "a range": check(unhealthyRange="[1-3]"),
    "a range of one": check(unhealthyRange="[3-3]"),
    "a large range": check(unhealthyRange="[0-9999999]"),
    "no start-up timeout": check(nodeStartupTimeout="0"),
    "no start-up timeout said": check(nodeStartupTimeout=REMOVED),
    "a template": template(),
}
DURATION = "a duration like 300s, 5m or 1h30m, of at most 30 days"
LIMIT = "maxUnhealthy is a whole number from 0 to 1000000, or a part from 0% to 100%"
VALUES = "values are needed for In and NotIn, and for no other operator"
NO_CONDITION = "unhealthyConditions or unreachableSeconds is needed: else no Node would ever be unhealthy"
REFUSED: dict[str, tuple[Json, str]] = {
    "no selector": (check(selector=REMOVED), "spec.selector: Required value"),
    "no operator": (expression(), "operator: Required value"),
    "another operator": (expression(operator="Gt", values=["1"]), "operator: Unsupported value"),
    "an empty key": (expression(key="", operator="Exists"), "key"),
    "In without values": (expression(operator="In"), VALUES),
    "NotIn without values": (expression(operator="NotIn", values=[]), VALUES),
    "Exists with values": (expression(operator="Exists", values=["a"]), VALUES),
    "values that are no text": (expression(operator="In", values=[1]), "must be of type string"),
    "labels that are no text": (check(selector={"matchLabels": {"a": 1}}), "must be of type string"),
    "a time without a unit": (condition(timeout="60"), DURATION),
    "a time in words": (condition(timeout="soon"), DURATION),
    "a time before": (condition(timeout="-5m"), DURATION),
    "days": (condition(timeout="1d"), DURATION),
    "an empty time": (condition(timeout=""), DURATION),
    "a number for a time": (condition(timeout=60), "must be of type string"),
    "a longer time": (condition(timeout="721h"), DURATION),
    "a time beyond all clocks": (condition(timeout="99999999999999h"), "timeout: Invalid value"),
    "a bad start-up timeout": (check(nodeStartupTimeout="ten minutes"), DURATION),
    "a longer start-up timeout": (check(nodeStartupTimeout="9999h"), DURATION),
    "no type": (condition(type=""), "type"),
    "another status": (condition(status="Perhaps"), "status: Unsupported value"),
    "no condition": (check(unhealthyConditions=[], unreachableSeconds=REMOVED), NO_CONDITION),
    "no conditions at all": (check(unhealthyConditions=REMOVED, unreachableSeconds=REMOVED), NO_CONDITION),
    "silence before": (check(unreachableSeconds=-1), "greater than or equal to 0"),
    "a longer silence": (check(unreachableSeconds=3601), "less than or equal to 3600"),
    "part of a second": (check(unreachableSeconds=1.5), "must be of type integer"),
    "more than all": (check(maxUnhealthy="101%"), LIMIT),
    "words": (check(maxUnhealthy="some"), LIMIT),
    "no text": (check(maxUnhealthy=""), LIMIT),
    "less than nobody": (check(maxUnhealthy=-1), LIMIT),
    "less than nobody, in quotes": (check(maxUnhealthy="-1"), LIMIT),
    "part of a node": (check(maxUnhealthy=1.5), "must be of type"),
    "too many": (check(maxUnhealthy=10**6 + 1), LIMIT),
    "too many, in quotes": (check(maxUnhealthy="1000001"), LIMIT),
    "a range that ends before it begins": (check(unhealthyRange="[3-1]"), "unhealthyRange ends before it begins"),
    "no range": (check(unhealthyRange="1-3"), "unhealthyRange"),
    "half a range": (check(unhealthyRange="[1-]"), "unhealthyRange"),
    "a range of too many": (check(unhealthyRange="[1-99999999]"), "unhealthyRange"),
    "a template without a group": (template(apiVersion="v1"), "apiVersion"),
    "a template of no group": (template(apiVersion="-/v1"), "apiVersion"),
    "a template that is none": (template(kind="PoisonPillRemediation"), "kind"),
    "a template without a namespace": (template(namespace=""), "namespace"),
    "a template with a bad name": (template(name="Reset_It"), "name"),
}


def refusal(world: World, api_object: Json) -> str:
    """The message; empty if the API would admit it."""
    reply = world.make(Attempt("create", NODE_HEALTH_CHECKS, "", api_object), dry=True)
    assert reply.status_code in (201, 422), reply.text
    return str(reply.json()["message"]) if reply.status_code == 422 else ""


@pytest.mark.parametrize("api_object", ADMITTED.values(), ids=ADMITTED)
def test_api_and_leader_take_it(world: World, api_object: Json) -> None:
    assert refusal(world, api_object) == ""
    assert isinstance(read(api_object), Rules)


@pytest.mark.parametrize(("api_object", "told"), REFUSED.values(), ids=REFUSED)
def test_api_and_leader_refuse_it_and_the_api_says_why(world: World, api_object: Json, told: str) -> None:
    assert told in refusal(world, api_object)
    assert isinstance(read(api_object), Unreadable)


def test_the_api_adds_the_defaults_that_the_leader_assumes(world: World) -> None:
    bare = check(maxUnhealthy=REMOVED, nodeStartupTimeout=REMOVED)
    reply = world.make(Attempt("create", NODE_HEALTH_CHECKS, "", bare), dry=True)
    spec = reply.json()["spec"]
    assert (spec["maxUnhealthy"], spec["nodeStartupTimeout"]) == ("40%", "10m")
    assert read({**bare, "spec": spec}) == read(bare)


STATUS: Json = {
    "status": {
        "observedGeneration": 1,
        "expectedNodes": 5,
        "currentHealthy": 3,
        "remediationsAllowed": 0,
        "conditions": [
            {"type": "Overlapping", "status": "False", "reason": "None"},
            {"type": "RemediationAllowed", "status": "False", "reason": "TooManyUnhealthy"},
        ],
    }
}


@pytest.mark.parametrize(
    ("limit", "shown"), [({"maxUnhealthy": 1}, "1"), ({}, "40%"), ({"unhealthyRange": "[1-3]"}, "40% [1-3]")]
)
def test_kubectl_shows_what_matters_under_the_short_name(world: World, limit: Any, shown: str) -> None:
    made = check(**limit)
    name = made["metadata"]["name"]
    world.create(NODE_HEALTH_CHECKS, "", made)
    assert world.make(Attempt("patch", NODE_HEALTH_CHECKS, name, STATUS, subresource="status")).ok
    kubectl = [str(binaries() / "kubectl"), "--kubeconfig", str(world.cluster.kubeconfig()), "get", "nhc", name]
    done = subprocess.run([*kubectl, "-o", "wide"], capture_output=True, text=True, timeout=HANGS_SECONDS, check=True)
    head, row = done.stdout.splitlines()
    assert head.split("  ")[0] == "NAME"
    columns = ["NODES", "HEALTHY", "MAX UNHEALTHY", "MORE ALLOWED", "REMEDIATION", "AGE", "RANGE"]
    places = [head.index(column) for column in columns]
    assert places == sorted(places)
    cells = [row[start:end].strip() for start, end in zip(places, [*places[1:], None])]
    assert cells[:2] + cells[3:5] == ["5", "3", "0", "TooManyUnhealthy"]
    assert f"{cells[2]} {cells[6]}".strip() == shown
    assert world.make(Attempt("delete", NODE_HEALTH_CHECKS, name)).ok
