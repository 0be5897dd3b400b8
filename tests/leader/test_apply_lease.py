"""The leader writes only while its Lease is valid (rule 14), and tells every outcome for what it is."""

from __future__ import annotations

import math
from typing import Callable

import pytest

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import CONFIG_MAPS, NODES, PODS
from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.steps.machines import Clear
from pp_hostd.leader.steps.nodes import (
    Complete,
    Cordon,
    DeleteNode,
    DropBackup,
    MarkFreeing,
    NoteRequest,
    Recreate,
    StoreBackup,
    Uncordon,
)
from pp_hostd.leader.steps.own_objects import HandOver, WriteRoster
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from pp_hostd.model.keys import NAMESPACE, ROSTER, backup_name
from pp_hostd.model.roster import Roster
from pp_hostd.model.step import Written
from tests.agent.objects import Home, boottime, create_our_namespace, until
from tests.contract.objects import config_map, pod, sample, uid_of, version_of
from tests.harness.trouble import TroubleServer
from tests.kube.conftest import Dial
from tests.leader.applying import Actuators, backup_of, read

DELETE = DeleteNode("worker", "uid", "1")
WRITES: dict[str, Callable[[Json], LeaderStep]] = {
    "cordon": lambda node: Cordon(node["metadata"]["name"], uid_of(node), version_of(node), 7),
    "mark": lambda node: MarkFreeing(node["metadata"]["name"], uid_of(node), version_of(node), 7, False),
    "note": lambda node: NoteRequest(node["metadata"]["name"], uid_of(node), version_of(node)),
    "delete": lambda node: DeleteNode(node["metadata"]["name"], uid_of(node), version_of(node)),
    "uncordon": lambda node: Uncordon(node["metadata"]["name"], uid_of(node)),
    "complete": lambda node: Complete(backup_of(node), uid_of(node)),
    "condemn": lambda node: Condemn(node["metadata"]["name"], uid_of(node), version_of(node), 7),
    "clear": lambda node: Clear(node["metadata"]["name"], uid_of(node), version_of(node), 7),
    "store backup": lambda node: StoreBackup(backup_of(node), None),
    "recreate": lambda node: Recreate(backup_of({**node, "metadata": {**node["metadata"], "name": "nobody"}})),
}


@pytest.fixture
def home(client: ApiClient, namespace: str) -> Home:
    return Home(client, "node", namespace)


@pytest.mark.parametrize("lease", ["never", "over"])
@pytest.mark.parametrize("step", WRITES.values(), ids=WRITES)
async def test_without_a_valid_lease_nothing_is_written(
    home: Home, unique: str, step: Callable[[Json], LeaderStep], lease: str
) -> None:
    actuators = Actuators(home)
    created = await home.client.create(NODES, sample(NODES, unique))
    await actuators.done(Cordon(unique, uid_of(created), version_of(created), 6))
    before = await home.client.get(NODES, unique)
    actuators.acting_until_at = -math.inf if lease == "never" else boottime()
    ended = await actuators.do(step(before))
    assert (ended.written, ended.sentence) == (Written.NOT_DONE, "the Lease is not valid")
    assert await home.client.get(NODES, unique) == before
    assert await read(home.client, NODES, "nobody") is None
    assert await read(home.client, CONFIG_MAPS, backup_name(unique), NAMESPACE) is None


async def test_without_a_valid_lease_no_backup_is_dropped_no_roster_written_and_no_pod_deleted(
    home: Home, unique: str
) -> None:
    await create_our_namespace(home.client)
    name = backup_name(unique)
    stored = await home.client.create(CONFIG_MAPS, config_map(name), namespace=NAMESPACE)
    node = await home.client.create(NODES, sample(NODES, unique))
    kept = await home.client.create(PODS, pod("web", nodeName=unique), namespace=home.namespace)
    actuators = Actuators(home)
    actuators.acting_until_at = -math.inf
    dropped = await actuators.do(DropBackup(unique, uid_of(node), version_of(stored)))
    await home.client.delete(NODES, unique)
    for ended in (dropped, await actuators.do(FreeWorkloads(unique, Freeing.ALL))):
        assert (ended.written, ended.sentence) == (Written.NOT_DONE, "the Lease is not valid")
    version = (await read(home.client, CONFIG_MAPS, ROSTER, NAMESPACE) or {}).get("metadata", {}).get("resourceVersion")
    assert await actuators.apply.write_roster(WriteRoster(Roster.of(1, 1, ()), version)) == "the Lease is not valid"
    assert await home.client.get(CONFIG_MAPS, name, namespace=NAMESPACE) == stored
    assert await home.client.get(PODS, "web", namespace=home.namespace) == kept
    assert [each for each in actuators.news if not hasattr(each, "written")] == []


def hands_on(dial: Dial, url: str) -> Actuators:
    return Actuators(Home(dial(url, deadline_seconds=1.0), "node", ""))


async def test_a_write_ends_with_the_lease(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("silent")
    actuators = Actuators(Home(dial(port.url), "node", ""))
    actuators.acting_until_at = boottime() + 0.3
    ended = await actuators.do(DELETE)
    assert (ended.written, ended.sentence) == (Written.UNKNOWN, "the Lease ran out while this was being written")
    assert 0 <= ended.at - actuators.acting_until_at < 5
    assert [seen.method for seen in port.requests] == ["DELETE"]


@pytest.mark.parametrize("behaviour", ["silent", "no answer", "half a body", "not JSON", "500"])
async def test_a_write_that_left_and_was_not_plainly_answered_is_unknown(
    trouble: TroubleServer, dial: Dial, behaviour: str
) -> None:
    ended = await hands_on(dial, trouble.listen(behaviour).url).do(DELETE)
    assert ended.written is Written.UNKNOWN
    assert ended.sentence.startswith("deleting Node worker: ")


@pytest.mark.parametrize("behaviour", ["silent before TLS", "black hole", "429", "401", "422"])
async def test_a_write_that_never_left_or_was_turned_away_is_not_done(
    trouble: TroubleServer, dial: Dial, behaviour: str
) -> None:
    ended = await hands_on(dial, trouble.listen(behaviour).url).do(DELETE)
    assert ended.written is Written.NOT_DONE
    assert ended.sentence.startswith("deleting Node worker: ")


async def test_a_write_that_the_watch_does_not_show_is_done_and_said_so(home: Home, unique: str) -> None:
    actuators = Actuators(home)
    actuators.blind = True
    created = await home.client.create(NODES, sample(NODES, unique))
    ended = await actuators.do(DeleteNode(unique, uid_of(created), version_of(created)))
    assert ended.written is Written.DONE
    assert ended.sentence == f"Node {unique} is written, but the watch has not shown it within 5 s"


class Broken(Actuators):
    """With an observer that has a fault."""

    async def shows(self, *_: object) -> bool:
        raise RuntimeError("a fault")


async def test_what_nobody_foresaw_leaves_the_outcome_unknown(home: Home, unique: str) -> None:
    created = await home.client.create(NODES, sample(NODES, unique))
    ended = await Broken(home).do(DeleteNode(unique, uid_of(created), version_of(created)))
    assert (ended.written, ended.sentence) == (Written.UNKNOWN, "unforeseen: RuntimeError('a fault')")


async def test_handing_over_gives_the_lease_up(home: Home) -> None:
    actuators = Actuators(home)
    await actuators.done(HandOver())
    assert actuators.resigned


async def test_once_closed_nothing_more_is_told(trouble: TroubleServer, dial: Dial) -> None:
    port = trouble.listen("silent")
    actuators = Actuators(Home(dial(port.url), "node", ""))
    actuators.apply.start("worker", DELETE)
    await until(lambda: port.requests, "the write has left")
    await actuators.apply.close()
    assert actuators.news == []
