"""A Node as leader and agent see it: its identity, what its agent states there, and the leader's marks."""

from __future__ import annotations

from typing import Any

from pp_hostd.frozen import frozen
from pp_hostd.model.condemnation import Confirmation
from pp_hostd.model.endpoint import is_address
from pp_hostd.model.keys import AGENT, CONDEMNED, FREEING
from pp_hostd.model.promise import AgentRecord, GateClosed, parse_agent_record
from pp_hostd.model.record import COUNT, NAME, OPAQUE, Fields, Unreadable, read


@frozen
class Node:
    """The facts of a Node that the rules need; None where the Node has none.

    `freeing` is the marker of rule 12: the gate honours whatever stands there, readable or not. `boot` is the one that
    the kubelet last reported, empty if none.
    """

    name: str
    uid: str
    resource_version: str
    address: str | None
    agent: AgentRecord | Unreadable | None
    freeing: int | Unreadable | None
    tainted: bool
    unschedulable: bool
    boot: str = ""

    @property
    def boots(self) -> tuple[str, ...]:
        """The boots in which workloads may run: the one that its kubelet has reported, and the one that its agent has
        stated since, unless that one has started nothing yet."""
        record = self.agent
        stated = "" if record is None or isinstance(record, (Unreadable, GateClosed)) else record.boot
        return tuple(dict.fromkeys(filter(None, (self.boot, stated))))


def boot_of(node: Node) -> str | None:
    """The boot that a person's word about the host is about: the one that its agent's record names, and the one that
    its kubelet has reported if that is another. None if there is none, or the record can't be read."""
    stated = "" if node.agent is None or isinstance(node.agent, Unreadable) else node.agent.boot
    return "/".join(dict.fromkeys(filter(None, (stated, node.boot)))) or None


def is_of_this_boot(confirmation: Confirmation, node: Node) -> bool:
    """Whether a person's word stands: neither the agent nor the kubelet has reported another boot since."""
    return not isinstance(node.agent, Unreadable) and confirmation.boot == boot_of(node)


def condemned_taint(condemnation_id: int) -> dict[str, Any]:
    """The taint that a rebooted kubelet honours (rule 9)."""
    return {"key": CONDEMNED, "value": str(condemnation_id), "effect": "NoExecute"}


def freeing_marker(condemnation_id: int) -> dict[str, Any]:
    """The merge patch of metadata that sets the marker."""
    return {"annotations": {FREEING: str(condemnation_id)}}


def parse_node(api_object: object) -> Node | Unreadable:
    """The Node in an object of the API."""
    return read("the Node", _node, api_object)


def _node(api_object: object) -> Node:
    fields = Fields(api_object)
    metadata, spec = fields.section("metadata"), fields.section("spec")
    annotations, status = metadata.section("annotations"), fields.section("status")
    return Node(
        name=metadata.text("name", NAME),
        uid=metadata.text("uid", OPAQUE),
        resource_version=metadata.text("resourceVersion", OPAQUE),
        address=_internal_address(status),
        agent=parse_agent_record(annotations.anything(AGENT)) if AGENT in annotations else None,
        freeing=read("the freeing marker", _freeing, annotations) if FREEING in annotations else None,
        tainted=any(_is_condemned_taint(Fields(taint, "a taint")) for taint in spec.elements("taints")),
        unschedulable=spec.anything("unschedulable") is True,
        boot=_reported_boot(status.section("nodeInfo")),
    )


def _reported_boot(info: Fields) -> str:
    """Whatever is no word is no boot id of Linux, and counts as none."""
    boot = info.anything("bootID")
    return boot if isinstance(boot, str) and OPAQUE.pattern.fullmatch(boot) else ""


def _freeing(annotations: Fields) -> int:
    return int(annotations.text(FREEING, COUNT))


def _is_condemned_taint(taint: Fields) -> bool:
    return taint.anything("key") == CONDEMNED and taint.anything("effect") == "NoExecute"


def _internal_address(status: Fields) -> str | None:
    """The first internal address that is a literal: the one that the kubelet calls its own."""
    for entry in status.elements("addresses"):
        address = Fields(entry, "an address")
        if address.anything("type") == "InternalIP" and is_address(address.anything("address")):
            return str(address.anything("address"))
    return None
