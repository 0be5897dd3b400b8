"""Freeing a dead node's workloads: its pods and VolumeAttachments are deleted at once, in passes of bounded time."""

from __future__ import annotations

import asyncio
from functools import partial

from pp_hostd.frozen import frozen
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, written_by
from pp_hostd.kube.resources import NODES, PODS, VOLUME_ATTACHMENTS, Resource
from pp_hostd.leader.inspection import if_there
from pp_hostd.leader.write import Clock, Unwritten, Writer
from pp_hostd.model.keys import FREEING
from pp_hostd.model.remedy import Freeing
from pp_hostd.model.written import Written

PASS_SECONDS = 10.0
_MIRROR = "kubernetes.io/config.mirror"


@frozen
class Pass:
    """What one pass has come to: how many must still go, and what went wrong last."""

    left: int
    trouble: str = ""


@frozen
class _Workload:
    """A pod or VolumeAttachment. `going`: only its finalizers keep it, nobody waits for the dead kubelet any more."""

    kind: Resource
    namespace: str | None
    name: str
    uid: str
    resource_version: str
    going: bool


class Free:
    """All passes together make at most `deletions_per_second`, which may be replaced while it runs."""

    def __init__(self, client: ApiClient, writer: Writer, clock: Clock, deletions_per_second: float) -> None:
        self.deletions_per_second = deletions_per_second
        self._client, self._writer, self._clock = client, writer, clock
        self._next_at = float("-inf")

    async def run(self, node: str, freeing: Freeing) -> Pass:
        """One pass; what it does not come to is left for the next. ApiError or Unwritten if it can't be told how far
        it came."""
        if await self._is_back(node, freeing):
            return Pass(0)
        found = await self._workloads(node, freeing)
        if freeing is Freeing.AWAIT:
            return Pass(len(found))
        trouble, over_at = "", self._clock() + PASS_SECONDS  # from here: however long a list takes, a pass gets further
        for each in found:
            if each.going:
                continue
            if not await self._turn(over_at):
                break
            if await self._is_back(node, freeing):
                return Pass(0)
            trouble = await self._delete(each) or trouble
        left = {each.uid for each in await self._workloads(node, freeing) if not each.going}
        if freeing is Freeing.SPARING:  # who tolerates the taint is put there again at once, and no host has run that
            left &= {each.uid for each in found}
        return Pass(len(left), trouble)

    async def _is_back(self, node: str, freeing: Freeing) -> bool:
        """By a read, whatever the watch has shown (rule 12): whether a Node that was deleted is there again. Its
        kubelet made it, and the pods are that one's. One that stays must bear the marker: Unwritten if it does not."""
        if freeing is Freeing.AWAIT:
            return False
        found = await if_there(self._client.get(NODES, node))
        if freeing is Freeing.ALL:
            return found is not None
        if found is None or FREEING not in (found["metadata"].get("annotations") or {}):
            raise Unwritten(Written.CONFLICT, f"Node {node} does not bear {FREEING} any more")
        return False

    async def _turn(self, over_at: float) -> bool:
        """Wait for the next deletion's turn, if it comes before the pass is over."""
        now = self._clock()
        turn_at = max(now, self._next_at)
        if turn_at >= over_at:
            return False
        self._next_at = turn_at + 1 / self.deletions_per_second
        await asyncio.sleep(turn_at - now)
        return True

    async def _delete(self, workload: _Workload) -> str:
        """Why it can't be deleted, or nothing. A conflict is for the next pass, and who is gone is gone."""
        grace_seconds, version = (0, workload.resource_version) if workload.kind is PODS else (None, None)
        try:
            await self._writer.send(
                lambda: self._client.delete(
                    workload.kind,
                    workload.name,
                    namespace=workload.namespace,
                    uid=workload.uid,
                    resource_version=version,
                    grace_period_seconds=grace_seconds,
                )
            )
        except ApiError as error:
            return "" if written_by(error) is Written.CONFLICT else error.sentence
        return ""

    async def _workloads(self, node: str, freeing: Freeing) -> list[_Workload]:
        pods = await self._client.list(PODS, field_selector=f"spec.nodeName={node}", keep=partial(_pod, freeing))
        # The API can't select these by node.
        attachments = await self._client.list(VOLUME_ATTACHMENTS, keep=partial(_attachment, node))
        return [each for each in (*pods.items, *attachments.items) if each is not None]


def _pod(freeing: Freeing, pod: Json) -> _Workload | None:
    stays = freeing is not Freeing.ALL and _stays(pod)
    return None if stays or (freeing is Freeing.AWAIT and _is_left(pod)) else _workload(PODS, pod)


def _attachment(node: str, attachment: Json) -> _Workload | None:
    return _workload(VOLUME_ATTACHMENTS, attachment) if attachment["spec"]["nodeName"] == node else None


def _workload(kind: Resource, found: Json) -> _Workload:
    metadata = found["metadata"]
    going = "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")
    return _Workload(
        kind, metadata.get("namespace"), metadata["name"], metadata["uid"], metadata["resourceVersion"], going
    )


def _stays(pod: Json) -> bool:
    """Whether it belongs to the Node, as Kubernetes sees it: a static pod's mirror, or a DaemonSet's."""
    metadata = pod["metadata"]
    owned = any(owner.get("kind") == "DaemonSet" for owner in metadata.get("ownerReferences") or ())
    return owned or _MIRROR in (metadata.get("annotations") or {})


def _is_left(pod: Json) -> bool:
    """Whether the cluster leaves it where it is: it tolerates every taint, and nobody else has deleted it."""
    tolerations = pod["spec"].get("tolerations") or ()
    evicted = all(
        each.get("key") or each.get("effect", "NoExecute") != "NoExecute" or "tolerationSeconds" in each
        for each in tolerations
    )
    return not evicted and "deletionTimestamp" not in pod["metadata"]
