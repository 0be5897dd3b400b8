"""A bed with two leaders, one of which has an accident while a host is remediated; and what must be so afterwards."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NODES, PODS, VOLUME_ATTACHMENTS, Resource
from pp_hostd.model.budget import Budget, parse_budget
from pp_hostd.model.condemnation import NotRequested, parse_condemnation
from pp_hostd.model.keys import (
    BUDGET,
    EXTERNAL_REMEDIATION,
    LEADER_USER,
    NAMESPACE,
    REQUESTED_AGAIN,
    backup_name,
    is_ours,
)
from pp_hostd.model.lease import LEASE
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import Armed
from tests.contract.objects import annotate, pod
from tests.harness.bed.cluster_bed import SETTINGS, ClusterBed
from tests.harness.bed.host import Host
from tests.harness.bed.leader import Leader
from tests.harness.cluster import Cluster
from tests.harness.eventually import eventually
from tests.leader.access.attempts import Attempt, World
from tests.scenarios.accidents import Accident, Accidents, Moment, Write
from tests.scenarios.stage import WATCHDOG_SECONDS, now

SHORT = {
    **SETTINGS,
    "watchdog.timeout_seconds": WATCHDOG_SECONDS,
    "leader.lease_seconds": 5.0,
    "leader.margin_seconds": 1.0,
    "leader.start_grace_seconds": 0.0,
    "leader.resets_per_hour": "1000",
}
HOSTS = 4
LEADERS, ELSEWHERE, VICTIM = ("worker-1", "worker-2"), "worker-3", "worker-4"
NODE_PARTS = {
    "metadata": {"labels": {"example.com/rack": "7"}, "annotations": {"example.com/owner": "storage"}},
    "spec": {
        "podCIDR": "10.1.4.0/24",
        "podCIDRs": ["10.1.4.0/24", "fd01:4::/64"],
        "taints": [{"key": "example.com/dedicated", "value": "storage", "effect": "NoSchedule"}],
    },
}
"""Parts that the victim's Node could lose."""
WORKLOAD, PLACE = "web-0", "default"
OVER_SECONDS = 60.0


class Scheme(NamedTuple):
    """How the victim is remediated: the settings api.machines and leader.strategy."""

    machines: str
    strategy: str

    def __str__(self) -> str:
        return f"{self.strategy}, machines: {self.machines}"

    @property
    def destructive(self) -> dict[Write, int]:
        """How often each of these happens, whatever else does."""
        deletes = int(self.strategy == "node-delete")
        freeing = {Write.DELETE_POD: 1, Write.DELETE_ATTACHMENT: 1}
        return {**freeing, Write.DELETE_NODE: deletes, Write.RECREATE: deletes}


class Trial:
    """A cluster with two leaders, whose accidents it is to survive one after the other; `on` is how to get one."""

    def __init__(self, scheme: Scheme, bed: ClusterBed, world: World) -> None:
        self._scheme, self._bed, self._world = scheme, bed, world
        self._leaders: dict[str, Leader] = {}
        """By the user as whom each speaks to the API."""
        self._accidents = Accidents(bed.contents.cluster, lambda user: self._leaders[user].kill())
        self._victim = bed.hosts[VICTIM]
        self._survived = 0

    @classmethod
    @contextlib.contextmanager
    def on(cls, cluster: Cluster, scheme: Scheme) -> Iterator[Trial]:
        settings = {**SHORT, "api.machines": scheme.machines, "leader.strategy": scheme.strategy}
        with contextlib.ExitStack() as stack:
            world = stack.enter_context(closing(World(cluster)))
            bed = stack.enter_context(ClusterBed.start(cluster, HOSTS, settings=settings))
            trial = cls(scheme, bed, world)
            stack.enter_context(trial._accidents)
            stack.callback(trial._end)
            trial._begin()
            yield trial

    def _begin(self) -> None:
        contents = self._bed.contents
        self._world.make(Attempt("delete", LEASES, LEASE, namespace=NAMESPACE))  # of whoever led here before
        for name in LEADERS:
            credentials = self._bed.hosts[name].etc / "leader.kubeconfig"
            contents.write_leader_kubeconfig(credentials, self._bed.api_url(1), _user(name))
        contents.patch(NODES, VICTIM, NODE_PARTS)
        self._bed.divert_api(self._accidents.port, LEADERS)
        self._bed.boot()
        eventually(lambda: all(map(self._is_well, self._bed.hosts.values())), "all hosts are well", 60)

    def _end(self) -> None:
        for leader in self._leaders.values():
            if leader.is_running():
                leader.kill()

    def survive(self, accident: Accident) -> float:
        """Remediate the victim with this accident on the way; how long it took."""
        since_at = now()
        try:
            self._remediate(accident)
        except (AssertionError, TimeoutError) as error:
            last = [f"{host.name}: {line}" for host in self._bed.hosts.values() for line in host.journal()[-15:]]
            raise AssertionError("\n".join([f"{accident}: {error}", *last])) from error
        return now() - since_at

    def _remediate(self, accident: Accident) -> None:
        self._start_leaders()
        before = self._found(NODES, VICTIM)
        self._start_workload(VICTIM)
        begun = self._begun()
        self._accidents.prepare(accident)
        self._request()
        if accident.write is Write.NOTE_REQUEST:
            eventually(lambda: self._is_noted(accident), "a request while the victim is off is noted", OVER_SECONDS)
        eventually(self._is_over, "the victim is well again", OVER_SECONDS)
        if accident.moment is Moment.LOST:
            assert self._leaders[self._accidents.struck].is_running()
        eventually(lambda: self._is_led_after(accident), "somebody leads")
        self._survived += 1
        self._check(before, self._found(NODES, VICTIM))
        # A leader that dies between the two can't tell what has begun, so that the next one may count it once more.
        assert self._begun() - begun in (1, 2)
        self._end_workload()

    def _request(self) -> None:
        self._bed.contents.patch(self._bed.contents.machines, VICTIM, annotate(**{EXTERNAL_REMEDIATION: ""}))

    def _begun(self) -> int:
        """How many of the victim's remediations the budget counts."""
        stored = self._found(CONFIG_MAPS, BUDGET, NAMESPACE)
        budget = Budget() if stored is None else parse_budget(stored["data"][BUDGET])
        assert isinstance(budget, Budget), budget
        return sum(each.node == VICTIM for each in budget.beginnings)

    def _is_noted(self, accident: Accident) -> bool:
        """Whether the victim, which stays off and is freed, was requested again, and whoever leads knows it."""
        self._replace_workload()
        if self._is_given_back():
            self._request()
        if not self._accidents.struck or not self._bears_note() or not self._is_led_after(accident):
            return False
        return "a request in the meantime begins nothing" in self._bed.contents.leader_status()

    def _is_led_after(self, accident: Accident) -> bool:
        """Whether somebody leads whom the accident has not killed."""
        killed = "" if accident.moment is Moment.LOST else self._leaders[self._accidents.struck].host.name
        return self._leads() not in (killed, "")

    def _is_over(self) -> bool:
        """Tells whether all is well again; until then boots the victim, and acts for controllers and kubelet."""
        if not self._victim.is_up():
            self._bed.boot(VICTIM)
        self._replace_workload()
        if not self._accidents.struck or not self._is_well(self._victim):
            return False
        if self._bears_note():
            self._bed.contents.report(VICTIM, ready=True)  # as its kubelet does
            return False
        return self._is_given_back()

    def _replace_workload(self) -> None:
        if self._found(PODS, WORKLOAD, PLACE) is None:
            self._start_workload(ELSEWHERE)

    def _is_given_back(self) -> bool:
        """Whether nobody requests the victim any more, and its Node is there without a backup."""
        condemnation = parse_condemnation(self._bed.contents.machine(VICTIM)["metadata"])
        backup = self._found(CONFIG_MAPS, backup_name(VICTIM), NAMESPACE)
        there = self._found(NODES, VICTIM) is not None
        return there and isinstance(condemnation, NotRequested) and backup is None

    def _bears_note(self) -> bool:
        node = self._found(NODES, VICTIM)
        return node is not None and REQUESTED_AGAIN in node["metadata"].get("annotations", {})

    def _is_well(self, host: Host) -> bool:
        """Whether it has promised, and its Node may be used."""
        found = self._found(NODES, host.name)
        node = None if found is None else parse_node(found)
        if not isinstance(node, Node) or node.tainted or node.unschedulable or node.freeing is not None:
            return False
        return isinstance(node.agent, Armed) and node.agent.boot == host.boot_id and host.kubelet_started()

    def _check(self, before: Json | None, after: Json | None) -> None:
        """Checks that the Node has all that it had, nothing happened twice, and nothing was freed before the reset."""
        assert before and after and _lasting(after) == _lasting(before), (before, after)
        done_at = {write: self._accidents.done_at[write] for write in self._scheme.destructive}
        assert {write: len(times) for write, times in done_at.items()} == self._scheme.destructive, done_at
        assert min(itertools.chain(*done_at.values())) > self._victim.down()["at"]
        made_anew = after["metadata"]["uid"] != before["metadata"]["uid"]
        assert made_anew == bool(done_at[Write.RECREATE])
        for host in self._bed.hosts.values():
            resets = [event["how"] for event in host.record.events("down")]
            assert resets == ["reboot"] * (self._survived if host is self._victim else 0), (host.name, resets)

    def _start_leaders(self) -> None:
        for name in LEADERS:
            leader = self._leaders.get(_user(name))
            if leader is None or not leader.is_running():
                self._leaders[_user(name)] = Leader(self._bed.hosts[name])

    def _leads(self) -> str:
        """On which host the leader runs, if there is one."""
        lease = self._found(LEASES, LEASE, NAMESPACE)
        return "" if lease is None else str(lease["spec"].get("holderIdentity", "")).partition("_")[0]

    def _start_workload(self, node: str) -> None:
        """As a StatefulSet's controller, the scheduler and the attacher do."""
        self._world.create(PODS, WORKLOAD, pod(WORKLOAD, nodeName=node), PLACE)
        spec = {"attacher": "example.com", "nodeName": node, "source": {"persistentVolumeName": WORKLOAD}}
        self._world.create(VOLUME_ATTACHMENTS, node, {"metadata": {"name": node}, "spec": spec})

    def _end_workload(self) -> None:
        """It runs elsewhere by now."""
        self._world.make(Attempt("delete", PODS, WORKLOAD, {"gracePeriodSeconds": 0}, PLACE))
        self._world.make(Attempt("delete", VOLUME_ATTACHMENTS, ELSEWHERE))

    def _found(self, kind: Resource, name: str, namespace: str | None = None) -> Json | None:
        reply = self._world.make(Attempt("get", kind, name, namespace=namespace))
        found: Json | None = reply.json() if reply.ok else None
        return found


def _user(host: str) -> str:
    return f"{LEADER_USER}:{host}"


def _lasting(node: Json) -> Json:
    """All that a Node is given back."""
    texts = {key: node["metadata"].get(key, {}) for key in ("labels", "annotations")}
    foreign = {key: {name: text for name, text in found.items() if not is_ours(name)} for key, found in texts.items()}
    taints = [taint for taint in node["spec"]["taints"] if not taint["key"].startswith("node.kubernetes.io/")]
    return {**foreign, "spec": {**node["spec"], "taints": taints}}
