"""People and their tools, a health check among them: they request a node, absolve it, enrol it, replace its machine."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial
from typing import Callable

from pp_hostd.kube.resources import CONFIG_MAPS, NODES, REMEDIATIONS
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.control import Pause
from pp_hostd.model.keys import CONTROL, ENROLLED, EXTERNAL_REMEDIATION, NAMESPACE, PAUSED
from pp_hostd.model.observed import NodeSeen, parse_node_seen
from pp_hostd.sim.api import Api, Json, as_it_is
from pp_hostd.sim.cluster import MACHINES_IN
from pp_hostd.sim.filled import EPOCH_TIME, machine_of, make_machine
from pp_hostd.sim.time import Time

LOOK_SECONDS = 1.0
NOT_READY_SECONDS = 40.0
"""After so long without a word of its kubelet a Node counts as not Ready."""
MOST_PATIENCE_SECONDS = 40.0
SPEC = {"retryLimit": 1, "timeoutSeconds": 30}


CHECK = {"apiVersion": "remediation.medik8s.io/v1alpha1", "kind": "NodeHealthCheck", "name": "all", "uid": "all"}
"""The owner of objects that name a Node."""


class HealthCheck:
    """In a cluster whose requests are objects. It deletes none that is younger than its patience, save one whose
    Machine is gone or, as medik8s does where Nodes stand for themselves, whose Node is missing."""

    def __init__(self, api: Api, time: Time, chance: random.Random, note: Callable[[str, str], None]) -> None:
        self._api, self._time, self._chance, self._note = api, time, chance, note
        self._kind = api.cluster.served(REMEDIATIONS[api.cluster.requested_by])

    def request(self, name: str) -> None:
        if not self._api.exists(*self._api.cluster.place(name)) or self.object(name) is not None:
            return
        owner = self._owner(name)
        body = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": SPEC}
        self._api.create(self._kind, MACHINES_IN, body)
        self._note("MHC", f"makes an object for {name}")
        until_at = self._time.now + MOST_PATIENCE_SECONDS * self._chance.random()
        self._time.after(LOOK_SECONDS, partial(self._look, name, owner["uid"], until_at))

    def _owner(self, name: str) -> Json:
        if self._api.cluster.machines_are_nodes:
            return dict(CHECK)
        machine = self._api.found(as_it_is, *self._api.cluster.place(name))
        owner = {key: machine[key] for key in ("apiVersion", "kind")}
        return {**owner, **{key: machine["metadata"][key] for key in ("name", "uid")}}

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
        cluster = self._api.cluster
        found = self._api.exists(*cluster.place(name))
        owned = found and (cluster.machines_are_nodes or machine_of(self._api, name).uid == uid)
        if not owned or (self._time.now >= until_at and self._is_healthy(name)):
            self.withdraw(name)
        self._time.after(LOOK_SECONDS, partial(self._look, name, uid, until_at))

    def _is_healthy(self, name: str) -> bool:
        node = self._api.if_there(as_it_is, NODES, "", name)
        seen = None if node is None else parse_node_seen(node, self._api.cluster.machines)
        renewed_at = float(self._api.leases.get(name, "-inf"))
        return isinstance(seen, NodeSeen) and seen.ready and self._time.now - renewed_at <= NOT_READY_SECONDS


class People:
    """They write to the API, which always answers them."""

    def __init__(
        self, api: Api, time: Time, note: Callable[[str, str], None], health_check: HealthCheck | None
    ) -> None:
        self._api, self._time, self._note, self.health_check = api, time, note, health_check
        self.put_back: Counter[str] = Counter()
        """How often the same condemnation was, which makes another one of it."""

    def request(self, name: str) -> None:
        if self.health_check is not None:
            self.health_check.request(name)
        elif isinstance(self._condemnation(name), NotRequested):
            self._patch(name, {"annotations": {EXTERNAL_REMEDIATION: ""}})
            self._note("MHC", f"asks for {name}")

    def lapse(self, name: str, seconds: float) -> None:
        """Somebody removes the condemnation, and puts the same one back."""
        condemnation = self._condemnation(name)
        if isinstance(condemnation, Condemned):
            self.absolve(name)
            self._time.after(seconds, partial(self._put_back, name, condemnation))

    def _put_back(self, name: str, condemnation: Condemned) -> None:
        self.put_back[name] += 1
        self._patch(name, condemnation.render())
        self._note("a person", f"puts the condemnation of {name} back")

    def absolve(self, name: str) -> None:
        if self.health_check is not None:
            self.health_check.withdraw(name)
            return
        condemnation = self._condemnation(name)
        if isinstance(condemnation, (Requested, Condemned)):
            last_id = condemnation.id if isinstance(condemnation, Condemned) else condemnation.last_id
            self._patch(name, NotRequested(last_id).render())
            self._note("a person", f"absolves {name}")

    def enrol(self, name: str) -> None:
        self._api.patch(CONFIG_MAPS, NAMESPACE, ENROLLED, {"data": {name: "{}"}})
        self._note("a person", f"enrols {name}")

    def unenrol(self, name: str) -> None:
        self._api.patch(CONFIG_MAPS, NAMESPACE, ENROLLED, {"data": {name: None}})
        self._note("a person", f"unenrols {name}")

    def replace_machine(self, name: str) -> bool:
        """Another one under the old name: it is told apart by its uid alone. False if there is none to replace."""
        exists = self._api.exists(*self._api.cluster.place(name))
        if exists:
            self._api.delete(*self._api.cluster.place(name))
            make_machine(self._api, name)
        return exists

    def pause(self, seconds: float) -> None:
        """By `pp-leader pause`, until so many seconds from now."""
        order = Pause("a person", EPOCH_TIME, "planned work").render()
        self._order({PAUSED: order})
        self._note("a person", "pauses the leader")
        self._time.after(seconds, partial(self._order, {PAUSED: None}))

    def _order(self, data: Json) -> None:
        if self._api.exists(CONFIG_MAPS, NAMESPACE, CONTROL):
            self._api.patch(CONFIG_MAPS, NAMESPACE, CONTROL, {"data": data})
        elif data[PAUSED] is not None:
            self._api.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": CONTROL}, "data": data})

    def _condemnation(self, name: str) -> object:
        there = self._api.exists(*self._api.cluster.place(name))
        return machine_of(self._api, name).condemnation if there else None

    def _patch(self, name: str, metadata: Json) -> None:
        if self._api.exists(*self._api.cluster.place(name)):
            self._api.patch(*self._api.cluster.place(name), {"metadata": metadata})
