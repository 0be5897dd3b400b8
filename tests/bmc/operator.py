"""What is known of the baremetal-operator, as a program: it reads power, tells it, and switches it as it is asked to.

python -m tests.bmc.operator KUBECONFIG ACCESS. ACCESS is a file with port and password of every host's BMC, by name.

As the real one it tells what it read on the version of the host that it began with, and begins anew where that is
no longer the one; a host stays off while any annotation reboot.metal3.io/... is on it, and is on else, if it should be.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import BARE_METAL_HOSTS

LOOK_SECONDS = 0.3
IPMI_SECONDS = 5
HANDS_OFF = ("baremetalhost.metal3.io/paused", "baremetalhost.metal3.io/detached")
ALWAYS = {"errorCount": 0, "provisioningFailCount": 0, "provisioning": {"ID": "", "state": "provisioned"}}

Json = dict[str, Any]


class BmcError(Exception):
    """What the BMC, or the way to it, says."""


def ipmi(access: Json, *command: str) -> str:
    where = [
        "-H",
        "127.0.0.1",
        "-p",
        str(access["port"]),
        "-U",
        "admin",
        "-P",
        access["password"],
        "-N",
        "1",
        "-R",
        "1",
    ]
    program = ["ipmitool", "-I", "lanplus", "-C", "3", *where, "chassis", "power", *command]
    try:
        done = subprocess.run(program, capture_output=True, text=True, timeout=IPMI_SECONDS)
    except subprocess.TimeoutExpired:
        raise BmcError("no answer in time") from None
    if done.returncode:
        raise BmcError(done.stderr.strip() or f"ipmitool ended with {done.returncode}")
    return done.stdout


async def look_after(client: ApiClient, host: Json, access: Json) -> None:
    metadata, status = host["metadata"], host.get("status") or {}
    annotations = metadata.get("annotations") or {}
    if any(key in annotations for key in HANDS_OFF):
        return
    told: Json = {**ALWAYS, "operationalStatus": "OK", "errorType": None, "errorMessage": ""}
    try:
        told["poweredOn"] = on = "is on" in ipmi(access, "status")
    except BmcError as error:
        told.update(operationalStatus="error", errorType="power management error", errorMessage=str(error))
        told["poweredOn"], on = status.get("poweredOn", False), None
    if any(told[key] != status.get(key) for key in told):
        change = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": told}
        where = metadata["namespace"]
        await client.patch(BARE_METAL_HOSTS, metadata["name"], change, namespace=where, subresource="status")
    wanted = host["spec"]["online"] and not any(key.startswith("reboot.metal3.io/") for key in annotations)
    if on is not None and on != wanted:
        ipmi(access, "on" if wanted else "off")


def _known(access: str) -> Json:
    """Anew each time: a person may have corrected it."""
    known: Json = json.loads(Path(access).read_text())
    return known


async def main(kubeconfig: str, access: str) -> None:
    client = ApiClient(load(kubeconfig), deadline_seconds=5)
    while True:
        known = _known(access)
        try:
            hosts = await client.list(BARE_METAL_HOSTS)
            for host in hosts.items:
                await look_after(client, host, known[host["metadata"]["name"]])
        except (ApiError, BmcError) as error:  # a conflict, most of all: it looks again
            print(error, flush=True)
        await asyncio.sleep(LOOK_SECONDS)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
