"""A session with the embedded API: proof, condemnation, a lost race, an API that hangs. Exits 0 only if all held."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Awaitable
from datetime import datetime, timezone
from typing import Any

from pp_hostd import timing
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import load
from pp_hostd.kube.outcome import ApiError, Outcome
from pp_hostd.kube.resources import CAPI_MACHINES, NAMESPACES, NODES
from pp_hostd.kube.watch import Change, watch
from pp_hostd.model.condemnation import Condemned, NotCondemned, NotRequested, parse_condemnation
from pp_hostd.model.keys import CONDEMNED, EXTERNAL_REMEDIATION
from pp_hostd.model.settings import Settings
from tests.demo.narrator import Narrator
from tests.harness.embedded import EmbeddedCluster

NAMESPACE, NAME = "demo", "worker-1"
DEADLINE_SECONDS = 1.0
NEXT = """
What to try next:
  pp-hostd check-config --config etc/pp-hostd.toml      the same timeline, for your settings (in .venv/bin)
  make test                                             the same API behaviour on a real kube-apiserver
  docs/design.md                                        the rules that this will keep"""


async def story(cluster: EmbeddedCluster, narrator: Narrator) -> None:
    client = ApiClient(load(str(cluster.kubeconfig())), deadline_seconds=DEADLINE_SECONDS)
    stranger = ApiClient(load(str(cluster.kubeconfig("nobody"))), deadline_seconds=DEADLINE_SECONDS)
    follower = asyncio.create_task(follow(client, narrator))
    try:
        await proof(client, narrator)
        await condemnation(client, narrator)
        await trouble(cluster, client, stranger, narrator)
    finally:
        follower.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await follower
        client.close()
        stranger.close()


async def follow(client: ApiClient, narrator: Narrator) -> None:
    """What every agent does: watch the condemned machines, which are few."""
    async for event in watch(client, CAPI_MACHINES, label_selector=CONDEMNED, inactivity_seconds=60):
        if isinstance(event, Change):
            narrator.note("watch", f"{event.kind.value.lower():<8} {event.object['metadata']['name']}")


async def proof(client: ApiClient, narrator: Narrator) -> None:
    narrator.scene("A host proves that it is not condemned")
    await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await client.create(NODES, {"metadata": {"name": NAME}})
    await client.create(
        CAPI_MACHINES, {"metadata": {"name": NAME}, "spec": {"clusterName": "demo"}}, namespace=NAMESPACE
    )
    await narrator.say("client", f"created Node {NAME} and Machine {NAMESPACE}/{NAME}")
    begun = time.monotonic()
    machine = await client.get(CAPI_MACHINES, NAME, namespace=NAMESPACE)
    took = 1000 * (time.monotonic() - begun)
    expect(isinstance(parse_condemnation(machine["metadata"]), NotCondemned), "a fresh machine is not condemned")
    await narrator.say(
        "client", f"read the Machine in {took:.1f} ms: not condemned. A proof, dated by when the read began"
    )


async def condemnation(client: ApiClient, narrator: Narrator) -> None:
    narrator.scene("It is condemned, by a conditional write")
    before = await client.patch(
        CAPI_MACHINES, NAME, {"metadata": {"annotations": {EXTERNAL_REMEDIATION: ""}}}, namespace=NAMESPACE
    )
    await narrator.say("client", "a health check requests remediation: the annotation is there, and empty")
    condemned = Condemned(id=1, since_wallclock=datetime.now(timezone.utc))
    await client.patch(CAPI_MACHINES, NAME, conditional(condemned.render(), before), namespace=NAMESPACE)
    await narrator.say("client", "condemned in one write: the time, the id 1, the label")
    late = client.patch(CAPI_MACHINES, NAME, conditional(NotRequested(0).render(), before), namespace=NAMESPACE)
    await narrator.say("client", f"a second writer was too late: {await refusal(late, Outcome.CONFLICT)}")
    machine = await client.get(CAPI_MACHINES, NAME, namespace=NAMESPACE)
    found = parse_condemnation(machine["metadata"])
    expect(isinstance(found, Condemned) and found.id == 1, f"the machine is condemned under id 1: {found}")
    await narrator.say("client", "read the Machine: condemned under id 1. No proof any more")
    await client.patch(CAPI_MACHINES, NAME, {"metadata": NotRequested(1).render()}, namespace=NAMESPACE)
    await narrator.say("client", "lifted; the id stays readable, so that nobody takes it for a new one")


async def trouble(cluster: EmbeddedCluster, client: ApiClient, stranger: ApiClient, narrator: Narrator) -> None:
    narrator.scene("Whatever happens, a read ends in time, with a typed outcome")
    refused = await refusal(stranger.get(NODES, NAME), Outcome.FORBIDDEN)
    await narrator.say("trouble", refused)
    os.kill(cluster.pid, signal.SIGSTOP)
    await narrator.say("trouble", f"the API hangs now; a read has {DEADLINE_SECONDS:g} s in all ...")
    await narrator.say("trouble", await refusal(client.get(NODES, NAME), Outcome.TIMED_OUT))
    os.kill(cluster.pid, signal.SIGCONT)
    await client.get(NODES, NAME)
    await narrator.say("client", "the API goes on, and so does the client")
    cluster.close()
    await narrator.say("trouble", await refusal(client.get(NODES, NAME), Outcome.UNREACHABLE))


async def refusal(call: Awaitable[Any], outcome: Outcome) -> str:
    """The sentence of a call that must fail in this way."""
    try:
        await call
    except ApiError as error:
        expect(error.outcome is outcome, f"{error.sentence}: expected the outcome {outcome.value}")
        return error.sentence
    raise AssertionError(f"a call succeeded that should have been {outcome.value}")


def conditional(metadata: Json, read: Json) -> Json:
    """A patch that takes effect only on the version that was read."""
    return {"metadata": {**metadata, "resourceVersion": read["metadata"]["resourceVersion"]}}


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def main() -> int:
    narrator = Narrator()
    narrator.scene("An API server of our own, on a real socket")
    with EmbeddedCluster.start() as cluster:
        narrator.note("api", f"{cluster.server}, with TLS, client certificates and Kubernetes' semantics")
        asyncio.run(story(cluster, narrator))
    narrator.scene("What the default settings promise about a host that is cut off, in seconds after its last proof")
    for seconds, sentence in timing.timeline(Settings()).rows():
        print(f"  {seconds:5.1f}  {sentence}")
    print(NEXT)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
