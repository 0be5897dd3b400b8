"""The step that frees a dead node's workloads: it deletes its pods and VolumeAttachments, in passes of bounded time."""

from __future__ import annotations

import enum
import math
from functools import partial

from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import ApiError, written_by
from pp_hostd.kube.resources import NODES, PODS, VOLUME_ATTACHMENTS, Resource
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import Freed, Port, Unwritten, if_there
from pp_hostd.leader.steps.volumes import Volumes
from pp_hostd.model.keys import FENCED_BOOT, FREEING
from pp_hostd.model.node import parse_node
from pp_hostd.model.record import Unreadable
from pp_hostd.model.step import Written

PASS_SECONDS = 10.0
_MIRROR = "kubernetes.io/config.mirror"


class Freeing(enum.Enum):
    """The pods that the leader itself deletes to free the workloads."""

    ALL = "all pods"
    """The Node is gone: nobody else takes care of any of its pods."""
    SPARING = "all but daemon and static pods"
    """The Node stays, and with it what belongs to it."""
    STORAGE = "those of which all volumes are of a certain storage"
    """That storage is cut off from a host that may live on. The Node stays."""
    AWAIT = "none"
    """The cluster itself frees them (out-of-service); it is only looked after."""


@frozen
class FreeWorkloads:
    """Delete the node's pods and VolumeAttachments at once: one pass, and what it does not come to is left for the
    next."""

    node: str
    freeing: Freeing
    boot: str = ""
    """The boot that is dead or cut off, where the Node stays: nothing is freed once its kubelet has reported another
    one. Empty: any."""
    storage: tuple[str, ...] = ()
    """The StorageClasses or CSI drivers that are cut off."""
    per_second: float = math.inf
    """No more are deleted in a second, even if the leader's pace allows it."""

    async def run(self, port: Port) -> str:
        """ApiError or Unwritten if it can't be told how far it came."""
        left, trouble = await self._pass(port)
        port.tell(Freed(self.node, left, port.clock()))
        return trouble

    async def _pass(self, port: Port) -> tuple[int, str]:
        """How many must still go, and what went wrong last."""
        if await self._is_back(port):
            return 0, ""
        found = await self._workloads(port)
        if self.freeing is Freeing.AWAIT:
            return len(found), ""
        trouble, over_at = "", port.clock() + PASS_SECONDS  # from here: however long a list takes, a pass gets further
        for each in found:
            if each.going:
                continue
            if not await _turn(port, self.per_second, over_at):
                break
            if await self._is_back(port):
                return 0, ""
            trouble = await _delete(port, each) or trouble
        left = {each.uid for each in await self._workloads(port) if not each.going}
        if self.freeing in (Freeing.SPARING, Freeing.STORAGE):
            # Pods that tolerate the taint are put there again at once, and no host has run those.
            left &= {each.uid for each in found}
        return len(left), trouble

    async def _is_back(self, port: Port) -> bool:
        """By a read, whatever the watch has shown (rule 12): whether a Node that was deleted is there again. Its
        kubelet made it, and the pods are that one's. One that stays must bear the marker: Unwritten if it does not."""
        if self.freeing is Freeing.AWAIT:
            return False
        found = await if_there(port.api.get(NODES, self.node))
        if self.freeing is Freeing.ALL:
            return found is not None
        mark = FENCED_BOOT if self.freeing is Freeing.STORAGE else FREEING
        if found is None or mark not in (found["metadata"].get("annotations") or {}):
            raise Unwritten(Written.CONFLICT, f"Node {self.node} does not bear {mark} any more")
        reported = ((found.get("status") or {}).get("nodeInfo") or {}).get("bootID")
        if self.boot and reported != self.boot:
            raise Unwritten(Written.CONFLICT, f"Node {self.node} has reported another boot")
        if self.freeing is Freeing.STORAGE and not _boots(found).issubset(
            found["metadata"]["annotations"][mark].split()
        ):
            raise Unwritten(Written.CONFLICT, f"the agent of Node {self.node} has stated another boot")
        return False

    async def _workloads(self, port: Port) -> list[_Workload]:
        of_node = f"spec.nodeName={self.node}"
        if self.freeing is Freeing.STORAGE:
            return await self._of_storage(port, of_node)
        pods = await port.api.list(PODS, field_selector=of_node, keep=partial(_pod, self.freeing))
        # The API can't select these by node.
        attachments = await port.api.list(VOLUME_ATTACHMENTS, keep=partial(_attachment, self.node))
        return [each for each in (*pods.items, *attachments.items) if each is not None]

    async def _of_storage(self, port: Port, of_node: str) -> list[_Workload]:
        """The pods that have volumes, all of that storage, and the attachments of its volumes that no pod uses which
        stays. A pass that ended early may have deleted the pods of some."""
        volumes = Volumes(port, self.storage)
        freed, used = [], set()
        for pod in (await port.api.list(PODS, field_selector=of_node)).items:
            names = None if stays(pod) else await volumes.of_pod(pod)
            if names is None:
                used |= await volumes.all_of_pod(pod)
            elif names:
                freed.append(_workload(PODS, pod))
        attachments = await port.api.list(VOLUME_ATTACHMENTS, keep=partial(_attached, self.node))
        unused = [(volume, each) for volume, each in filter(None, attachments.items) if volume not in used]
        return [*freed, *[each for volume, each in unused if await volumes.is_cut_off(volume)]]


def _boots(node: Json) -> set[str]:
    """The boots in which its workloads may run."""
    found = parse_node(node)
    return set() if isinstance(found, Unreadable) else set(found.boots)


@frozen
class _Workload:
    """A pod or VolumeAttachment. `going`: only its finalizers keep it, nobody waits for the dead kubelet any more."""

    kind: Resource
    namespace: str | None
    name: str
    uid: str
    resource_version: str
    going: bool


async def _turn(port: Port, per_second: float, over_at: float) -> bool:
    """Wait for the next deletion's turn, if it comes before the pass is over."""
    now, pace = port.clock(), port.pace
    turn_at = max(now, pace.next_at)
    if turn_at >= over_at:
        return False
    pace.next_at = turn_at + 1 / min(pace.per_second, per_second)
    await port.sleep(turn_at - now)
    return True


async def _delete(port: Port, workload: _Workload) -> str:
    """Why it can't be deleted; empty if it is. A conflict is for the next pass, and who is gone is gone."""
    grace_seconds, version = (0, workload.resource_version) if workload.kind is PODS else (None, None)
    try:
        await port.send(
            lambda: port.api.delete(
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


def _pod(freeing: Freeing, pod: Json) -> _Workload | None:
    spared = freeing is not Freeing.ALL and stays(pod)
    return None if spared or (freeing is Freeing.AWAIT and _is_left(pod)) else _workload(PODS, pod)


def _attached(node: str, attachment: Json) -> tuple[str, _Workload] | None:
    volume = (attachment["spec"].get("source") or {}).get("persistentVolumeName") or ""
    found = _attachment(node, attachment)
    return None if found is None else (volume, found)


def _attachment(node: str, attachment: Json) -> _Workload | None:
    return _workload(VOLUME_ATTACHMENTS, attachment) if attachment["spec"]["nodeName"] == node else None


def _workload(kind: Resource, found: Json) -> _Workload:
    metadata = found["metadata"]
    going = "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")
    return _Workload(
        kind, metadata.get("namespace"), metadata["name"], metadata["uid"], metadata["resourceVersion"], going
    )


def stays(pod: Json) -> bool:
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
