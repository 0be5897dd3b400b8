"""Steps of a flow: the writes of a NodeFence, looks, a fence agent's action, and the marks on the Node."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from functools import partial

from pp_hostd.fencing.call import MASK, AgentCall, AgentReply, Power, is_done, power_of
from pp_hostd.frozen import frozen, replace
from pp_hostd.kube.resources import KUBELET_LEASES, LEASES, NODE_FENCES, NODES, SECRETS
from pp_hostd.leader.remedies.node_fence.configuration import Fences
from pp_hostd.leader.remedies.node_fence.fence import FENCE, NodeFence, Progress, rendered
from pp_hostd.leader.remedies.node_fence.jobs import name_job
from pp_hostd.leader.remedies.node_fence.memory import (
    LEAST_SILENT_SECONDS,
    Looked,
    MethodEnded,
    Probed,
    Proof,
    RunKey,
    Surveyed,
)
from pp_hostd.leader.remedies.node_fence.methods import OFF, ON, STATUS, AgentMethod
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.nodes import change_node
from pp_hostd.leader.steps.port import Noticed, OnlyReads, Port, Unwritten, conditional, if_there
from pp_hostd.model.keys import (
    AGENT,
    CORDONED,
    FENCED_BOOT,
    FREEING,
    NAMESPACE,
)
from pp_hostd.model.moment import render_moment
from pp_hostd.model.observed import parse_node_seen
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member
from pp_hostd.model.step import Written

LEAST_VEILED = 3
"""Characters of a value: a shorter one is in any text."""
_SHOWN = 300
"""So many characters of an agent's output a sentence shows."""


@frozen
class WriteFence:
    """One transition: the progress of that version of the NodeFence, and the Events that report it."""

    fence: NodeFence
    progress: Progress
    node_uid: str

    async def run(self, port: Port) -> str:
        fence, progress = self.fence, self.progress
        found = await port.api.get(NODE_FENCES, fence.name)
        moment, before = render_moment(port.wallclock()), fence.progress
        stays = (progress.step, progress.status, progress.restarts) == (before.step, before.status, before.restarts)
        started = found.get("stepStartedAt") if stays else None
        patch = conditional(rendered(progress, found, moment, started or moment), fence.uid, fence.resource_version)
        told = await port.write(
            lambda: port.api.patch(NODE_FENCES, fence.name, patch), FENCE, fence.name, fence.resource_version
        )
        if not stays or progress.gave_up != before.gave_up:
            _notice(port, fence, progress, self.node_uid)
        return told


def _notice(port: Port, fence: NodeFence, progress: Progress, node_uid: str) -> None:
    warning = progress.gave_up or progress.status.value == "Error"
    reason = (
        "FenceGaveUp" if progress.gave_up else f"Fence{progress.step.value.replace('-', '')}{progress.status.value}"
    )
    said = f"{fence.key}: {progress.state.value} ({progress.step.value} {progress.status.value}), {progress.reason}"
    port.tell(Noticed(port.key, NODE_FENCES, None, fence.name, fence.uid, reason, said, warning))
    port.tell(Noticed(port.key, NODES, None, fence.node, node_uid, reason, said, warning))


@frozen
class BeginFence:
    """The transition by which a flow begins."""

    write: WriteFence

    async def run(self, port: Port) -> str:
        return await self.write.run(port)


@frozen
class DeleteFence:
    """The flow is over, or never began. The Node says no more that a Job is about it."""

    fence: NodeFence

    async def run(self, port: Port) -> str:
        if self.fence.progress.jobs:
            await name_job(port, self.fence.node, None)
        fence, version = self.fence, self.fence.resource_version
        return await port.write(
            lambda: port.api.delete(NODE_FENCES, fence.name, uid=fence.uid, resource_version=version),
            FENCE,
            fence.name,
            version,
        )


@frozen
class LookAtNode(OnlyReads):
    """Linearizable reads of the Node and of its kubelet's Lease. By that Lease, and by its agent's record on the Node,
    the host shows that it lives: an agent that has booted again writes before the kubelet does."""

    node: str

    async def run(self, port: Port) -> str:
        began_at = port.clock()
        found = await if_there(port.api.get(NODES, self.node))
        seen = None if found is None else parse_node_seen(found, port.machines.setting)
        if isinstance(seen, Unreadable):
            raise Unwritten(Written.NOT_DONE, f"reading Node {self.node}: {seen}")
        lease = await if_there(port.api.get(LEASES, self.node, namespace=KUBELET_LEASES))
        record = ((found or {}).get("metadata", {}).get("annotations") or {}).get(AGENT, "")
        renewed = str(((lease or {}).get("spec") or {}).get("renewTime") or "")
        port.tell(Looked(port.key, began_at, seen, f"{renewed} {record}", _silent_seconds(lease)))
        return ""


def _silent_seconds(lease: Json | None) -> float:
    """A kubelet renews its Lease four times in the duration of it."""
    duration = ((lease or {}).get("spec") or {}).get("leaseDurationSeconds")
    return max(LEAST_SILENT_SECONDS, duration / 2 if isinstance(duration, int) else 0.0)


@frozen
class LookAround(OnlyReads):
    """Ask agents whether they reach the host; where no agent runs on it, only whether they answer."""

    node: str
    host: Member | None
    others: tuple[Member, ...]

    async def run(self, port: Port) -> str:
        _, theirs = await port.try_host(self.host or self.others[0], self.others)
        answered = sum(each is not None for each in theirs)
        reached = 0 if self.host is None else sum(each is True for each in theirs)
        port.tell(Surveyed(port.key, port.clock(), len(self.others), answered, reached))
        return ""


@frozen
class ProbeStorage(OnlyReads):
    """Try whether the storage takes a connection."""

    address: str
    tcp_port: int

    async def run(self, port: Port) -> str:
        port.tell(Probed(port.key, port.clock(), await port.connects(self.address, self.tcp_port)))
        return ""


@frozen
class RunAgent:
    """One action of a fence agent. Whatever happened before, the device is asked first, and once more at the end: only
    what it says then counts."""

    run_key: RunKey
    method: AgentMethod

    async def run(self, port: Port) -> str:
        method = self.method
        secrets = await _secrets(port, method)
        parameters = {**dict(method.parameters), **secrets}

        async def call(action: str) -> AgentReply:
            if port.acting_until() <= port.clock():  # rule 14, before each call: the one before it may have taken long
                raise Unwritten(Written.NOT_DONE, "the Lease is not valid")
            given = tuple({**parameters, "action": action}.items())
            return _veiled(await port.run_agent(AgentCall(method.agent, given, method.seconds)), secrets)

        wanted = {ON: Power.ON, OFF: Power.OFF}.get(method.action)
        began_at = port.clock()
        reply = await call(STATUS)
        power = power_of(reply)
        # A device that is off is switched off all the same: by an agent that can't even start it says nothing.
        if wanted is not None and (power is not wanted or wanted is Power.OFF):
            reply = await call(method.action)
            if not is_done(reply):
                return self._ends(port, f"{method.agent} could not switch it {method.action}: {told_by(reply)}")
            began_at = port.clock()
            reply = await call(STATUS)
            power = power_of(reply)
        if power is Power.UNKNOWN:
            return self._ends(port, f"{method.agent} can't tell whether it is on: {told_by(reply)}")
        if power is not (wanted or power):
            return self._ends(port, f"{method.agent} has switched it {method.action}, and its status is {power.value}")
        proof = None
        if power is Power.OFF and method.action == OFF and method.fences is not Fences.NONE:
            sentence = f"{method.agent} says that its {method.fences.value} is off (method {method.name})"
            proof = Proof(method.fences, began_at, sentence, method.storage)
        return self._ends(port, "", proof)

    def _ends(self, port: Port, failure: str, proof: Proof | None = None) -> str:
        port.tell(MethodEnded(port.key, self.run_key, not failure, port.clock(), self.method, failure, proof))
        return ""


def _veiled(reply: AgentReply, secrets: Mapping[str, str]) -> AgentReply:
    """Without any value of a Secret, whatever the parameter's name."""
    output = reply.output
    for value in sorted(secrets.values(), key=len, reverse=True):
        output = output.replace(value, MASK) if len(value) >= LEAST_VEILED else output
    return replace(reply, output=output)


def told_by(reply: AgentReply) -> str:
    """A sentence about a reply that says nothing of the host."""
    said = " ".join(reply.output.split())[:_SHOWN]
    return reply.trouble or f"it ended with {reply.code}{f' and said: {said}' if said else ''}"


async def _secrets(port: Port, method: AgentMethod) -> dict[str, str]:
    found: dict[str, str] = {}
    for each in method.secrets:
        what = f"Secret {NAMESPACE}/{each.name}"
        secret = await if_there(port.api.get(SECRETS, each.name, namespace=NAMESPACE))
        if secret is None:
            raise Unwritten(Written.NOT_DONE, f"there is no {what}, which method {method.name} needs")
        value = (secret.get("data") or {}).get(each.key)
        if not isinstance(value, str):
            raise Unwritten(Written.NOT_DONE, f"{what} has no key {each.key}, which method {method.name} needs")
        found[each.parameter] = decoded(value, what)
    return found


def decoded(value: str, what: str) -> str:
    """A Secret's value. The sentence of a refusal shows nothing of it."""
    try:
        return binascii.a2b_base64(value.encode()).decode().rstrip("\n")
    except ValueError:
        raise Unwritten(Written.NOT_DONE, f"{what} holds something that is no text") from None


# Marks on the Node.


@frozen
class KeepUnschedulable:
    """Cordon the Node, and note it if it was schedulable before."""

    node: str
    uid: str
    id: int

    async def run(self, port: Port) -> str:
        return await change_node(port, self.node, self.uid, None, partial(_kept_unschedulable, number=self.id))


def _kept_unschedulable(node: Json, number: int) -> Json:
    if (node.get("spec") or {}).get("unschedulable") is True:
        return {}
    return {"metadata": {"annotations": {CORDONED: str(number)}}, "spec": {"unschedulable": True}}


@frozen
class NoteBoot:
    """Note on the Node, before its workloads are freed, in which boots they may still run: nobody gives storage back to
    those. There are two if the agent of a host that has booted again has written, and its kubelet has not."""

    node: str
    uid: str
    resource_version: str
    boot: str | None

    async def run(self, port: Port) -> str:
        patch: Json = {"metadata": {"annotations": {FENCED_BOOT: self.boot}}}
        return await change_node(port, self.node, self.uid, self.resource_version, lambda _: patch)


@frozen
class EndFreeing:
    """Take the marker of rule 12 off; taint and cordon stay until the node is well."""

    node: str
    uid: str
    resource_version: str

    async def run(self, port: Port) -> str:
        patch: Json = {"metadata": {"annotations": {FREEING: None}}}
        return await change_node(port, self.node, self.uid, self.resource_version, lambda _: patch)
