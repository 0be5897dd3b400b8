"""A health check that makes remediation objects: one for a Machine, deleted once its Node is healthy again."""

from __future__ import annotations

import random
from functools import partial
from typing import Callable

from pp_hostd.kube.resources import NODES, REMEDIATIONS
from pp_hostd.model.observed import NodeSeen, parse_node_seen
from pp_hostd.sim.api import Api, Json, as_it_is
from pp_hostd.sim.cluster import MACHINES_IN
from pp_hostd.sim.filled import machine_of
from pp_hostd.sim.time import Time

LOOK_SECONDS = 1.0
NOT_READY_SECONDS = 40.0
"""After so long without a word of its kubelet a Node counts as not Ready."""
MOST_PATIENCE_SECONDS = 40.0
SPEC = {"retryLimit": 1, "timeoutSeconds": 30}


class HealthCheck:
    """In a cluster whose requests are objects. It deletes none that is younger than its patience."""

    def __init__(self, api: Api, time: Time, chance: random.Random, note: Callable[[str, str], None]) -> None:
        self._api, self._time, self._chance, self._note = api, time, chance, note
        self._kind = api.cluster.served(REMEDIATIONS[api.cluster.requested_by])

    def request(self, name: str) -> None:
        if not self._api.exists(*self._api.cluster.place(name)) or self.object(name) is not None:
            return
        machine = self._api.found(as_it_is, *self._api.cluster.place(name))
        owner = {key: machine[key] for key in ("apiVersion", "kind")}
        owner.update({key: machine["metadata"][key] for key in ("name", "uid")})
        body = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": SPEC}
        self._api.create(self._kind, MACHINES_IN, body)
        self._note("MHC", f"makes an object for {name}")
        until_at = self._time.now + MOST_PATIENCE_SECONDS * self._chance.random()
        self._time.after(LOOK_SECONDS, partial(self._look, name, owner["uid"], until_at))

    def withdraw(self, name: str) -> None:
        found = self.object(name)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            self._api.delete(self._kind, MACHINES_IN, name)
            self._note("MHC", f"deletes the object for {name}")

    def object(self, name: str) -> Json | None:
        found: Json | None = self._api.if_there(as_it_is, self._kind, MACHINES_IN, name)
        return found

    def _look(self, name: str, uid: str, until_at: float) -> None:
        if self.object(name) is None:
            return
        place = self._api.cluster.place(name)
        owned = self._api.exists(*place) and machine_of(self._api, name).uid == uid
        if not owned or (self._time.now >= until_at and self._is_healthy(name)):
            self.withdraw(name)
        self._time.after(LOOK_SECONDS, partial(self._look, name, uid, until_at))

    def _is_healthy(self, name: str) -> bool:
        node = self._api.if_there(as_it_is, NODES, "", name)
        seen = None if node is None else parse_node_seen(node, self._api.cluster.machines)
        renewed_at = float(self._api.leases.get(name, "-inf"))
        return isinstance(seen, NodeSeen) and seen.ready and self._time.now - renewed_at <= NOT_READY_SECONDS
