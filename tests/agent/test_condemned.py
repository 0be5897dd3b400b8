"""The watch on condemned machines reports each at once, and never that one is condemned no longer."""

from __future__ import annotations

from typing import Callable

import pytest

from pp_hostd.agent.sense.watches import CondemnedWatch
from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import Kubeconfig
from pp_hostd.kube.resources import NODES
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.keys import CONDEMNED, EXTERNAL_REMEDIATION
from tests.agent.interrupted import BROKEN_OFF, Interrupted
from tests.agent.objects import KINDS, Home, boottime, running, until
from tests.contract.objects import sample, uid_of
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial

ClientOf = Callable[[str], ApiClient]

WITHOUT_ID = {"annotations": {EXTERNAL_REMEDIATION: "2026-03-01T12:00:00Z"}, "labels": {CONDEMNED: ""}}
"""Metadata of a machine whose condemnation can't be read."""


@pytest.fixture(params=KINDS)
def home(request: pytest.FixtureRequest, client: ApiClient, namespace: str) -> Home:
    return Home(client, request.param, namespace)


async def nobody_is_marked(home: Home) -> None:
    """Other tests may have left what bears the label of the condemned."""
    marked = await home.client.list(home.kind, label_selector=CONDEMNED)
    for metadata in (each["metadata"] for each in marked.items):
        unmarked = {"metadata": {"labels": {CONDEMNED: None}}}
        await home.client.patch(home.kind, metadata["name"], unmarked, namespace=metadata.get("namespace"))


class Heard:
    """All that a watch has told so far. Other tests may leave condemned machines behind."""

    def __init__(self, home: Home, client: ApiClient | None = None) -> None:
        self.told: list[tuple[str, str, int]] = []
        self.told_at: list[float] = []
        self.lists = 0
        self.told_before_listed = 0
        self.watch = CondemnedWatch(home.machines, boottime, self)
        self._client = client or home.client

    async def run(self) -> None:
        await self.watch.run(self._client)

    def learned(self, machine_key: str, uid: str, condemnation_id: int, at: float) -> None:
        self.told.append((machine_key, uid, condemnation_id))
        self.told_at.append(at)

    def listed(self) -> None:
        self.lists += 1
        self.told_before_listed = self.told_before_listed or len(self.told)

    def of(self, machine_key: str) -> list[tuple[str, int]]:
        return [(uid, condemnation_id) for each, uid, condemnation_id in self.told if each == machine_key]


async def test_what_was_condemned_before_is_told_before_the_list_is_called_whole(home: Home, unique: str) -> None:
    await nobody_is_marked(home)
    created = await home.enrol(unique)
    await home.condemn(unique, 7)
    heard = Heard(home)
    async with running(heard.run()):
        await until(lambda: heard.lists, "the condemned are listed")
    assert (home.machine_key(unique), uid_of(created), 7) in heard.told[: heard.told_before_listed]
    assert heard.watch.trouble == ""


async def test_a_condemnation_is_told_when_it_is_written_and_each_later_one_again(home: Home, unique: str) -> None:
    created = await home.enrol(unique)
    heard = Heard(home)
    async with running(heard.run()):
        await until(lambda: heard.lists, "the condemned are listed")
        assert heard.of(home.machine_key(unique)) == []
        for condemnation_id in (7, 8):
            before = boottime()
            await home.condemn(unique, condemnation_id)
            told = (uid_of(created), condemnation_id)
            await until(lambda told=told: told in heard.of(home.machine_key(unique)), "it is told")  # type: ignore[misc]
            assert before < heard.told_at[-1] < boottime()


async def test_that_a_condemnation_was_lifted_or_its_machine_deleted_is_no_news(home: Home, unique: str) -> None:
    names = [f"{unique}-{number}" for number in range(3)]
    for name in names:
        await home.enrol(name)
    lifted, deleted, last = names
    heard = Heard(home)
    async with running(heard.run()):
        await until(lambda: heard.lists, "the condemned are listed")
        await home.condemn(lifted)
        await home.condemn(deleted)
        await home.client.patch(home.kind, lifted, {"metadata": NotRequested(7).render()}, namespace=home.where)
        await home.client.delete(home.kind, deleted, namespace=home.where)
        await home.condemn(last)
        await until(lambda: heard.of(home.machine_key(last)), "what came after is told")
        assert [len(heard.of(home.machine_key(name))) for name in names] == [1, 1, 1]
        assert heard.lists == 1


async def test_a_condemnation_without_an_id_condemns_nobody_and_is_reported(home: Home, unique: str) -> None:
    await nobody_is_marked(home)
    await home.enrol(unique)
    heard = Heard(home)
    async with running(heard.run()):
        await until(lambda: heard.lists, "the condemned are listed")
        await home.client.patch(home.kind, unique, {"metadata": WITHOUT_ID}, namespace=home.where)
        await until(lambda: heard.watch.trouble, "it is reported")
        machine_key = home.machine_key(unique)
        assert heard.watch.trouble.startswith(f"machine {machine_key}: the condemnation is unreadable: ")
        assert heard.of(machine_key) == []
        await home.condemn(unique)
        await until(lambda: heard.of(machine_key), "it is told")
        assert heard.watch.trouble == ""
    await home.client.delete(home.kind, unique, namespace=home.where)


async def test_whoever_may_not_list_has_listed_nothing_and_is_told_why(home: Home, client_of: ClientOf) -> None:
    heard = Heard(home, client_of("nobody"))
    assert heard.watch.trouble == "the condemned machines have not been listed yet"
    async with running(heard.run()):
        await until(lambda: "forbidden" in heard.watch.trouble, "it is reported")
    assert heard.lists == 0


async def test_machines_that_are_not_served_are_looked_for_again_after_a_pause(
    trouble: TroubleServer, dial: Dial
) -> None:
    port = trouble.listen("404")
    heard = Heard(Home(dial(port.url), "cluster-api", "default"))
    async with running(heard.run()):
        await until(lambda: len(port.requests) > 2, "both versions were tried, and one again")
    targets = [seen.target.partition("/machines")[0] for seen in port.requests[:3]]
    assert targets == [f"/apis/cluster.x-k8s.io/{version}" for version in ("v1beta2", "v1beta1", "v1beta2")]
    assert "not found" in heard.watch.trouble
    assert heard.lists == 0


async def test_a_watch_that_goes_on_after_an_interruption_hides_no_other_trouble(kubeconfig: Kubeconfig) -> None:
    unreadable = sample(NODES, "worker-1", annotations=WITHOUT_ID["annotations"], labels=WITHOUT_ID["labels"])
    unreadable["metadata"].update(uid="uid", resourceVersion="1")
    client = Interrupted(kubeconfig, unreadable)
    heard = Heard(Home(client, "node", "default"))
    async with running(heard.run()):
        await until(lambda: heard.watch.trouble == BROKEN_OFF, "the interruption is reported")
        client.going_on.set()
        await until(lambda: heard.watch.trouble != BROKEN_OFF, "it is over")
    assert heard.watch.trouble.startswith("machine worker-1: the condemnation is unreadable: ")
