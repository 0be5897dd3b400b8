"""A host that is on: a kubelet in a boot of its own, which lets kwok run pods, until the power goes.

python -m tests.fencing.host NODE KUBECONFIG KWOK DIRECTORY. It ends by itself when DIRECTORY is gone.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import uuid
from typing import IO

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.resources import NODES
from tests.bmc.host import is_there
from tests.scenarios.endtoend.kubelet import DEADLINE_SECONDS, insist, register, repeat, run

ADDRESS = "127.0.0.1"
LOOK_SECONDS = 0.1


async def main(node: str, kubeconfig: str, kwok: str, directory: str, log: IO[bytes]) -> None:
    client = ApiClient(load(kubeconfig), deadline_seconds=DEADLINE_SECONDS)
    await insist(lambda: register(client, node, ADDRESS))
    boot = {"status": {"nodeInfo": {"bootID": str(uuid.uuid4())}}}
    await insist(lambda: client.patch(NODES, node, boot, subresource="status"))
    command = [kwok, "--config=-", f"--kubeconfig={kubeconfig}", f"--manage-single-node={node}"]
    await asyncio.gather(
        run(node, ADDRESS, kubeconfig, [*command, "--node-lease-duration-seconds=0"], log),
        repeat(lambda: _end_without(directory), LOOK_SECONDS),
    )


async def _end_without(directory: str) -> None:
    """Ends the whole group, kwok too."""
    if not is_there(directory):
        os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    name, credentials, program, place = sys.argv[1:]
    with open(f"{place}/kwok.log", "ab") as kwok_log:
        asyncio.run(main(name, credentials, program, place, kwok_log))
