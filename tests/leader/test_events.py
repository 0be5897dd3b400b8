"""Events tell people what is done about a machine or Node, count repetitions, and harm nobody when they are lost."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import timedelta
from typing import Callable

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.events import MAX_OPEN, MAX_WAITING, About, Events
from pp_hostd.kube.resources import EVENTS, NODES, OPENSHIFT_MACHINES
from tests.agent.objects import SINCE, running, until
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial

NODE = About(NODES, None, "worker", "uid-1")


@pytest.fixture
def about(namespace: str, unique: str) -> About:
    return About(OPENSHIFT_MACHINES, namespace, "worker", unique)


async def told_of(client: ApiClient, uid: str, namespace: str) -> list[Json]:
    found = await client.list(EVENTS, namespace=namespace, field_selector=f"involvedObject.uid={uid}")
    return list(found.items)


async def test_an_event_names_its_machine_and_says_why(client: ApiClient, about: About, namespace: str) -> None:
    events = Events(client, lambda: SINCE)
    await events.event(about, "Condemned", "it was requested", warning=True)
    [event] = await told_of(client, about.uid, namespace)
    assert event["involvedObject"] == {
        "apiVersion": "machine.openshift.io/v1beta1",
        "kind": "Machine",
        "namespace": namespace,
        "name": "worker",
        "uid": about.uid,
    }
    said = f"Machine {namespace}/worker: it was requested"
    assert (event["reason"], event["message"], event["type"]) == ("Condemned", said, "Warning")
    assert (event["source"], event["count"]) == ({"component": "pp-leader"}, 1)
    assert event["firstTimestamp"] == event["lastTimestamp"] == "2026-03-01T12:00:00Z"
    assert events.lost == 0


async def test_an_event_about_a_node_is_kept_in_the_default_namespace(client: ApiClient, unique: str) -> None:
    await Events(client, lambda: SINCE).event(replace(NODE, uid=unique), "Freed", "it is free", warning=False)
    [event] = await told_of(client, unique, "default")
    assert (event["type"], event["involvedObject"]["kind"]) == ("Normal", "Node")
    assert "namespace" not in event["involvedObject"]


async def test_the_same_event_once_more_counts_up_and_another_stands_beside_it(
    client: ApiClient, about: About, namespace: str
) -> None:
    times = iter([SINCE, SINCE + timedelta(seconds=60), SINCE + timedelta(seconds=61)])
    events = Events(client, lambda: next(times))
    for sentence in ("it was requested", "it was requested", "it was requested again"):
        await events.event(about, "Condemned", sentence, warning=True)
    subject = f"Machine {namespace}/worker: "
    found = {each["message"].replace(subject, ""): each for each in await told_of(client, about.uid, namespace)}
    assert {message: each["count"] for message, each in found.items()} == {
        "it was requested": 2,
        "it was requested again": 1,
    }
    repeated = found["it was requested"]
    assert (repeated["firstTimestamp"], repeated["lastTimestamp"]) == ("2026-03-01T12:00:00Z", "2026-03-01T12:01:00Z")


async def test_an_event_does_not_name_its_object_twice(client: ApiClient, unique: str) -> None:
    await Events(client, lambda: SINCE).event(
        replace(NODE, uid=unique), "Freed", f"Node {NODE.name} is free", warning=False
    )
    [event] = await told_of(client, unique, "default")
    assert event["message"] == f"Node {NODE.name} is free"


async def test_a_long_sentence_is_cut(client: ApiClient, about: About, namespace: str) -> None:
    await Events(client, lambda: SINCE).event(about, "Refused", "x" * 5000, warning=True)
    [event] = await told_of(client, about.uid, namespace)
    assert len(event["message"]) == 1024


async def test_an_event_that_cannot_be_written_is_counted(client_of: Callable[[str], ApiClient], about: About) -> None:
    events = Events(client_of("nobody"), lambda: SINCE)
    await events.event(about, "Condemned", "it was requested", warning=True)
    assert events.lost == 1


async def test_many_at_once_are_all_told_some_of_them_later(client: ApiClient, about: About, namespace: str) -> None:
    events = Events(client, lambda: SINCE)
    told = [events.event(about, "Refused", str(number), warning=True) for number in range(2 * MAX_OPEN)]
    await asyncio.gather(*told)
    assert len(await told_of(client, about.uid, namespace)) == 2 * MAX_OPEN
    assert events.lost == 0


async def test_of_too_many_at_once_the_rest_is_dropped(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("silent")
    events = Events(dial(port.url), lambda: SINCE)
    async with AsyncExitStack() as stack:
        for number in range(MAX_WAITING):
            await stack.enter_async_context(running(events.event(NODE, "Freed", str(number), warning=False)))
        await asyncio.sleep(0)
        await events.event(NODE, "Freed", "one too many", warning=False)
        assert events.lost == 1
        await until(lambda: len(port.requests) == MAX_OPEN, "as many as may be are under way")
