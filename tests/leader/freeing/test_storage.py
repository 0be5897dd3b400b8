"""Freeing workloads of a node that is cut off from one storage: its pods on that storage, and nobody else's."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NODES, VOLUME_ATTACHMENTS, VOLUME_CLAIMS, VOLUMES
from pp_hostd.leader.steps.port import Freed
from pp_hostd.leader.steps.workloads import Freeing, FreeWorkloads
from pp_hostd.model.keys import FENCED_BOOT
from tests.agent.objects import Home
from tests.contract.objects import sample
from tests.leader.applying import Actuators
from tests.leader.freeing.deeds import attachments, bind, pods
from tests.leader.freeing.test_pass import DAEMON

SAN, LOCAL = "san", "local"


class Disks:
    """Of a Node whose storage SAN is cut off. Their names begin with that of the Node."""

    def __init__(self, home: Home, actuators: Actuators, node: str) -> None:
        self._home, self._actuators, self._node = home, actuators, node

    async def attach(self, name: str, storage: str) -> None:
        """A volume of that storage, with a claim, to the node."""
        client, own = self._home.client, f"{self._node}-{name}"
        size, shared = {"storage": "1Gi"}, {"accessModes": ["ReadWriteOnce"], "storageClassName": storage}
        source = {"csi": {"driver": "csi.example", "volumeHandle": own}, "capacity": size}
        await client.create(VOLUMES, {"metadata": {"name": own}, "spec": {**shared, **source}})
        claim = {**shared, "volumeName": own, "resources": {"requests": size}}
        await client.create(VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": claim}, namespace=self._home.namespace)
        spec = {"attacher": "csi.example", "nodeName": self._node, "source": {"persistentVolumeName": own}}
        await client.create(VOLUME_ATTACHMENTS, {"metadata": {"name": own}, "spec": spec})

    async def bind(self, name: str, disks: Sequence[str], metadata: Json | None = None) -> None:
        volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in disks]
        await bind(self._home, name, self._node, metadata, volumes=volumes)

    async def free(self) -> int:
        """One pass, once the storage is cut off; returns how many are left."""
        cut_off = sample(NODES, self._node, annotations={FENCED_BOOT: "boot-1"})
        await self._home.client.create(NODES, cut_off)
        await self._actuators.done(FreeWorkloads(self._node, Freeing.STORAGE, storage=(SAN,)))
        told = self._actuators.news[-2]
        assert isinstance(told, Freed)
        return told.left

    async def attached(self) -> list[str]:
        return [name[len(self._node) + 1 :] for name in await attachments(self._home, self._node)]


@pytest.fixture
def disks(home: Home, actuators: Actuators, unique: str) -> Disks:
    return Disks(home, actuators, unique)


async def test_only_pods_on_that_storage_alone_are_freed_and_their_volumes(home: Home, disks: Disks) -> None:
    for name, storage in {"own": SAN, "mixed": SAN, "other": LOCAL, "daemons": SAN}.items():
        await disks.attach(name, storage)
    await disks.bind("cut-off", ["own"])
    await disks.bind("half", ["mixed", "other"])
    await disks.bind("without", [])
    await disks.bind("daemon", ["daemons"], DAEMON)
    assert await disks.free() == 0
    assert await pods(home) == ["daemon", "half", "without"]
    assert await disks.attached() == ["daemons", "mixed", "other"]


async def test_a_volume_is_released_whose_pod_a_pass_that_ended_early_has_deleted(disks: Disks) -> None:
    await disks.attach("left", SAN)
    await disks.attach("other", LOCAL)
    assert await disks.free() == 0
    assert await disks.attached() == ["other"]
