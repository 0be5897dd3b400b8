"""One host that may be condemned and its peers, honest and yet as bad for the leader as the rules allow; and the truth.

The host takes every proof that it can get, and lives until the last moment that its promise allows (rule 2).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.leader.steps.nodes import DeleteNode, MarkFreeing
from pp_hostd.leader.steps.port import Acknowledged, LeaderStep, NotAcknowledged, StepNews
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.keys import (
    AGENT,
    BACKUP_KEY,
    CONDEMNATION_ID,
    EXTERNAL_REMEDIATION,
    FREED,
    PREFIX,
    REPLACES,
    backup_name,
)
from pp_hostd.model.promise import AgentRecord, Armed, Committed, GateClosed, GateKind, WatchdogKind, Withdrawn
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member
from pp_hostd.model.settings import Settings
from tests.leader.virtual_cluster import SINCE, VirtualCluster

HOST = "x"
PEERS = ("a", "b", "c", "d")
MACHINE_OF_NODE = "machine.openshift.io/machine"
OTHERS_ID = 7
LABELS = {"zone": "north", "kubernetes.io/hostname": "x"}
TAINT = {"key": "dedicated", "value": "storage", "effect": "NoSchedule"}
SPEC = {"podCIDRs": ["10.0.0.0/24"], "providerID": "metal://x"}


@dataclass
class Peer:
    """`knows` is the condemnation that it remembers; a token stays for as long as it does not forget."""

    knows: int | None = None
    lives: int = 1
    reads: bool = True
    reachable: bool = True

    def forget(self) -> None:
        self.knows, self.lives = None, self.lives + 1


class FreedWhileRunning(AssertionError):
    """The promise of it all is broken: there may be two copies."""


class World(VirtualCluster):
    """The cluster, the host `x` with its workloads, and its peers. `promise` is what binds the host in this boot."""

    def __init__(
        self,
        machines: str = "openshift",
        settings: Settings | None = None,
        gate: GateKind = GateKind.HOLD,
        peers: tuple[str, ...] = PEERS,
        registry: Registry = REGISTRY,
    ) -> None:
        super().__init__(machines, settings, registry)
        self.gate, self.boot = gate, 1
        self.peers = {name: Peer() for name in peers}
        self.machine_key = HOST if machines == "node" else f"machines/{HOST}"
        for number, name in enumerate((HOST, *peers)):
            self.add_node(name, f"10.0.{number // 250}.{number % 250 + 1}")
        self.enrol((HOST, *peers))
        self.driver.turn()  # which publishes the roster
        self.promise = self.a_promise()
        self.running, self.proof_at, self.lifted_ids = True, self.now, {0}
        self.committed_at: float | None = None
        self.state(self.promise)
        self.pods[HOST] = 2
        self.a_term("a")

    def add_node(self, name: str, address: str, **labels: str) -> None:
        machine_key = f"machines/{name}"
        metadata: dict[str, Any] = {"name": name, "uid": f"node-{name}", "labels": {**LABELS, **labels}}
        metadata["annotations"] = {MACHINE_OF_NODE: machine_key, "team": "blue"}
        status = {"addresses": [{"type": "InternalIP", "address": address}]}
        self.api.put("nodes", name, {"metadata": metadata, "spec": {**SPEC, "taints": [TAINT]}, "status": status})
        if self.api.machines != "node":
            machine = {"name": name, "namespace": "machines", "uid": f"machine-{name}"}
            self.api.put("machines", machine_key, {"metadata": machine, "status": {"nodeRef": {"name": name}}})

    def a_promise(self, **changes: Any) -> Armed:
        machine, roster = self.machine(self.machine_key), self.observed().roster
        assert machine is not None and roster is not None and not isinstance(roster.roster, Unreadable)
        watchdog = WatchdogKind.HARDWARE
        wanted = Armed(f"boot-{self.boot}", 22.0, 10.0, watchdog, self.gate, machine.uid, roster.roster.version)
        return replace(wanted, **changes)

    # Actions of the host

    def state(self, record: AgentRecord | None) -> None:
        """The agent's record, if there is a Node to bear it."""
        if self.api.get("nodes", HOST) is not None:
            self.annotate_node(HOST, **{AGENT: None if record is None else record.render()})

    def live(self) -> None:
        """Lets the host find proof, or resets it if its time is over; does nothing if its workloads do not run."""
        if not self.running:
            return
        promise = self.promise
        if self.committed_at is not None:
            dead_at = self.committed_at + promise.watchdog_timeout_seconds
        else:
            if self._finds_proof():
                self.proof_at = self.now
            dead_at = self.proof_at + promise.self_timeout_seconds + 2 * promise.watchdog_timeout_seconds
        if self.now >= dead_at:
            self.reset()

    def reset(self) -> None:
        self.running, self.committed_at, self.boot = False, None, self.boot + 1

    def commit(self) -> None:
        """It reads that it is condemned, and says so with its last breath."""
        condemned = self.condemnation()
        if self.running and self.committed_at is None and isinstance(condemned, Condemned):
            self.committed_at = self.now
            self.state(Committed(self.promise, condemned.id))

    def boots(self) -> None:
        """The agent comes up in a boot in which nothing was started."""
        if not self.running:
            self.state(GateClosed(f"boot-{self.boot}", self.gate))

    def comes_back(self) -> bool:
        """Rule 6: not condemned, no marker, the promise stored; only then do workloads start."""
        node = self.api.get("nodes", HOST)
        free = isinstance(self.condemnation(), (NotRequested, Requested))
        if self.running or not free or node is None or self.node(HOST).node.freeing is not None:
            return False
        self.boots()
        self.promise = self.a_promise()
        self.state(self.promise)
        self.running, self.proof_at = True, self.now
        return True

    def promises(self, **changes: Any) -> None:
        """Rule 5: stored, then used; and by a host that has not decided to reset."""
        undecided = self.committed_at is None and self.now < self.proof_at + self.promise.self_timeout_seconds
        if self.running and undecided and self.api.get("nodes", HOST) is not None:
            self.promise = replace(self.promise, **changes)
            self.state(self.promise)

    def withdraws(self) -> None:
        self.state(Withdrawn(f"boot-{self.boot}"))

    def kubelet_renews(self) -> None:
        self.leases[HOST] = f"renewed at {self.now}"

    def kubelet_registers(self) -> None:
        """A restarted kubelet makes its Node, if that is missing, with its own labels only."""
        if self.api.get("nodes", HOST) is None:
            ready, address = {"type": "Ready", "status": "True"}, {"type": "InternalIP", "address": "10.0.0.1"}
            status = {"addresses": [address], "conditions": [ready]}
            metadata = {"name": HOST, "labels": {"kubernetes.io/hostname": "x"}}
            self.api.put("nodes", HOST, {"metadata": metadata, "status": status})

    def kubelet_reports(self, ready: bool = True) -> None:
        """On the Node that there is."""
        status = {"conditions": [{"type": "Ready", "status": str(ready)}]}
        self.api.patch("nodes", HOST, {"status": status})

    # Actions of others

    def condemn(self) -> None:
        """As another leader did."""
        metadata = Condemned(OTHERS_ID, SINCE).render()
        self.api.patch(self.api.machine_kind, self.machine_key, {"metadata": metadata})

    def request(self, machine_key: str = "") -> None:
        super().request(machine_key or self.machine_key)

    def lift(self, machine_key: str = "") -> None:
        super().lift(machine_key or self.machine_key)

    def remove_annotation(self) -> None:
        """The obvious way for a person to take a request back: label and id stay."""
        self.annotate_machine(self.machine_key, **{EXTERNAL_REMEDIATION: None})

    def labelled(self) -> bool:
        machine = self.machine(self.machine_key)
        return machine is not None and machine.labelled

    def lapse(self) -> None:
        """Lifted for a moment, and the very same value is put back; the host takes the chance."""
        found = self.api.get(self.api.machine_kind, self.machine_key)
        assert found is not None
        metadata = found["metadata"]
        before = {"annotations": metadata.get("annotations"), "labels": metadata.get("labels")}
        self.lift()
        self.live()
        self.api.patch(self.api.machine_kind, self.machine_key, {"metadata": before})

    def garble(self) -> None:
        self.annotate_machine(self.machine_key, **{EXTERNAL_REMEDIATION: "yesterday"})

    # Facts

    def condemnation(self, machine_key: str = "") -> object:
        machine = self.machine(machine_key or self.machine_key)
        return None if machine is None else machine.condemnation

    def given_back(self) -> bool:
        """Nothing of the leader's work is left to be seen."""
        node = self.api.get("nodes", HOST)
        backups = [name for name in self.api.objects["config maps"] if name.startswith("backup-")]
        return node is not None and not backups and not self.marks(node) and self.uncondemned()

    def licensed(self) -> bool:
        """Whether a backup stands that counts as the leader's own deletion once its Node is missing."""
        return BACKUP_KEY in (self.api.get("config maps", backup_name(HOST)) or {"data": {}})["data"]

    def marks(self, node: dict[str, Any]) -> list[str]:
        """Our marks on the Node, but for those that stay."""
        stay = {AGENT, FREED, REPLACES, CONDEMNATION_ID}
        keys = [*(node["metadata"].get("annotations") or {}), *(node["metadata"].get("labels") or {})]
        taints = [taint["key"] for taint in node.get("spec", {}).get("taints", ())]
        return [key for key in (*keys, *taints) if key.startswith(PREFIX) and key not in stay]

    def uncondemned(self) -> bool:
        return isinstance(self.condemnation(), NotRequested)

    def steps(self, *kinds: type[LeaderStep]) -> list[LeaderStep]:
        """Returns the steps that took effect, of these kinds if some are named."""
        return [remedy for _, remedy in self.done if not kinds or isinstance(remedy, kinds)]

    def at(self, kind: type[LeaderStep]) -> float:
        """When the last step of this kind took effect."""
        return next(moment for moment, remedy in reversed(self.done) if isinstance(remedy, kind))

    def restored(self) -> bool:
        """Whether the Node has all that it ever had, and can be used."""
        node = self.api.get("nodes", HOST) or {}
        metadata, spec = node.get("metadata", {}), node.get("spec", {})
        has = metadata.get("labels") == LABELS and metadata["annotations"].get("team") == "blue"
        return has and spec == {**SPEC, "taints": [TAINT]} and self.node(HOST).machine_key == self.machine_key

    def ready(self) -> str:
        """Returns the status of the Node's Ready condition; empty if it has none."""
        conditions = ((self.api.get("nodes", HOST) or {}).get("status") or {}).get("conditions") or ()
        return next((str(each["status"]) for each in conditions if each["type"] == "Ready"), "")

    def held(self, seconds: float = 300.0) -> str:
        """Lets so much time pass, checks that nothing is freed, and returns the leader's sentences about the host."""
        freed = len(self.steps(DeleteNode, MarkFreeing))
        self.spend(seconds)
        assert len(self.steps(DeleteNode, MarkFreeing)) == freed
        return self.next_action()

    def next_action(self, name: str = HOST) -> str:
        """Returns the leader's sentences about this node; empty if none."""
        return "; ".join(next_action.sentence for next_action in self.driver.next_actions if next_action.node == name)

    def _finds_proof(self) -> bool:
        """Whether any read, any peer, or too many peers that say nothing of use, could give it one (rules 1, 3, 4)."""
        machine = self.machine(self.machine_key)
        condemnation = machine.condemnation if machine and machine.uid == self.promise.machine_uid else None
        if isinstance(condemnation, (NotRequested, Requested)):
            self.lifted_ids.add(condemnation.last_id)
            return True
        roster = self.observed().roster
        assert roster is not None and not isinstance(roster.roster, Unreadable)
        electorate = roster.roster.as_of(self.promise.roster_version)
        assert not isinstance(electorate, Unreadable)
        others = [self.peers.get(name, Peer()) for name in electorate.names if name != HOST]
        errors = sum(peer.knows is None or peer.knows in self.lifted_ids for peer in others)
        return 2 * (errors + 1) > electorate.n

    def answers(self, node: str, machine_key: str, peers: tuple[Member, ...], asked_at: float) -> Iterator[StepNews]:
        for member in peers:
            if node != HOST:  # of all other hosts everybody knows
                known = self.condemnation(machine_key)
                condemnation_id = known.id if isinstance(known, Condemned) else 0
                yield Acknowledged(node, member.name, condemnation_id, "life-1", asked_at)
                continue
            peer = self.peers.get(member.name, Peer(reachable=False))
            if not peer.reachable:
                yield NotAcknowledged(node, member.name, asked_at, answered=False, sentence="no answer in time")
                continue
            condemned = self.condemnation()
            if peer.reads and isinstance(condemned, Condemned):
                peer.knows = condemned.id
            elif peer.reads and peer.knows is not None:
                peer.forget()
            if peer.knows is None:
                said = "it says healthy" if peer.reads else "it says api-error"
                yield NotAcknowledged(node, member.name, asked_at, answered=True, sentence=said)
            else:
                yield Acknowledged(node, member.name, peer.knows, f"life-{peer.lives}", asked_at)

    def frees(self, node: str) -> None:
        self.live()
        if node == HOST and self.running:
            raise FreedWhileRunning(f"at {self.now}, by {self.driver.next_actions}")
