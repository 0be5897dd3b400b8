"""What an agent reads and writes at the API: machines, its Node and what it states there, whether it has a backup."""

from __future__ import annotations

from functools import partial
from typing import Callable

from pp_hostd.kube.resources import CONFIG_MAPS, NODES
from pp_hostd.model.keys import AGENT, NAMESPACE, backup_name
from pp_hostd.model.machine import parse_machine
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import AgentRecord
from pp_hostd.model.record import Unreadable
from pp_hostd.sim.api import Client, Reply

Done = Callable[[Reply], None]


class Objects:
    """For the agent of this host."""

    def __init__(self, client: Client, host: str) -> None:
        self._client, self._host = client, host

    def read(self, subject: str, done: Done, deadline_seconds: float) -> None:
        """A machine."""
        namespace, _, name = subject.rpartition("/")
        serve = partial(self._client.api.found, parse_machine, self._client.api.cluster.kind, namespace, name)
        self._client.call(serve, done, deadline_seconds)

    def look(self, done: Done, deadline_seconds: float) -> None:
        """Its Node, or, where there is none, whether there is a backup of it."""
        self._client.call(self._serve_node, done, deadline_seconds)

    def write(self, record: AgentRecord, node: Node, done: Done, deadline_seconds: float) -> None:
        """State this on the Node as it was looked at."""
        condition = {"uid": node.uid, "resourceVersion": node.resource_version}
        patch = {"metadata": {**condition, "annotations": {AGENT: record.render()}}}

        def serve() -> Node | Unreadable:
            return parse_node(self._client.api.patch(NODES, "", node.name, patch))

        self._client.call(serve, done, deadline_seconds)

    def _serve_node(self) -> Node | Unreadable | bool:
        api = self._client.api
        if api.exists(NODES, "", self._host):
            found: Node | Unreadable = api.found(parse_node, NODES, "", self._host)
            return found
        return api.exists(CONFIG_MAPS, NAMESPACE, backup_name(self._host))
