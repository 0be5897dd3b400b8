"""The invariants: they must hold, whatever goes wrong; the first violation ends a schedule."""

from __future__ import annotations

import math
from collections import Counter

from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NODE_HEALTH_CHECKS, NODES
from pp_hostd.leader.plan.valves import LEAST_RESETS_PER_HOUR, most_of
from pp_hostd.leader.remedies.node_fence.fence import Status
from pp_hostd.leader.remedies.node_fence.memory import LEAST_SILENT_SECONDS
from pp_hostd.model.condemnation import Condemnation, Condemned, last_id
from pp_hostd.model.keys import EXTERNAL_REMEDIATION, NAMESPACE, OUT_OF_SERVICE, REQUESTED_BY, backup_name, is_ours
from pp_hostd.model.lease import LEASE, Lease, parse_lease
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.memory import Decision
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.record import Unreadable
from pp_hostd.sim.api import SERVERS, Json, as_it_is
from pp_hostd.sim.attacks import LIED_ID
from pp_hostd.sim.fence_invariants import STUCK_SECONDS, FenceInvariants
from pp_hostd.sim.fence_methods import WRONG_PLUG
from pp_hostd.sim.health import STARTUP_SECONDS
from pp_hostd.sim.host import LOOK_SECONDS, MAX_DRIFT, MOST_BOOT_SECONDS, Host
from pp_hostd.sim.leader_port import Freed
from pp_hostd.sim.truth import A_MOMENT
from pp_hostd.sim.violation import Violation
from pp_hostd.sim.world import World
from pp_hostd.timing import dead_seconds

FREED_AFTER_SECONDS = 5.0
"""So long a leader takes at most from its last look at a kubelet's Lease until a deletion has its effect."""
CLEARED_AFTER_SECONDS = 10.0
"""So long a leader takes at most from the end of a condemnation until it has made the Node usable again."""


class Invariants:
    """Hears of everything that could break one."""

    def __init__(self, world: World, spared: tuple[str, ...] = ()) -> None:
        self._world, self._spared = world, spared
        self.resets = 0
        self._owed: Counter[tuple[str, str, int, int]] = Counter()
        self._remediated: set[str] = set()
        self._uncounted: set[str] = set()
        """Nodes whose remediation began before an etcd restore took the count of it away."""
        self._attempts: dict[tuple[str, int], str] = {}
        """By uid and retries of a remediation object: the uid of the Node that was freed for it."""
        world.on_freed = self._freed
        world.on_leader_sends = self._leader_sends
        world.on_decided = self._decided
        world.on_fired = self._fired
        world.on_stuck = self._stuck
        world.on_restored = self._restored
        world.on_false_proof = self._false_proof
        world.on_started = self._started
        self._off_for: dict[str, tuple[str, float]] = {}
        """By node: the request for which its host was last switched off, and when."""
        self._cycled: dict[str, tuple[str, float]] = {}
        """The same of nodes that were freed, and when, if they have not started workloads since."""
        if world.operator is not None:
            world.operator.on_switched_off = self._switched_off
        self._freed_at: dict[str, float] = {}
        self._of_fences = None
        if world.fences is not None and world.devices is not None:
            self._of_fences = FenceInvariants(world, world.fences, world.devices)
        self._before = {name: _lasting(world.api.found(as_it_is, NODES, "", name)) for name in world.names}

    def _leader_sends(self, identity: str) -> None:
        """Rule 14."""
        lease = self._world.api.if_there(parse_lease, LEASES, NAMESPACE, LEASE)
        if isinstance(lease, Lease) and lease.holder not in ("", identity):
            raise Violation("one leader", f"{identity} sends a write while {lease.holder} holds the Lease")

    def _freed(self, node: str, write: Freed) -> None:
        self._freed_at[node] = self._world.time.now
        host = self._world.hosts.get(node)
        if host is not None and self._of_fences is not None and write is Freed.STORED:
            self._of_fences.stored_freed(node, host)
        elif host is not None and host.runs_workloads and not self._is_misled(node):
            raise Violation("two copies", f"{node} runs the workloads that the leader has just freed")
        if host is not None and not host.powered and node in self._off_for:
            self._cycled[node] = self._off_for[node][0], self._world.time.now
        self._remediation(node)
        self._attempt(node)

    def _is_misled(self, node: str) -> bool:
        """Whether the plug in its fence-config is another host's, and its kubelet was silent as the leader looked last:
        then nothing contradicts the other host's BMC. A person has to see to that."""
        fenced = dict(zip(self._world.names, self._world.api.cluster.fenced))
        now, api = self._world.time.now, self._world.api
        last_at, newest_at = api.renewed_at(node, now - FREED_AFTER_SECONDS), api.renewed_at(node, now)
        silent_until_at = now if newest_at == last_at else newest_at
        return fenced.get(node) == WRONG_PLUG and silent_until_at - last_at > LEAST_SILENT_SECONDS

    def _attempt(self, node: str) -> None:
        """No attempt of a remediation object deletes the Node that came after the one that it was made for. (A person
        who puts a condemnation back has the next Node deleted.)"""
        checks, api = self._world.people.health_check, self._world.api
        found = None if checks is None else checks.object(node)
        if found is None or not api.cluster.machines_are_nodes or self._world.people.put_back[node]:
            return
        if api.exists(NODES, "", node):  # it stays: only its workloads go
            return
        metadata = api.past(NODES, "", node)[-1]["metadata"]
        uid, claim = metadata["uid"], metadata.get("annotations", {}).get(REQUESTED_BY, "")
        if NODE_HEALTH_CHECKS.kind in claim:  # another one has requested that
            return
        attempt = found["metadata"]["uid"], found.get("status", {}).get("retryCount", 0)
        if self._attempts.setdefault(attempt, uid) != uid:
            raise Violation("one reset per request", f"Node {node} is deleted again for one and the same attempt")

    def _remediation(self, node: str) -> None:
        """Rule 15. On no day remediations are an hour apart."""
        if node in self._uncounted:
            return
        self._remediated.add(node)
        most = most_of(self._world.settings.leader.resets_per_hour, len(self._world.names), LEAST_RESETS_PER_HOUR)
        if len(self._remediated) > most:
            raise Violation("budget", f"{node} is remediated after {most} others, and no more may be in an hour")

    def _started(self, node: str) -> None:
        self._cycled.pop(node, None)

    def _switched_off(self, node: str, request: str) -> None:
        """Rule 16: what is requested while a host is off, or boots, begins no second power cycle, unless its Machine
        was deleted since: that ends all that was done for it. Remediation objects retry after their own timeout, and
        our health checks request again after nodeStartupTimeout."""
        before, freed_at = self._cycled.pop(node, (request, 0.0))
        _, off_at = self._off_for.get(node, ("", 0.0))
        self._off_for[node] = request, self._world.time.now
        checked = self._world.api.cluster.health_checks and self._world.time.now >= freed_at + STARTUP_SECONDS
        if (
            self._world.people.health_check is None
            and not checked
            and before != request
            and self._world.api.machine_deleted_at.get(node, 0.0) < off_at
        ):
            raise Violation("one power cycle per fault", f"{node} is switched off again before it was back")

    def _restored(self) -> None:
        """The leaders' count is what it was when etcd was saved: what began since is finished, and not in it."""
        self._remediated.clear()
        self._cycled.clear()
        self._attempts.clear()
        self._uncounted.update(filter(self._ids, self._world.names))
        for host in self._world.hosts.values():
            if host.boot is not None:  # what was freed is there again
                host.boot.storage_freed = False

    def _decided(self, node: str, decision: Decision, uid: str) -> None:
        self.resets += 1
        if decision.id is not None and decision.id != LIED_ID and not self._is_lost(node, decision.id):
            self._remediation(node)
            owed = (node, uid, decision.id, self._world.people.put_back[node])
            self._owed[owed] += 1
            if self._owed[owed] > 1:
                raise Violation("one reset per condemnation", f"{node} resets itself again under id {decision.id}")
        disturbances = self._world.disturbances
        if disturbances.only_its_machine_vanished(node, uid):
            raise Violation("needless reset", f"{node}, whose Machine alone has vanished: {decision.cause}")
        if node in self._spared or disturbances.only_control_plane_failed(node):
            raise Violation("needless reset", f"{node}: {decision.cause}")

    def _is_lost(self, node: str, condemnation_id: int) -> bool:
        """Whether another id replaced this one since, or somebody removed it. No read finds it lifted any more, so a
        peer that remembers it counts as one that accuses, and the host may lack it in the majority (rules 3, 4)."""
        ids = [last_id(state) for state in self._condemnations(node)]
        return condemnation_id in ids and ids[-1] != condemnation_id

    def _ids(self, node: str) -> list[int]:
        """Under which its machine was ever condemned, in their order."""
        return [state.id for state in self._condemnations(node) if isinstance(state, Condemned)]

    def _condemnations(self, node: str) -> list[Condemnation | Unreadable]:
        """The condemnation in each version of its machine, the oldest first."""
        machines = map(parse_machine, self._world.api.past(*self._world.api.cluster.place(node)))
        return [machine.condemnation for machine in machines if isinstance(machine, Machine)]

    def _promises_by_its_machine(self, node: str) -> bool:
        """Whether its promise is by the Machine that is there now: it has withdrawn the one by the old Machine."""
        _, agent = self._world.agents.get(node, (None, None))
        machine = self._world.api.if_there(parse_machine, *self._world.api.cluster.place(node))
        return agent is not None and machine is not None and machine.uid == agent.driver.commitments.bound_uid

    def _false_proof(self, sentence: str) -> None:
        raise Violation("bound", sentence)

    def _fired(self, node: str) -> None:
        if not self._world.disturbances.is_disturbed(node):
            raise Violation("watchdog", f"that of {node} fired, and nothing was wrong with its agent")

    def _stuck(self, node: str) -> None:
        raise Violation("shutdown", f"{node} was told to shut down, and is still up")

    def at_the_end(self) -> None:
        """All was healed a while ago: every Node is back, as it was, and every host runs workloads, or it is told why
        not."""
        world = self._world
        bound = dead_seconds(world.settings) * (1 + MAX_DRIFT) + A_MOMENT
        if world.longest_isolation_seconds > bound:
            raise Violation("bound", f"a host lived for {world.longest_isolation_seconds:.2f} s without a proof")
        if not any(map(world.api.answers, SERVERS)):
            if not any(self._boots(world.hosts[name]) for name in world.api.cluster.api_on):
                raise Violation("progress", "the API is not back")
            return
        if WRONG_PLUG in world.api.cluster.fenced and not world.leading():
            return  # it may have switched off the host of the last leader
        if self._of_fences is not None:
            self._of_fences.at_the_end(self._is_remediated)
        for name, host in world.hosts.items():
            self._host_at_the_end(name, host)

    def _host_at_the_end(self, name: str, host: Host) -> None:
        world = self._world
        if not world.api.exists(NODES, "", name):
            if not (self._registers(name, host) or self._is_just_freed(name)):
                raise Violation("progress", f"Node {name} is missing")
            return
        node = world.api.found(parse_node, NODES, "", name)
        assert isinstance(node, Node), node
        if _lasting(world.api.found(as_it_is, NODES, "", name)) != self._before[name]:
            raise Violation("nothing lost", f"Node {name} is not as it was")
        boot = host.boot
        if boot is not None and boot.machine_is_gone and not self._promises_by_its_machine(name):
            raise Violation("bound", f"the machine of {name} is gone since long, and it feeds on")
        checks = world.people.health_check
        remediation = None if checks is None else checks.object(name)
        # A person who removed an id has to repair that, and the leader says so.
        unreadable = any(isinstance(state, Unreadable) for state in self._condemnations(name)[-1:])
        if remediation is not None and "deletionTimestamp" in remediation["metadata"] and not unreadable:
            raise Violation("progress", f"the remediation object of {name} is deleted, and does not go")
        asked = _is_requested(world, name) or self._is_fenced(name)
        lifted_at = world.api.changed_at(*world.api.cluster.place(name))
        if not asked and node.tainted and world.time.now > lifted_at + CLEARED_AFTER_SECONDS:
            raise Violation("progress", f"nobody requests {name}, and its Node is still tainted")
        if asked and not world.told.get(name):
            raise Violation("progress", f"remediation of {name} is requested, and nothing is done about it")
        misled = WRONG_PLUG in world.api.cluster.fenced and not host.powered  # by another node's method, perhaps
        if not (asked or misled or self._boots(host) or host.runs_workloads or world.agent_says(name)):
            raise Violation("progress", f"{name} is well, and runs nothing")

    def _is_remediated(self, name: str) -> bool:
        """Whether somebody requests it, or it was freed a short while ago, and may not be back."""
        return self._is_just_freed(name) or name in self._cycled or _is_requested(self._world, name)

    def _is_just_freed(self, name: str) -> bool:
        return self._world.time.now < self._freed_at.get(name, -math.inf) + STUCK_SECONDS

    def _is_fenced(self, name: str) -> bool:
        """Whether a NodeFence for it is not over. A person may have said that it is over while the host was off: that
        one is kept for a while, and then another one is made."""
        fences = self._world.fences
        fence = None if fences is None else fences.found(name)
        if fence is None or fences is None:
            return False
        return fence.progress.status is not Status.FINAL or name in fences.edited

    def _registers(self, name: str, host: Host) -> bool:
        """Whether its kubelet would create its Node: nothing holds it, and no leader recreates it. That is so where the
        host is not enrolled, and where the Machine was deleted while the Node was gone, so that no leader has a backup
        any more. The kubelets of this simulator create none."""
        api = self._world.api
        kept = name not in api.machine_deleted_at or api.exists(CONFIG_MAPS, NAMESPACE, backup_name(name))
        free = self._boots(host) or host.runs_workloads or not host.held
        return free and (not kept or name in api.cluster.unenrolled)

    def _boots(self, host: Host) -> bool:
        """Whether it is about to be up: its kubelet has not looked yet, or a shutdown hangs that nothing guards."""
        now, boot = self._world.time.now, host.boot
        if boot is None:
            return now - host.down_since < MOST_BOOT_SECONDS
        return now <= boot.since + LOOK_SECONDS or boot.rest_seconds is not None


def _is_requested(world: World, name: str) -> bool:
    """Whether somebody requests it: the annotation alone says so."""
    place = world.api.cluster.place(name)
    machine = world.api.found(as_it_is, *place) if world.api.exists(*place) else {"metadata": {}}
    return EXTERNAL_REMEDIATION in machine["metadata"].get("annotations", {})


def _lasting(node: Json) -> object:
    """All of it that a Node that was deleted must have again."""
    metadata, taints = node["metadata"], node.get("spec", {}).get("taints", ())
    texts = [
        {key: text for key, text in metadata.get(part, {}).items() if not is_ours(key)}
        for part in ("labels", "annotations")
    ]
    return texts, [taint for taint in taints if not is_ours(taint["key"]) and taint["key"] != OUT_OF_SERVICE]
