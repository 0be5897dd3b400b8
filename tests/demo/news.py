"""The news of agents, leaders and the cluster about themselves, told in the order in which it happened."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Callable

from pp_hostd.kube.resources import NODE_HEALTH_CHECKS, NODES, PODS, VOLUME_ATTACHMENTS, Resource
from pp_hostd.model.condemnation import Condemned, Requested, parse_condemnation
from pp_hostd.model.keys import UNREACHABLE
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import Armed, Committed, GateClosed
from pp_hostd.service.journal import Message
from tests.demo.api import Change, Json
from tests.demo.narrator import Narrator, Role
from tests.harness.bed.host import Host
from tests.harness.bed.record import Event

Said = tuple[float, Role, str, str]
"""When, as what, who, what."""
LANDMARKS = {Message.STATE_CHANGED.value, Message.GATE_OPENED.value}
"""The messages that are shown of agents other than the victim's; five full journals would be too much to read."""


class News:
    """Each host's journal, and the victim's objects in the cluster."""

    def __init__(self, narrator: Narrator, victim: str) -> None:
        self._narrator, self._victim = narrator, victim
        self._read: dict[str, int] = {}
        self._states: dict[str, str] = {}

    def tell(self, hosts: Iterable[Host], changes: Iterable[Change]) -> None:
        said = [*(each for host in hosts for each in self._of_host(host)), *self._of_cluster(changes)]
        for at, role, who, line in sorted(said, key=lambda each: each[0]):
            self._narrator.say(role, who, line, at)

    def _of_host(self, host: Host) -> Iterator[Said]:
        events = host.record.events("journal", "up", "down", "kubelet-started")
        for event in events[self._read.get(host.name, 0) :]:
            fields = event.get("fields", {})
            message = fields.get("MESSAGE_ID")
            if fields.get("SYSLOG_IDENTIFIER") == "pp-leader":
                yield event["at"], Role.LEADER, f"leader on {host.name}", event["line"]
            elif host.name != self._victim and message in LANDMARKS:
                yield event["at"], Role.AGENT, host.name, event["line"]
            # Its troubles are what a namespace denies to anyone: locked memory, a higher priority.
            elif host.name == self._victim and message != Message.TROUBLE.value:
                yield event["at"], Role.VICTIM, host.name, _words(event)
        self._read[host.name] = len(events)

    def _of_cluster(self, changes: Iterable[Change]) -> Iterator[Said]:
        """Only what differs from what was told last."""
        for change in changes:
            name = change.object["metadata"]["name"]
            what = change.kind.describe(name=name)
            state = "is deleted" if change.how == "DELETED" else STATES[change.kind](change.object)
            others = change.kind is NODES and name != self._victim
            if not others and self._states.get(what) != state:
                self._states[what] = state
                yield change.at, Role.CLUSTER, "cluster", f"{what} {state}"


def _words(event: Event) -> str:
    if event["kind"] == "down":
        return f"IS RESET ({event['how']}): everything that ran on it is gone"
    return {"up": "boots", "kubelet-started": "its kubelet starts"}.get(event["kind"]) or str(event["line"])


def _node_state(found: Json) -> str:
    node = parse_node(found)
    assert isinstance(node, Node), node
    mark = "cordoned and tainted" if node.unschedulable and node.tainted else "schedulable"
    words = {Armed: "armed", GateClosed: "gate closed", Committed: "committed to its reset"}
    told = f"is {mark}{_unreachable(found)}, {_condemned(found)}"
    return f"{told}; its agent's record there: {words.get(type(node.agent), 'none')}"


def _unreachable(found: Json) -> str:
    conditions = found.get("status", {}).get("conditions") or ()
    return (
        ", UNREACHABLE" if any((each["type"], each["status"]) == (UNREACHABLE, "True") for each in conditions) else ""
    )


def _condemned(found: Json) -> str:
    condemnation = parse_condemnation(found["metadata"])
    if isinstance(condemnation, Condemned):
        return f"CONDEMNED, under id {condemnation.id}"
    return "with a request for remediation" if isinstance(condemnation, Requested) else "not condemned"


def _check_state(found: Json) -> str:
    status = found.get("status", {})
    told = "; ".join(f"{each['name']}: {each['message']}" for each in status.get("unhealthyNodes") or ())
    counts = f"counts {status.get('currentHealthy', 0)} of {status.get('expectedNodes', 0)} Nodes healthy"
    return f"{counts}; {told}" if told else counts


def _pod_state(found: Json) -> str:
    return f"is bound to {found['spec']['nodeName']}: {found.get('status', {}).get('phase', 'Pending')}"


def _attachment_state(found: Json) -> str:
    return f"holds the volume on {found['spec']['nodeName']}"


STATES: dict[Resource, Callable[[Json], str]] = {
    NODES: _node_state,
    NODE_HEALTH_CHECKS: _check_state,
    PODS: _pod_state,
    VOLUME_ATTACHMENTS: _attachment_state,
}
