"""The makers of NodeFences on a bad day: a controller, for Nodes that are not Ready, and people, who also edit them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Callable

from pp_hostd.kube.resources import CONFIG_MAPS, NODE_FENCES, NODES
from pp_hostd.leader.remedies.node_fence.config_maps import CONFIG
from pp_hostd.leader.remedies.node_fence.fence import NodeFence, fence_name, parse_fence
from pp_hostd.leader.remedies.node_fence.memory import LEAST_SILENT_SECONDS
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.sim.api import SERVERS, Api, Json
from pp_hostd.sim.fence_methods import METHODS, WRONG_PLUG, config
from pp_hostd.sim.host import Host
from pp_hostd.sim.schedule import Trouble
from pp_hostd.sim.time import Time

LOOK_SECONDS = 1.0
LEAST_PATIENCE_SECONDS, MORE_PATIENCE_SECONDS = 5.0, 15.0
"""Between these two it takes the controller to make a NodeFence for a Node that is not Ready."""
_DONE = {"outcome": "Done", "tried": 1}
EDITS: tuple[Json, ...] = (
    {"step": "Isolation", "status": "New", "methods": [], "conditions": []},
    {"status": "Error", "reason": "somebody says so"},
    {"step": "Power-Management", "status": "Running", "methods": [{**_DONE, "name": "ipmi", "action": "off"}]},
    {"step": "Power-Management", "status": "Done", "cleaned": True},
    {"step": "Power-Management", "status": "New", "methods": []},
    {"step": "Recovery", "status": "Running", "methods": []},
    {"step": "Recovery", "status": "Final"},
    {"step": "Isolation", "status": "Done"},
)
"""Claims that a person, or a tool, may write into a NodeFence: none of them proves anything."""


class Fences:
    """`since` tells by Node since when it is Ready (True) or not (False), as far as the controller has looked."""

    def __init__(
        self,
        api: Api,
        time: Time,
        chance: random.Random,
        hosts: Mapping[str, Host],
        note: Callable[[str, str], None],
    ) -> None:
        self._api, self._time, self._chance, self._hosts, self._note = api, time, chance, hosts, note
        self.since: dict[str, tuple[bool, float]] = {}
        self.silent_at: dict[str, float] = {}
        """By node: when its kubelet was last found silent, which the leader takes for a sign that it is not well."""
        self._versions: dict[str, str] = {}
        self.changed_at: dict[str, float] = {}
        """By node: when its NodeFence was last seen in another version."""
        self.edited: set[str] = set()
        """The nodes whose NodeFence a person has edited."""
        self._patience = {name: self._some_patience() for name in hosts}
        self.acts: Mapping[str, Callable[[Trouble], None]] = {
            "somebody fences": self._fence_by_hand,
            "a NodeFence is deleted": lambda trouble: self._delete(trouble.who[0]),
            "a NodeFence is edited": lambda trouble: self._edit(trouble.who[0], trouble.part),
            "a fence-config is changed": lambda trouble: self._configure(trouble.who[0], trouble.part),
            "kubelet is sick": self._ail,
        }
        time.after(LOOK_SECONDS, self._look)

    def found(self, name: str) -> NodeFence | None:
        """The NodeFence of this node."""
        found = self._api.if_there(parse_fence, NODE_FENCES, "", fence_name(name))
        return found if isinstance(found, NodeFence) else None

    # The controller.

    def _look(self) -> None:
        if any(map(self._api.answers, SERVERS)):
            for name in self._hosts:
                self._look_at(name)
        self._time.after(LOOK_SECONDS, self._look)

    def _look_at(self, name: str) -> None:
        now, fence = self._time.now, self.found(name)
        version = "" if fence is None else fence.resource_version
        if self._versions.get(name) != version:
            self._versions[name], self.changed_at[name] = version, now
        if now > float(self._api.leases.get(name, "-inf")) + LEAST_SILENT_SECONDS:
            self.silent_at[name] = now
        ready = self._api.if_there(_is_ready, NODES, "", name)
        if ready is None:
            return
        before, since = self.since.get(name, (True, now))
        self.since[name] = ready, since if before == ready else now
        if not ready and fence is None and now >= self.since[name][1] + self._patience[name]:
            self._patience[name] = self._some_patience()
            self._create("controller", name, {})

    def _some_patience(self) -> float:
        return LEAST_PATIENCE_SECONDS + MORE_PATIENCE_SECONDS * self._chance.random()

    def _create(self, who: str, name: str, more: Json) -> None:
        if not self._api.exists(NODE_FENCES, "", fence_name(name)):
            body = {"metadata": {"name": fence_name(name)}, "node": name, "step": "Isolation", "status": "New", **more}
            self._api.create(NODE_FENCES, "", body)
            self.changed_at[name] = self._time.now
            self._note(who, f"makes a NodeFence for {name}")

    # People.

    def _fence_by_hand(self, trouble: Trouble) -> None:
        """Whatever its Node says. If it is bad enough, the NodeFence claims to have come far already."""
        claims = EDITS[int((trouble.part - 0.5) * 2 * len(EDITS))] if trouble.part >= 0.5 else {}
        self._create("a person", trouble.who[0], claims)

    def _delete(self, name: str) -> None:
        if self._api.exists(NODE_FENCES, "", fence_name(name)):
            self._api.delete(NODE_FENCES, "", fence_name(name))
            self._note("a person", f"deletes the NodeFence of {name}")

    def _edit(self, name: str, part: float) -> None:
        if self._api.exists(NODE_FENCES, "", fence_name(name)):
            self._api.patch(NODE_FENCES, "", fence_name(name), EDITS[int(part * len(EDITS))])
            self.edited.add(name)
            self._note("a person", f"edits the NodeFence of {name}: {EDITS[int(part * len(EDITS))]}")

    def _configure(self, name: str, part: float) -> None:
        """Other methods, for the right host."""
        others = [each for each in METHODS[1:] if each != WRONG_PLUG]
        chosen = others[int(part * len(others))]
        if self._api.exists(CONFIG_MAPS, NAMESPACE, f"{CONFIG}{name}"):
            self._api.patch(CONFIG_MAPS, NAMESPACE, f"{CONFIG}{name}", {"data": config(chosen, name)})
            self._note("a person", f"has {name} fenced otherwise: {chosen}")

    def _ail(self, trouble: Trouble) -> None:
        self._hosts[trouble.who[0]].sick_until = self._time.now + trouble.seconds

    def heal(self) -> None:
        for host in self._hosts.values():
            host.sick_until = 0.0


def _is_ready(node: object) -> bool:
    """Kept, as all that is parsed, until somebody writes the Node."""
    assert isinstance(node, dict), node
    conditions = node.get("status", {}).get("conditions") or ()
    return any((each["type"], each["status"]) == ("Ready", "True") for each in conditions)
