"""The baremetal-operator as far as we know it, as a program: it reads power, reports it, and switches it on request.

python -m tests.bmc.operator KUBECONFIG ACCESS WEBHOOK MINUTE_SECONDS. ACCESS is a file with port and password of every
host's BMC, by name; WEBHOOK a directory with the port, certificate and key of its admission webhook, without which
nobody can write to a host. Its minutes may be shorter than others'.

As the real one it acts on events: on a host whose spec, annotations or finalizers have changed, and else once a minute,
or after a failure in 2^n minutes. It tells what it read on the version of the host that it began with, and begins
again where that is no longer the one.
"""

from __future__ import annotations

import asyncio
import json
import math
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import BARE_METAL_HOSTS
from pp_hostd.kube.watch import Change, ChangeKind, Snapshot, watch
from tests.bmc.webhook import serve_webhook

IPMI_SECONDS = 15
POWER_MINUTES = 1 / 6
"""Before it looks what a change of power has become."""
MOST_FAILURES = 10
PAUSED, DETACHED = "baremetalhost.metal3.io/paused", "baremetalhost.metal3.io/detached"
REBOOT, FINALIZER = "reboot.metal3.io", "baremetalhost.metal3.io"
ALWAYS = {"provisioningFailCount": 0, "provisioning": {"ID": "", "state": "provisioned"}}
WELL = {"operationalStatus": "OK", "errorType": None, "errorMessage": ""}

Json = dict[str, Any]


class BmcError(Exception):
    """An error of the BMC, or of the way to it; the text is the error message."""


# The operator's decisions.


def reboot_mode(annotations: Mapping[str, str]) -> str:
    """How the host is to go off: `hard` if anybody wants it so, else `soft`; empty if nobody wants it off."""
    asked = [value for key, value in annotations.items() if key == REBOOT or key.startswith(f"{REBOOT}/")]
    if not asked:
        return ""
    return "hard" if any(_mode(value) == "hard" for value in asked) else "soft"


def _mode(value: str) -> object:
    try:
        found = json.loads(value)
    except ValueError:
        return "soft"
    return found.get("mode") if isinstance(found, dict) else "soft"


def is_news(before: Json | None, host: Json) -> bool:
    """Whether an event is acted upon: not one that only tells another status."""
    return before is None or _acted_upon(before) != _acted_upon(host)


def _acted_upon(host: Json) -> object:
    metadata = host["metadata"]
    marks = metadata.get("annotations") or {}, metadata.get("finalizers") or [], metadata.get("deletionTimestamp")
    return metadata["uid"], metadata.get("generation"), marks


def due_minutes(errors: int) -> float:
    """Before it looks again by itself."""
    return 2.0 ** min(errors, MOST_FAILURES) if errors else 1.0


def change_of_marks(host: Json) -> Json | None:
    """Returns the change beside the status: of its finalizer, or of the bare key once the host is off; None if none."""
    metadata, status = host["metadata"], host.get("status") or {}
    finalizers: list[str] = metadata.get("finalizers") or []
    if metadata.get("deletionTimestamp"):
        return {"finalizers": [each for each in finalizers if each != FINALIZER]} if FINALIZER in finalizers else None
    if FINALIZER not in finalizers:
        return {"finalizers": [*finalizers, FINALIZER]}
    if REBOOT in (metadata.get("annotations") or {}) and status.get("poweredOn") is False:
        return {"annotations": {REBOOT: None}}
    return None


# The operator's actions.


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
        "4",
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


class Operator:
    """`minute_seconds` is how long its minutes are."""

    def __init__(self, client: ApiClient, access: Path, minute_seconds: float) -> None:
        self._client, self._access, self._minute_seconds = client, access, minute_seconds
        self._seen: dict[str, Json] = {}
        self._due: dict[str, float] = {}
        self._news = asyncio.Event()

    async def follow(self) -> None:
        """Hosts that have changed are due."""
        async for event in watch(self._client, BARE_METAL_HOSTS):
            hosts = event.items if isinstance(event, Snapshot) else []
            if isinstance(event, Change) and event.kind is ChangeKind.DELETED:
                self._seen.pop(event.object["metadata"]["name"], None)
                self._due.pop(event.object["metadata"]["name"], None)
            elif isinstance(event, Change):
                hosts = [event.object]
            for host in hosts:
                name = host["metadata"]["name"]
                if is_news(self._seen.get(name), host):
                    self._due[name] = 0.0
                    self._news.set()
                self._seen[name] = host

    async def work(self) -> None:
        """On each host when it is due."""
        clock = asyncio.get_running_loop().time
        while True:
            self._news.clear()
            for name in [name for name, at in self._due.items() if at <= clock()]:
                self._due[name] = math.inf
                minutes = await self._look_after(name)
                if self._due.get(name) == math.inf:  # else it is due again, or gone
                    self._due[name] = clock() + minutes * self._minute_seconds
            pause = min(self._due.values(), default=clock() + 60.0) - clock()
            try:
                await asyncio.wait_for(self._news.wait(), max(pause, 0.01))
            except asyncio.TimeoutError:
                continue

    async def _look_after(self, name: str) -> float:
        """In how many minutes it is due again."""
        try:
            host = await self._client.get(BARE_METAL_HOSTS, name, namespace=self._seen[name]["metadata"]["namespace"])
            return await self._reconcile(host)
        except ApiError as error:  # a conflict, most of all: it begins again
            print(error.sentence, flush=True)
            return 0.0

    async def _reconcile(self, host: Json) -> float:
        annotations, status = host["metadata"].get("annotations") or {}, host.get("status") or {}
        if PAUSED in annotations:
            return 1.0
        marks = change_of_marks(host)
        if marks is not None:
            await self._change(host, {"metadata": marks})
            return 0.0
        if host["metadata"].get("deletionTimestamp"):
            return 1.0
        if DETACHED in annotations:
            await self._tell(host, {"operationalStatus": "detached"})
            return 1.0
        return await self._manage_power(host, annotations, status)

    async def _manage_power(self, host: Json, annotations: Json, status: Json) -> float:
        """Writes the power that it reads into the status before it switches; returns the minutes until it is due."""
        access = json.loads(self._access.read_text())[host["metadata"]["name"]]  # a person may have corrected it
        errors = status.get("errorCount") or 0
        try:
            on = "is on" in await asyncio.to_thread(ipmi, access, "status")
            if on != status.get("poweredOn") or "provisioning" not in status:
                await self._tell(host, {**ALWAYS, **WELL, "errorCount": errors, "poweredOn": on})
                return 0.0
            mode = reboot_mode(annotations)
            if on != (host["spec"]["online"] and not mode):
                wanted = "on" if not on else "off" if mode != "soft" or errors else "soft"
                await asyncio.to_thread(ipmi, access, wanted)
                return POWER_MINUTES
        except BmcError as error:
            trouble = {"operationalStatus": "error", "errorType": "power management error", "errorMessage": str(error)}
            known = {"poweredOn": status.get("poweredOn", False)}
            await self._tell(host, {**ALWAYS, **known, **trouble, "errorCount": errors + 1})
            return due_minutes(errors + 1)
        await self._tell(host, {**WELL, "errorCount": 0})
        return due_minutes(0)

    async def _tell(self, host: Json, told: Json) -> None:
        status = host.get("status") or {}
        if any(status.get(key) != value for key, value in told.items()):
            await self._change(host, {"status": told}, "status")

    async def _change(self, host: Json, change: Json, part: str | None = None) -> None:
        """On the version that it was read in."""
        metadata = host["metadata"]
        version = {"resourceVersion": metadata["resourceVersion"]}
        patch = {**change, "metadata": {**change.get("metadata", {}), **version}}
        name, where = metadata["name"], metadata["namespace"]
        await self._client.patch(BARE_METAL_HOSTS, name, patch, namespace=where, subresource=part)


async def main(kubeconfig: str, access: str, webhook: str, minute_seconds: str) -> None:
    operator = Operator(ApiClient(load(kubeconfig), deadline_seconds=5), Path(access), float(minute_seconds))
    await asyncio.gather(serve_webhook(Path(webhook)), operator.follow(), operator.work())


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
