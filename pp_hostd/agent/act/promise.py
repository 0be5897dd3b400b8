"""The agent's hand on its Node: read it, and write its record there, always conditional on what was read (rule 5)."""

from __future__ import annotations

from pp_hostd.agent.sense.api import Clock, backup_exists
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.outcome import ApiError, is_missing, written_by
from pp_hostd.kube.resources import NODES
from pp_hostd.model.boot_commitments import Look, StoreEnded
from pp_hostd.model.keys import AGENT
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import AgentRecord
from pp_hostd.model.record import Unreadable
from pp_hostd.model.written import Written


async def read_node(client: ApiClient, name: str, clock: Clock) -> Look:
    """The Node now, by a linearizable read; for one that is missing, also whether there is a backup (rule 6)."""
    began_at = clock()
    try:
        node = parse_node(await client.get(NODES, name))
    except ApiError as error:
        if not is_missing(error):
            return Look(began_at, clock(), failure=error.sentence)
        return await _missing(client, name, began_at, clock)
    if isinstance(node, Unreadable):
        return Look(began_at, clock(), failure=f"reading Node {name}: {node}")
    return Look(began_at, clock(), node)


async def _missing(client: ApiClient, name: str, began_at: float, clock: Clock) -> Look:
    try:
        backup = await backup_exists(client, name)
    except ApiError as error:
        return Look(began_at, clock(), failure=error.sentence)
    return Look(began_at, clock(), missing=True, backup=backup)


async def store(client: ApiClient, node: Node, record: AgentRecord, clock: Clock) -> StoreEnded:
    """Write the record, if the Node is still the one that was read."""
    try:
        reply = parse_node(await client.patch(NODES, node.name, _patch(node, record)))
    except ApiError as error:
        return StoreEnded(record, node.resource_version, written_by(error), clock(), sentence=error.sentence)
    if isinstance(reply, Unreadable) or reply.agent != record or reply.uid != node.uid:
        sentence = f"patching Node {node.name}: the reply does not show what was written"
        return StoreEnded(record, node.resource_version, Written.UNKNOWN, clock(), sentence=sentence)
    return StoreEnded(record, node.resource_version, Written.DONE, clock(), reply)


def _patch(node: Node, record: AgentRecord) -> Json:
    condition = {"uid": node.uid, "resourceVersion": node.resource_version}
    return {"metadata": {**condition, "annotations": {AGENT: record.render()}}}
