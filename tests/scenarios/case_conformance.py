"""Our leader carries MachineHealthChecks out as Cluster API's real manager does, field by field."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest

from pp_hostd.model.settings import Api, Health, Leader, Settings
from tests.harness.cluster_api import ClusterApi
from tests.harness.controlplane import RealCluster
from tests.leader.access.people import LEADER as LEADER_USER
from tests.leader.access.people import pp_leader
from tests.leader.in_term import client_for, term
from tests.scenarios.conformance import (
    EARLY,
    LEADER,
    MANAGER,
    MISSING,
    PAUSED,
    TEMPLATE,
    WHOLE,
    Row,
    Seen,
    Side,
    differences,
    until,
)

SETTINGS = Settings(
    api=Api(machines="cluster-api"),
    leader=Leader(start_grace_seconds=0.0, max_unhealthy="100%"),
    health=Health(machine_health_checks=True),
)
DOCUMENTED = Path(__file__).parents[2] / "docs" / "health.md"
Differences = dict[str, tuple[object, object]]

# The rows. The Machine `sick` is the one that matters.

SICK = {"sick": "silent", "well": "well"}
ABSENT = {"sick": "absent", "well": "well"}
DAY = (("Ready", "Unknown", 86400),)
BROKEN = (("DiskFailing", "True", 300),)
MARKED = "events.Machine sick Normal MachineMarkedUnhealthy"
STOPPED = ("check.status.newer.Paused.status", "True")
WELL_AGAIN = ("machines.sick.newer.HealthCheckSucceeded.status", "True")
ROWS = [
    Row("healthy", {"one": "well", "two": "well"}),
    Row("nobody", {}),
    Row("template", SICK, {"template": TEMPLATE}),
    Row("owner", SICK),
    Row("pending", {"sick": "just silent", "well": "well"}, conditions=DAY),
    Row("twice", SICK, conditions=(("Ready", "Unknown", 300), ("Ready", "Unknown", 3661))),
    Row("gone", {"sick": "gone", "well": "well"}),
    Row("gone-in-remediation", {"sick": "gone, condemned", "well": "well"}),
    Row("late", ABSENT, {"startup": 30}, rests=(MARKED, None)),
    Row("starting", ABSENT),
    Row("any-time", ABSENT, {"startup": 0}),
    Row("mute", {"sick": "mute", "well": "well"}),
    Row("number", SICK, {"most": 0}),
    Row("percent", {**SICK, "other": "silent"}, {"most": "40%"}),
    Row("percent-kept", {**SICK, "other": "well"}, {"most": "40%"}),
    Row("range", SICK, {"within": "[2-3]"}),
    Row("range-kept", SICK, {"within": "[1-2]"}),
    Row("range-wrong", SICK, {"within": "[3-1]"}, rests=("check.status.expectedMachines", 2)),
    Row("only-pending", {"sick": "just silent"}, {"most": 0}, DAY),
    Row("some-pending", {"sick": "silent", "other": "just silent"}, {"most": 1}, DAY),
    Row("annotated", {"sick": "well", "well": "well"}, annotations={"sick": "cluster.x-k8s.io/remediate-machine"}),
    Row("skipped", {**SICK, "other": "well"}, annotations={"sick": "cluster.x-k8s.io/skip-remediation"}),
    Row("paused-machine", {**SICK, "other": "well"}, annotations={"sick": "cluster.x-k8s.io/paused"}),
    Row("paused", SICK, paused=True, rests=STOPPED),
    Row("paused-cluster", SICK, place=PAUSED, rests=STOPPED),
    Row("paused-both", SICK, paused=True, place=PAUSED, rests=STOPPED),
    Row("early", SICK, place=EARLY),
    Row("first", {"sick": "absent"}, {"startup": 30}, place=EARLY, control_plane=True, rests=(MARKED, None)),
    Row("no-template", SICK, {"template": MISSING}, rests=("check.status.older.RemediationAllowed.status", "True")),
    Row("served", {"sick": "silent, served", "well": "well"}, {"template": TEMPLATE}),
    Row("broken", {"sick": "broken", "well": "well"}, {"of_machines": BROKEN}),
    Row("broken-and-silent", {"sick": "broken, silent", "well": "well"}, {"of_machines": BROKEN}),
    Row("broken-and-gone", {"sick": "broken, gone", "well": "well"}, {"of_machines": BROKEN}),
    Row("broken-and-absent", {"sick": "absent, broken", "well": "well"}, {"of_machines": BROKEN}),
    Row("deleted", {"sick": "silent, deleted", "well": "well"}),
    Row("leaving", {"sick": "deleted", "well": "well"}),
    Row(
        "again",
        SICK,
        {"template": TEMPLATE},
        rests=("machines.sick.newer.ExternallyRemediated.status", "False"),
        then="sick",
        again=WELL_AGAIN,
    ),
    Row(
        "again-owner",
        SICK,
        rests=("machines.sick.newer.OwnerRemediated.status", "False"),
        then="sick",
        again=WELL_AGAIN,
    ),
]

# The differences that are meant, each with the reason that the documentation gives.


@dataclass(frozen=True)
class Listed:
    why: str
    differences: Differences


def only_ours(*values: tuple[str, object]) -> Differences:
    return {path: (None, value) for path, value in values}


def only_theirs(*values: tuple[str, object]) -> Differences:
    return {path: (value, None) for path, value in values}


def healthy(name: str) -> list[tuple[str, object]]:
    """How a Machine is told that it is healthy."""
    newer = f"machines.{name}.newer.HealthCheckSucceeded"
    older = f"machines.{name}.older.HealthCheckSucceeded.status"
    return [(f"{newer}.status", "True"), (f"{newer}.reason", "HealthCheckSucceeded"), (older, "True")]


def unhealthy(reason: str, sentence: str, older_reason: str = "") -> list[tuple[str, object]]:
    """How a Machine is told that it is not. Where older lists have another reason they have no sentence."""
    newer, older = "machines.sick.newer.HealthCheckSucceeded", "machines.sick.older.HealthCheckSucceeded"
    found: list[tuple[str, object]] = [
        (f"{newer}.status", "False"),
        (f"{newer}.reason", reason),
        (f"{newer}.message", f"Health check failed:\n  * {sentence}"),
        (f"{older}.status", "False"),
        (f"{older}.reason", older_reason or reason),
        (f"{older}.severity", "Warning"),
        (MARKED, ["Machine PLACE/sick has been marked as unhealthy by PLACE/CHECK"]),
    ]
    return found if older_reason else [*found, (f"{older}.message", sentence)]


def to_owner() -> list[tuple[str, object]]:
    """How a Machine's owner is told to replace it."""
    newer, older = "machines.sick.newer.OwnerRemediated", "machines.sick.older.OwnerRemediated"
    both = (newer, older)
    return [
        *((f"{each}.status", "False") for each in both),
        *((f"{each}.reason", "WaitingForRemediation") for each in both),
        (f"{newer}.message", "Waiting for remediation"),
        (f"{older}.severity", "Warning"),
    ]


def external(reason: str, message: str = "") -> list[tuple[str, object]]:
    condition = "machines.sick.newer.ExternallyRemediated"
    found: list[tuple[str, object]] = [(f"{condition}.status", "False"), (f"{condition}.reason", reason)]
    return [*found, (f"{condition}.message", message)] if message else found


def restricted(unhealthy: int, total: int, most: int) -> str:
    counts = f"(total: {total}, unhealthy: {unhealthy}, maxUnhealthy: {most})"
    return f"Remediation is not allowed, the number of not started or unhealthy machines exceeds maxUnhealthy {counts}"


SILENT = "Condition Ready on Node is reporting status Unknown with reason Kubelet for more than 5m0s"
ALLOWED = [f"check.status.{each}.RemediationAllowed" for each in ("newer", "older")]
RESTRICTED = "events.MachineHealthCheck CHECK Warning RemediationRestricted"
NOT_FOUND = (
    'reading Metal3RemediationTemplate PLACE/missing: not found (404 from SERVER: {} "missing" not found)'.format(
        "metal3remediationtemplates.infrastructure.cluster.x-k8s.io"
    )
)
REFUSED, NO_BACKUP = (
    "events.Machine sick Warning Refused",
    "there is no Node PLACE-sick and no backup of one: nothing can be freed or recreated. "
    "If none will come: remove host.metal3.io/external-remediation from the machine",
)
"""Of the remediation, not of its health check."""
UNREADABLE = (
    "its spec is unreadable: unhealthyInRange is [3-1], which ends before it begins. "
    "Correct it: until then no Machine is remediated"
)
REQUESTED = Listed(
    "an Event on the health check says which object there is, and why",
    only_ours(
        (
            "events.MachineHealthCheck CHECK Normal RemediationRequested",
            [f"made Metal3Remediation PLACE/sick: {SILENT}"],
        )
    ),
)
TOLD_THAT_IT_IS_WELL = Listed(
    "people and owners see of every Machine whether its health check has succeeded", only_ours(*healthy("well"))
)
LISTED = {
    "template": [REQUESTED, TOLD_THAT_IT_IS_WELL],
    "again": [REQUESTED, TOLD_THAT_IT_IS_WELL],
    "mute": [
        Listed(
            "a kubelet that has never reported may not run at all",
            {
                "check.status.currentHealthy": (2, 1),
                "check.status.remediationsAllowed": (2, 1),
                **only_theirs(*healthy("sick")),
            },
        )
    ],
    "gone-in-remediation": [
        Listed(
            "the leader itself deletes and recreates the Node",
            {
                **only_theirs(
                    *unhealthy("NodeDeleted", "Node PLACE-sick has been deleted", "NodeNotFound"), *to_owner()
                ),
                **only_ours((REFUSED, [NO_BACKUP])),
            },
        )
    ],
    "only-pending": [
        Listed(
            "the sentence names the number that is compared with the limit",
            {
                **{f"{each}.message": (restricted(0, 1, 0), restricted(1, 1, 0)) for each in ALLOWED},
                **only_ours((RESTRICTED, [restricted(1, 1, 0)])),
            },
        )
    ],
    "some-pending": [
        Listed(
            "the sentence names the number that is compared with the limit",
            {
                **{f"{each}.message": (restricted(1, 2, 1), restricted(2, 2, 1)) for each in ALLOWED},
                RESTRICTED: ([restricted(1, 2, 1)], [restricted(2, 2, 1)]),
            },
        )
    ],
    "range-wrong": [
        Listed(
            "people see at the object why nothing happens, not only in a log",
            {
                **only_ours(
                    *((f"{each}.status", "False") for each in ALLOWED),
                    *((f"{each}.reason", "Unreadable") for each in ALLOWED),
                    *((f"{each}.message", UNREADABLE) for each in ALLOWED),
                    (f"{ALLOWED[1]}.severity", "Warning"),
                    ("check.status.observedGeneration", 1),
                    ("check.status.remediationsAllowed", 0),
                    ("events.MachineHealthCheck CHECK Warning Unreadable", [UNREADABLE]),
                ),
                **only_theirs(
                    ("check.labels.cluster.x-k8s.io/cluster-name", "prod"),
                    ("check.owners.Cluster.apiVersion", "cluster.x-k8s.io/v1beta2"),
                    ("check.owners.Cluster.kind", "Cluster"),
                    ("check.owners.Cluster.name", "prod"),
                    ("check.owners.Cluster.uid", "uid of prod"),
                    ("check.status.expectedMachines", 2),
                    ("check.status.currentHealthy", 1),
                    ("check.status.targets", ["sick", "well"]),
                ),
            },
        )
    ],
    "no-template": [
        TOLD_THAT_IT_IS_WELL,
        Listed(
            "the Machine's own conditions say that it is unhealthy, and why nothing is done about it",
            {
                **only_ours(
                    *unhealthy("UnhealthyNode", SILENT),
                    *external("RemediationTemplateNotFound", NOT_FOUND),
                    ("check.status.observedGeneration", 1),
                ),
                "check.status.older.ExternalRemediationTemplateAvailable.message": (
                    "failed to retrieve Metal3RemediationTemplate PLACE/missing: "
                    'Metal3RemediationTemplate.infrastructure.cluster.x-k8s.io "missing" not found',
                    NOT_FOUND,
                ),
            },
        ),
    ],
    "served": [
        TOLD_THAT_IT_IS_WELL,
        Listed(
            "one Machine that has its object must not keep the next ones from theirs",
            only_ours(*unhealthy("UnhealthyNode", SILENT), *external("WaitingForRemediation")),
        ),
    ],
}


def listed(row: Row) -> Differences:
    return {path: both for each in LISTED.get(row.name, ()) for path, both in each.differences.items()}


# Theirs and ours.


@dataclass(frozen=True)
class Found:
    """By the name of a row: theirs, before and after our leader has led, and ours."""

    theirs: dict[str, Seen]
    ours: dict[str, Seen]
    theirs_after: dict[str, Seen]


@pytest.fixture(scope="module")
def found() -> Iterator[Found]:
    with ClusterApi.running() as cluster:
        yield asyncio.run(_found(cluster))


async def _found(cluster: RealCluster) -> Found:
    flows = ("--flows", "external-remediation,machine-health-check")
    done = pp_leader("install", "--kubeconfig", str(cluster.kubeconfig()), "--machines", "cluster-api", *flows)
    assert done.returncode == 0, done.stderr
    with closing(client_for(str(cluster.kubeconfig()))) as client:
        theirs, ours = Side(client, cluster, "theirs", MANAGER), Side(client, cluster, "ours", LEADER)
        for side in (theirs, ours):
            await _made(side)
        await _checked(theirs)
        for row in ROWS:
            await until(
                partial(_shows, theirs, row, row.again if row.then else row.rests), f"it is done with {row.name}"
            )
        seen = {row.name: await theirs.seen(row) for row in ROWS}
        cluster.supervisor.kill("manager")
        with closing(client_for(str(cluster.kubeconfig(*LEADER_USER)))) as leader:
            async with term(leader, SETTINGS):
                await _checked(ours)
                with suppress(TimeoutError):  # the tests say which row it is
                    for row in ROWS:
                        await until(partial(_is_listed, seen[row.name], ours, row), f"{row.name} is as listed")
                return Found(seen, *[{row.name: await each.seen(row) for row in ROWS} for each in (ours, theirs)])


async def _made(side: Side) -> None:
    """All but the health checks."""
    for place in (WHOLE, PAUSED, EARLY):
        await side.make_place(place)
    for row in ROWS:
        await side.make(row)
    for row in ROWS:
        await until(partial(side.has_nodes, row), f"the manager finds the Nodes of {row.name}")
    await side.pause()
    for row in ROWS:
        await side.sicken(row)


async def _checked(side: Side) -> None:
    """All have health checks, and those that are to be well again are."""
    for row in ROWS:
        await side.check(row)
    for row in ROWS:
        if row.then:
            await until(partial(_shows, side, row, row.rests), f"{row.name} is remediated")
            await side.recover(row)


async def _shows(side: Side, row: Row, wanted: tuple[str, object]) -> bool:
    """A value of None is any one."""
    path, value = wanted
    found = (await side.seen(row)).get(path)
    return found is not None and value in (None, found)


async def _is_listed(theirs: Seen, ours: Side, row: Row) -> bool:
    return differences(theirs, await ours.seen(row)) == listed(row)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_all_that_it_tells_and_makes_is_what_the_manager_does_but_for_what_is_listed(found: Found, row: Row) -> None:
    seen, wanted = differences(found.theirs[row.name], found.ours[row.name]), listed(row)
    wrong = [path for path in sorted({*seen, *wanted}) if seen.get(path) != wanted.get(path)]
    assert not wrong, "\n".join(
        f"{path} is {seen.get(path, 'equal')}, listed: {wanted.get(path, 'equal')}" for path in wrong
    )


def test_it_leaves_the_managers_health_checks_alone(found: Found) -> None:
    assert found.theirs_after == found.theirs


def test_every_difference_that_is_meant_is_documented() -> None:
    told = " ".join(DOCUMENTED.read_text().split())
    reasons = {each.why for row in LISTED.values() for each in row}
    assert {each for each in (*reasons, f"in {len(ROWS)} situations") if each not in told} == set()
