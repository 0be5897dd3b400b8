"""The storage of a site, as a CSI attacher makes it known: it attaches a volume to one node at a time, and detaches it.

python -m tests.scenarios.endtoend.attacher KUBECONFIG
"""

from __future__ import annotations

import asyncio
import sys

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import VOLUME_ATTACHMENTS

DRIVER = "storage.example.com"
FINALIZER = "external-attacher/storage-example-com"
LOOK_SECONDS = 0.2
DEADLINE_SECONDS = 5.0


class Attacher:
    """Looks again and again; what fails is tried at the next look."""

    def __init__(self, client: ApiClient) -> None:
        self._client = client

    async def look(self) -> None:
        listing = await self._client.list(VOLUME_ATTACHMENTS)
        for attachment in listing.items:
            if "deletionTimestamp" in attachment["metadata"]:
                await self._detach(attachment)
            elif not _is_attached(attachment):
                await self._attach(attachment, listing.items)

    async def _attach(self, attachment: Json, everyone: list[Json]) -> None:
        if any(_is_attached(each) and _volume(each) == _volume(attachment) for each in everyone):
            return  # no storage of this kind attaches a volume twice
        name = attachment["metadata"]["name"]
        await self._client.patch(VOLUME_ATTACHMENTS, name, {"metadata": {"finalizers": [FINALIZER]}})
        await self._client.patch(VOLUME_ATTACHMENTS, name, {"status": {"attached": True}}, subresource="status")

    async def _detach(self, attachment: Json) -> None:
        name = attachment["metadata"]["name"]
        await self._client.patch(VOLUME_ATTACHMENTS, name, {"status": {"attached": False}}, subresource="status")
        await self._client.patch(VOLUME_ATTACHMENTS, name, {"metadata": {"finalizers": None}})


def _is_attached(attachment: Json) -> bool:
    return bool(attachment.get("status", {}).get("attached"))


def _volume(attachment: Json) -> str:
    return str(attachment["spec"]["source"]["persistentVolumeName"])


async def _run(kubeconfig: str) -> None:
    attacher = Attacher(ApiClient(load(kubeconfig), deadline_seconds=DEADLINE_SECONDS))
    while True:
        try:
            await attacher.look()
        except ApiError as error:
            print(error.sentence, flush=True)
        await asyncio.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    asyncio.run(_run(sys.argv[1]))
