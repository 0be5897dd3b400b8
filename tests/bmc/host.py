"""A host that is on: a kubelet that registers its Node, once, and a workload that runs until the power goes.

python -m tests.bmc.host NODE MACHINE KUBECONFIG DIRECTORY. It ends by itself when DIRECTORY is gone.
"""

from __future__ import annotations

import asyncio
import os
import sys

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import NODES

OWN_LABELS = {"kubernetes.io/hostname": "metal"}


def is_there(directory: str) -> bool:
    return os.path.isdir(directory)


async def main(node: str, machine: str, kubeconfig: str, directory: str) -> None:
    client = ApiClient(load(kubeconfig), deadline_seconds=5)
    annotations = {"machine.openshift.io/machine": machine}
    body = {"metadata": {"name": node, "labels": OWN_LABELS, "annotations": annotations}}
    registered = False
    while is_there(directory):
        try:
            if not registered:
                await client.create(NODES, body)
            registered = True
        except ApiError as error:
            registered = error.outcome.name == "CONFLICT"  # it is there already
        await asyncio.sleep(0.1)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
