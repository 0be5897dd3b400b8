"""What must hold, whatever goes wrong; the first violation ends a schedule."""

from __future__ import annotations

from collections import Counter

from pp_hostd.kube.resources import NODES
from pp_hostd.leader.plan.valves import LEAST_RESETS_PER_HOUR, most_of
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.keys import EXTERNAL_REMEDIATION, OUT_OF_SERVICE, is_ours
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.memory import Decision
from pp_hostd.model.node import Node, parse_node
from pp_hostd.sim.api import SERVERS, Json, as_it_is
from pp_hostd.sim.attacks import LIED_ID
from pp_hostd.sim.host import MAX_DRIFT, MOST_BOOT_SECONDS, Host
from pp_hostd.sim.kubelet import LOOK_SECONDS
from pp_hostd.sim.truth import A_MOMENT
from pp_hostd.sim.world import World
from pp_hostd.timing import dead_seconds


class Violation(Exception):
    """`kind` is the invariant's name."""

    def __init__(self, kind: str, sentence: str) -> None:
        super().__init__(f"{kind}: {sentence}")
        self.kind = kind


class Invariants:
    """Hears of everything that could break one."""

    def __init__(self, world: World, spared: tuple[str, ...] = ()) -> None:
        self._world, self._spared = world, spared
        self.resets = 0
        self._owed: Counter[tuple[str, str, int, int]] = Counter()
        self._remediated: set[str] = set()
        world.on_freed = self._freed
        world.on_decided = self._decided
        world.on_fired = self._fired
        world.on_stuck = self._stuck
        world.on_restored = self._remediated.clear  # and with it the count of the leaders
        world.on_false_proof = self._false_proof
        self._before = {name: _lasting(world.api.found(as_it_is, NODES, "", name)) for name in world.names}

    def _freed(self, node: str) -> None:
        host = self._world.hosts.get(node)
        if host is not None and host.runs_workloads:
            raise Violation("two copies", f"{node} runs the workloads that the leader has just freed")
        self._remediation(node)

    def _remediation(self, node: str) -> None:
        """Rule 15. On no day remediations are an hour apart."""
        self._remediated.add(node)
        most = most_of(self._world.settings.leader.resets_per_hour, len(self._world.names), LEAST_RESETS_PER_HOUR)
        if len(self._remediated) > most:
            raise Violation("budget", f"{node} is remediated after {most} others, and no more may be in an hour")

    def _decided(self, node: str, decision: Decision, uid: str) -> None:
        self.resets += 1
        if decision.id is not None and not self._is_replaced(node, decision.id):
            if decision.id != LIED_ID:
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

    def _is_replaced(self, node: str, condemnation_id: int) -> bool:
        """Whether the machine was condemned under another id since. No read finds the old one lifted any more, so a
        peer that remembers it counts as one that accuses, and the host may lack it in the majority (rules 3, 4)."""
        machines = map(parse_machine, self._world.api.past(*self._world.api.cluster.place(node)))
        states = [machine.condemnation for machine in machines if isinstance(machine, Machine)]
        ids = [state.id for state in states if isinstance(state, Condemned)]
        return condemnation_id in ids and ids[-1] != condemnation_id

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
        if not any(map(world.api.answers, SERVERS)):
            raise Violation("progress", "the API is not back")
        bound = dead_seconds(world.settings) * (1 + MAX_DRIFT) + A_MOMENT
        if world.longest_isolation_seconds > bound:
            raise Violation("bound", f"a host lived for {world.longest_isolation_seconds:.2f} s without a proof")
        for name, host in world.hosts.items():
            self._host_at_the_end(name, host)

    def _host_at_the_end(self, name: str, host: Host) -> None:
        world = self._world
        if not world.api.exists(NODES, "", name):
            raise Violation("progress", f"Node {name} is missing")
        node = world.api.found(parse_node, NODES, "", name)
        assert isinstance(node, Node), node
        if _lasting(world.api.found(as_it_is, NODES, "", name)) != self._before[name]:
            raise Violation("nothing lost", f"Node {name} is not as it was")
        boot = host.boot
        if boot is not None and boot.machine_is_gone:
            raise Violation("bound", f"the machine of {name} is gone since long, and it feeds on")
        asked = _is_requested(world, name)
        if not asked and node.tainted:
            raise Violation("progress", f"nobody requests {name}, and its Node is still tainted")
        if asked and not world.told.get(name):
            raise Violation("progress", f"{name} is asked for, and nothing is done about it")
        boots = world.time.now - host.down_since < MOST_BOOT_SECONDS
        if boot is not None:
            # Its kubelet has not looked yet, or a shutdown hangs that nothing guards.
            boots = world.time.now <= boot.since + LOOK_SECONDS or boot.rest_seconds is not None
        if not asked and not boots and not host.runs_workloads and not world.agent_says(name):
            raise Violation("progress", f"{name} is well, and runs nothing")


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
