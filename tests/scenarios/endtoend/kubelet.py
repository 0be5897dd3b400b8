"""The kubelet of a host: it registers its Node as kubelets do, and lets kwok run what is scheduled there.

python -m tests.scenarios.endtoend.kubelet NODE ADDRESS KUBECONFIG KWOK KWOK_KUBECONFIG

kwok keeps the Node Ready, its Lease renewed and its pods running, and knows nothing of volumes: which ones are in use
is told from here, since nobody detaches such a one for minutes.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Awaitable
from typing import Callable

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError, is_missing
from pp_hostd.kube.resources import NODES, PODS

ATTACHES_BY_CONTROLLER = {"volumes.kubernetes.io/controller-managed-attach-detach": "true"}
LEASE_SECONDS = 40
TELL_SECONDS = 0.5
DEADLINE_SECONDS = 5.0


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


async def tell_volumes(client: ApiClient, node: str) -> None:
    """What is attached is in use as long as a pod here has a claim."""
    pods = await client.list(PODS, field_selector=f"spec.nodeName={node}", keep=_has_claim)
    status = (await client.get(NODES, node))["status"]
    attached = [volume["name"] for volume in status.get("volumesAttached", [])]
    in_use = attached if any(pods.items) else []
    if in_use != status.get("volumesInUse", []):
        await client.patch(NODES, node, {"status": {"volumesInUse": in_use}}, subresource="status")


def _has_claim(pod: Json) -> bool:
    return any("persistentVolumeClaim" in volume for volume in pod["spec"].get("volumes", []))


async def _run(node: str, address: str, kubeconfig: str, kwok: list[str]) -> None:
    client = ApiClient(load(kubeconfig), deadline_seconds=DEADLINE_SECONDS)
    await _insist(lambda: register(client, node, address))
    await asyncio.create_subprocess_exec(*kwok, stderr=subprocess.DEVNULL)
    while True:
        await _insist(lambda: tell_volumes(client, node))
        await asyncio.sleep(TELL_SECONDS)


async def _insist(attempt: Callable[[], Awaitable[None]]) -> None:
    """Until the API takes it."""
    while True:
        try:
            return await attempt()
        except ApiError as error:
            print(error.sentence, flush=True)
            await asyncio.sleep(TELL_SECONDS)


if __name__ == "__main__":
    node, address, own_kubeconfig, program, kwok_kubeconfig = sys.argv[1:]
    kwok = [program, "--config=-", f"--kubeconfig={kwok_kubeconfig}", f"--manage-single-node={node}"]
    kwok += [f"--node-ip={address}", f"--node-lease-duration-seconds={LEASE_SECONDS}"]
    asyncio.run(_run(node, address, own_kubeconfig, kwok))
