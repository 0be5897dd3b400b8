"""Troubles that people and their tools make: ids, Machines, Nodes or requests are gone, or too many; a peer lies."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Callable

from pp_hostd.agent.witness import Statement
from pp_hostd.embedded.history import Key
from pp_hostd.embedded.store import Saved
from pp_hostd.kube.resources import NODES
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.control import Maintenance
from pp_hostd.model.keys import CONDEMNATION_ID, EXTERNAL_REMEDIATION, is_ours
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import Withdrawn
from pp_hostd.peers.message import Question
from pp_hostd.sim.api import Json, as_it_is
from pp_hostd.sim.filled import EPOCH_TIME, make_machine
from pp_hostd.sim.people import NOT_READY_SECONDS
from pp_hostd.sim.schedule import Trouble
from pp_hostd.sim.world import World

FINALIZER = "example.com/keeps"
LIED_ID = 10**9
LOOK_SECONDS = 1.0


class Attacks:
    """An attack that has `seconds` ends after them; only "somebody asks again" goes on until all is healed."""

    def __init__(self, world: World, healed_at: float) -> None:
        self._world, self._api, self._healed_at = world, world.api, healed_at
        self._saved: Saved | None = None
        self.acts: Mapping[str, Callable[[Trouble], None]] = {
            "condemnation id is removed": self._remove_ids,
            "external-remediation is removed": self._remove_annotation,
            "etcd is saved": lambda _: setattr(self, "_saved", self._api.store.saved()),
            "etcd is restored": self._restore,
            "machines vanish": self._vanish,
            "machines vanish with their CRD": self._vanish_with_kind,
            "a Node is registered again": self._register_again,
            "a Node has finalizers": self._finalize,
            "a peer lies": self._lie,
            "somebody asks again": self._ask_again,
            "maintenance": self._maintain,
            "credentials end": self._end_credentials,
        }

    # Ids and requests.

    def _remove_ids(self, trouble: Trouble) -> None:
        """By hand, or by an uninstall of old."""
        for name in trouble.who:
            self._annotate(name, CONDEMNATION_ID)

    def _remove_annotation(self, trouble: Trouble) -> None:
        """The obvious way to take a request back."""
        for name in trouble.who:
            self._annotate(name, EXTERNAL_REMEDIATION)

    def _annotate(self, name: str, key: str) -> None:
        if self._api.exists(*self._api.cluster.place(name)):
            self._api.patch(*self._api.cluster.place(name), {"metadata": {"annotations": {key: None}}})

    def _ask_again(self, trouble: Trouble) -> None:
        """A health check: so many seconds after its request is gone it asks again, while the Node is not Ready."""
        for name in trouble.who:
            self._look_at(name, trouble.seconds, since=None)

    def _look_at(self, name: str, patience_seconds: float, since: float | None) -> None:
        time, api = self._world.time, self._api
        if time.now >= self._healed_at:
            return
        node, renewed = api.exists(NODES, "", name), float(api.leases.get(name, "-inf"))
        ill = not node or time.now - renewed > NOT_READY_SECONDS
        since = (time.now if since is None else since) if ill else None
        if since is not None and time.now >= since + patience_seconds:
            self._world.people.request(name)
            since = None
        time.after(LOOK_SECONDS, partial(self._look_at, name, patience_seconds, since))

    def _maintain(self, trouble: Trouble) -> None:
        """A person orders it for each of these hosts, and ends it again."""
        until = EPOCH_TIME + timedelta(seconds=trouble.at + trouble.seconds)
        for name in trouble.who:
            self._order(name, Maintenance("a person", EPOCH_TIME, "planned work", until))
            self._world.time.after(trouble.seconds, partial(self._order, name, None))

    def _order(self, name: str, order: Maintenance | None) -> None:
        self._world.hosts[name].maintenance = order
        _, agent = self._world.agents.get(name, (None, None))
        if agent is not None:
            agent.take_order()

    def _end_credentials(self, trouble: Trouble) -> None:
        """Of the agents and leaders on these hosts, until a person gives them others."""
        self._api.refused.update(trouble.who)
        for name in trouble.who:
            self._world.disturbances.refused(name, trouble.seconds)
        self._world.time.after(trouble.seconds, partial(self._api.refused.difference_update, trouble.who))

    # The store.

    def _restore(self, _: Trouble) -> None:
        """To what was saved; versions go on, and whoever watches must list again. By the book no leader runs until
        each host has stored its promise again."""
        if self._saved is not None:
            self._api.restore(self._saved)
            for host in self._world.hosts.values():
                host.machine_is_back()
            self._world.on_restored()
            self._world.stop_leaders()
            self._await_promises()

    def _await_promises(self) -> None:
        """A host that a fence has switched off is started by hand: who began that fence may have forgotten it."""
        for host in self._world.hosts.values() if self._world.devices is not None else ():
            if not host.powered:
                host.switch_on()
        if all(map(self._has_promised, self._world.names)):
            self._world.start_leaders()
        else:
            self._world.time.after(LOOK_SECONDS, self._await_promises)

    def _has_promised(self, name: str) -> bool:
        """Whether its Node says what its agent has last stored there. An unarmed host stores nothing again: in any
        boot, "withdrawn" promises nothing."""
        boot, (_, agent) = self._world.hosts[name].boot, self._world.agents.get(name, (None, None))
        node = self._api.if_there(parse_node, NODES, "", name)
        if boot is not None and boot.rest_seconds is not None:  # its shutdown hangs, which nothing guards
            return True
        if name in self._api.cluster.agentless:
            return True
        if agent is None or not isinstance(node, Node):
            return False
        stored = agent.driver.commitments.stored
        return node.agent == stored or (isinstance(node.agent, Withdrawn) and isinstance(stored, Withdrawn))

    # Machines and Nodes.

    def _vanish(self, trouble: Trouble) -> None:
        """And come back: as they were, or, if it is bad enough, under another uid."""
        if self._api.cluster.machines_are_nodes:
            return
        gone = {name: self._machine(name) for name in trouble.who if self._api.exists(*self._api.cluster.place(name))}
        for name in gone:
            self._api.delete(*self._api.cluster.place(name))
        self._world.time.after(trouble.seconds, partial(self._come_back, gone, replaced=trouble.part >= 0.5))

    def _vanish_with_kind(self, trouble: Trouble) -> None:
        if self._api.cluster.machines_are_nodes:
            return
        self._vanish(Trouble(trouble.at, trouble.what, tuple(self._world.names), trouble.seconds + 1, 1.0))
        self._api.serves_machines = False
        self._world.time.after(trouble.seconds, partial(setattr, self._api, "serves_machines", True))

    def _machine(self, name: str) -> Json:
        found: Json = self._api.found(as_it_is, *self._api.cluster.place(name))
        return found

    def _come_back(self, gone: dict[str, Json], *, replaced: bool) -> None:
        """As soon as their CRD is there."""
        if not self._api.serves_machines:
            self._world.time.after(LOOK_SECONDS, partial(self._come_back, gone, replaced=replaced))
            return
        for name, machine in gone.items():
            kind, namespace, _ = place = self._api.cluster.place(name)
            if self._api.exists(*place):
                continue
            if replaced:
                make_machine(self._api, name)
                self._world.hosts[name].machine_was_replaced()
            else:
                self._api.store.put_back(kind, Key(namespace, name), machine)

    def _register_again(self, trouble: Trouble) -> None:
        """Somebody deletes a Node, and its kubelet registers it again, with what is not pp-hostd's."""
        if self._api.cluster.machines_are_nodes:
            return
        for name in trouble.who:
            node = self._api.if_there(as_it_is, NODES, "", name)
            if node is not None:
                self._api.delete(NODES, "", name)
                self._api.leases.pop(name, None)
                self._world.time.after(trouble.seconds, partial(self._register, name, node))

    def _register(self, name: str, node: Json) -> None:
        found = self._api.if_there(as_it_is, NODES, "", name)
        if found is not None:
            if found["metadata"]["uid"] == node["metadata"]["uid"]:  # its finalizers keep it for a while
                self._world.time.after(LOOK_SECONDS, partial(self._register, name, node))
            return
        metadata, status = node["metadata"], node.get("status", {})
        texts = {
            part: {key: text for key, text in metadata.get(part, {}).items() if not is_ours(key)}
            for part in ("labels", "annotations")
        }
        taints = [taint for taint in node.get("spec", {}).get("taints", ()) if not is_ours(taint["key"])]
        body = {"metadata": {"name": name, **texts}, "spec": {"taints": taints}, "status": status}
        self._api.create(NODES, "", body)

    def _finalize(self, trouble: Trouble) -> None:
        for name in trouble.who:
            self._set_finalizers(name, [FINALIZER])
            if trouble.seconds:
                self._world.time.after(trouble.seconds, partial(self._set_finalizers, name, None))

    def _set_finalizers(self, name: str, finalizers: list[str] | None) -> None:
        if self._api.exists(NODES, "", name):
            self._api.patch(NODES, "", name, {"metadata": {"finalizers": finalizers}})

    # Peers.

    def _lie(self, trouble: Trouble) -> None:
        """Makes peers lie: a holder of the peer key may answer anything about anybody."""
        health = Health.UNHEALTHY if trouble.part < 0.5 else Health.NOT_FOUND
        self._world.disturbances.lied = True
        for liar in trouble.who:
            self._world.lies[liar] = partial(_accuse, liar, health)
            self._world.time.after(trouble.seconds, partial(self._world.lies.pop, liar, None))


def _accuse(liar: str, health: Health, question: Question) -> Answer:
    said = Statement(health, LIED_ID if health is Health.UNHEALTHY else None, "liar.1")
    return said.answer(liar, question.asked_by, question.about.machine_key)
