"""The kubelet of a host: it registers its Node as kubelets do, and lets kwok run what is scheduled there.

python -m tests.scenarios.endtoend.kubelet NODE ADDRESS KUBECONFIG KWOK KWOK_KUBECONFIG

kwok keeps the Node Ready and its pods running, and knows nothing of volumes: which ones are in use is told from here,
since nobody detaches such a one for minutes. The Lease is renewed here, too: where kwok does it, kwok passes over every
pod that it sees before its own watch shows the Lease that it wrote, and never looks at that pod again.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable
from datetime import datetime, timezone
from typing import IO, Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError, is_missing
from pp_hostd.kube.resources import KUBELET_LEASES, LEASES, NODES, PODS

ATTACHES_BY_CONTROLLER = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
LEASE_SECONDS, RENEW_SECONDS = 40, 10
TELL_SECONDS = 0.5
DEADLINE_SECONDS = 5.0
RESTART_SECONDS = 0.5


async def register(client: ApiClient, node: str, address: str) -> None:
    """Make the Node, unless there is one, which then says at least what this kubelet wants there."""
    labels = {"kubernetes.io/hostname": node}
    metadata = {"name": node, "labels": labels, "annotations": ATTACHES_BY_CONTROLLER}
    try:
        await client.get(NODES, node)
        await client.patch(NODES, node, {"metadata": metadata})
    except ApiError as error:
        if not is_missing(error):
            raise
        await client.create(NODES, {"metadata": metadata})
    status = {"addresses": [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": node}]}
    await client.patch(NODES, node, {"status": status}, subresource="status")


async def renew_lease(client: ApiClient, node: str) -> None:
    """Renew the Lease; where it went with its Node, make another one once there is a Node again."""
    spec = {"holderIdentity": node, "leaseDurationSeconds": LEASE_SECONDS, "renewTime": _micro_time()}
    try:
        await client.patch(LEASES, node, {"spec": spec}, namespace=KUBELET_LEASES)
    except ApiError as error:
        if not is_missing(error):
            raise
        uid = (await client.get(NODES, node))["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": node, "uid": uid}
        body = {"metadata": {"name": node, "ownerReferences": [owner]}, "spec": spec}
        await client.create(LEASES, body, namespace=KUBELET_LEASES)


def _micro_time() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="microseconds").replace("+00:00", "Z")


async def tell_volumes(client: ApiClient, node: str) -> None:
    """Reports all attached volumes as in use for as long as a pod of the node has a claim."""
    pods = await client.list(PODS, field_selector=f"spec.nodeName={node}", keep=_has_claim)
    status = (await client.get(NODES, node))["status"]
    attached = [volume["name"] for volume in status.get("volumesAttached", [])]
    in_use = attached if any(pods.items) else []
    if in_use != status.get("volumesInUse", []):
        await client.patch(NODES, node, {"status": {"volumesInUse": in_use}}, subresource="status")


def _has_claim(pod: Json) -> bool:
    return any("persistentVolumeClaim" in volume for volume in pod["spec"].get("volumes", []))


async def run(node: str, address: str, kubeconfig: str, kwok: list[str], log: IO[bytes]) -> None:
    client = ApiClient(load(kubeconfig), deadline_seconds=DEADLINE_SECONDS)
    await insist(lambda: register(client, node, address))
    await asyncio.gather(
        _keep_running(kwok, log),
        repeat(lambda: renew_lease(client, node), RENEW_SECONDS),
        repeat(lambda: tell_volumes(client, node), TELL_SECONDS),
    )


async def _keep_running(kwok: list[str], log: IO[bytes]) -> None:
    """As systemd does with a kubelet. kwok sometimes ends while it starts, with "concurrent map writes": its
    controllers of Nodes and of pods fill one map of CEL types at the same time, without a lock."""
    while True:
        process = await asyncio.create_subprocess_exec(*kwok, stderr=log)
        print(f"kwok has ended with {await process.wait()}, and is started again", flush=True)
        await asyncio.sleep(RESTART_SECONDS)


async def repeat(attempt: Callable[[], Awaitable[None]], every_seconds: float) -> None:
    while True:
        await insist(attempt)
        await asyncio.sleep(every_seconds)


async def insist(attempt: Callable[[], Awaitable[object]]) -> None:
    """Until the API takes it."""
    while True:
        try:
            await attempt()
            return
        except ApiError as error:
            print(error.sentence, flush=True)
            await asyncio.sleep(TELL_SECONDS)


if __name__ == "__main__":
    node, address, own_kubeconfig, program, kwok_kubeconfig = sys.argv[1:]
    kwok = [program, "--config=-", f"--kubeconfig={kwok_kubeconfig}", f"--manage-single-node={node}"]
    kwok += [f"--node-ip={address}", "--node-lease-duration-seconds=0"]
    with open(f"{kwok_kubeconfig}.log", "wb") as log:
        asyncio.run(run(node, address, own_kubeconfig, kwok, log))
