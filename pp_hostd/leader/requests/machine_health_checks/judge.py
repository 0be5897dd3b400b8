"""The judgement of one health check on all Machines that it selects: pure, with both clocks as arguments."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import Callable, Optional

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.facts.ages import Ages
from pp_hostd.leader.facts.limits import render_duration
from pp_hostd.leader.facts.nodes import READY, NodeCondition, NodeFacts
from pp_hostd.leader.requests.health_checks.check import UnhealthyCondition
from pp_hostd.leader.requests.health_checks.judge import HEALTHY, LATER_SECONDS, Health, Opinion
from pp_hostd.leader.requests.machine_health_checks.check import MachineHealthCheck
from pp_hostd.leader.requests.machine_health_checks.facts import FAILED, ClusterFacts, MachineFacts, MachineHealthSeen
from pp_hostd.leader.requests.machine_health_checks.rules import Rules
from pp_hostd.model.keys import RECREATED

REMEDIATE, NODE_GONE, STARTUP = "HasRemediateAnnotation", "NodeDeleted", "NodeStartupTimeout"
SICK_NODE, SICK_MACHINE, MACHINE_FAILED = "UnhealthyNode", "UnhealthyMachine", "MachineFailed"
OLDER_REASONS = {REMEDIATE: "HasRemediateMachineAnnotation", NODE_GONE: "NodeNotFound"}
"""Reasons for which older lists of conditions have another word."""
JOINT = "; "
"""Between the sentences of an opinion."""


@frozen
class Target:
    """A Machine that a health check selects, and its Node. `node` is None if nodeRef names none, or the Node is missing
    or can't be read; `node_exists` tells. `held`: a remediation of this leader has the Machine;
    `requested`: one is requested, and has not begun. `released_at` is when the last one had ended, as far as this
    leader knows."""

    machine: MachineFacts
    node: NodeFacts | None = None
    node_exists: bool = False
    cluster: ClusterFacts | None = None
    held: bool = False
    requested: bool = False
    released_at: float = -math.inf


@frozen
class Judgement:
    """The opinion on each Machine that the check selects, by its key."""

    targets: Mapping[str, Target] = field(default_factory=dict)
    opinions: Mapping[str, Opinion] = field(default_factory=dict)

    def of(self, health: Health) -> list[str]:
        return sorted(key for key, said in self.opinions.items() if said.health is health)

    @property
    def due_at(self) -> float:
        return min((each.due_at for each in self.opinions.values()), default=math.inf)


@frozen
class Remediations:
    """The Machines, by key, and the Nodes, by name, that a remediation of this leader has, and those for which one is
    only requested. `released` says since when others no longer are had."""

    held: frozenset[str] = frozenset()
    requested: frozenset[str] = frozenset()
    released: Mapping[str, float] = field(default_factory=dict)

    def has(self, machine: MachineFacts) -> bool:
        return machine.key in self.held or machine.node in self.held


def targets(
    check: MachineHealthCheck, rules: Rules, seen: MachineHealthSeen, remediations: Remediations
) -> Iterable[Target]:
    cluster = seen.clusters.get(check.cluster) if check.spelling.is_cluster_api else None
    for key, machine in seen.machines.items():
        if machine.namespace != check.namespace or not rules.selector.matches(machine.labels):
            continue
        if check.spelling.is_cluster_api and machine.skipped:
            continue
        yield Target(
            machine,
            seen.nodes.get(machine.node),
            node_exists=machine.node in seen.node_names,
            cluster=cluster,
            held=remediations.has(machine),
            requested=key in remediations.requested,
            released_at=remediations.released.get(key, -math.inf),
        )


def judged(check: MachineHealthCheck, rules: Rules, selected: Iterable[Target], ages: Ages) -> Judgement:
    found = {each.machine.key: each for each in selected}
    cluster_api = check.spelling.is_cluster_api
    opinions = {key: opinion(rules, each, ages, cluster_api=cluster_api) for key, each in found.items()}
    return Judgement(found, opinions)


def opinion(rules: Rules, target: Target, ages: Ages, *, cluster_api: bool) -> Opinion:
    """A Machine that this leader has under remediation is neither healthy nor unhealthy, whatever its Node says: its
    Node is missing for a while, and nobody else may touch the Machine. One that is only requested may be healthy again
    before anything begins."""
    if target.held:
        return Opinion(Health.PENDING, "Remediating", "a remediation of this leader has it")
    said = _at_once(target, cluster_api=cluster_api)
    if said is None:
        said = _in_time(rules, target, ages, cluster_api=cluster_api)
    if target.requested and said.health is Health.UNHEALTHY:
        return Opinion(Health.PENDING, "Remediating", f"its remediation is requested: {said.sentence}")
    return said


def _in_time(rules: Rules, target: Target, ages: Ages, *, cluster_api: bool) -> Opinion:
    """After a remediation its host has as long to come back as a new one has to come up."""
    said = _by_conditions(rules, target, ages, cluster_api=cluster_api)
    if said.health is not Health.UNHEALTHY or target.released_at == -math.inf:
        return said
    if not rules.startup_seconds:
        told = f"{said.sentence}; its remediation is over, and its host may take as long as it likes to come back"
        return Opinion(Health.PENDING, "NodeStartup", told)
    back_by_at = target.released_at + rules.startup_seconds
    if ages.now <= back_by_at:
        told = f"{said.sentence}; its remediation is over, and its host has {rules.startup_seconds:g} s to come back"
        return Opinion(Health.PENDING, "NodeStartup", told, back_by_at + LATER_SECONDS)
    return replace(said, not_back=said.not_back or _is_still_away(target, ages))


def _is_still_away(target: Target, ages: Ages) -> bool:
    """Whether its Node has not been Ready since its remediation ended."""
    node = target.node
    ready = None if node is None else node.condition(READY)
    if node is None or ready is None or ready.status == "True":
        return False
    age_seconds = ages.age_seconds(node.uid, READY, ready.status, ready.since_wallclock)
    return age_seconds >= ages.now - target.released_at


def _by_conditions(rules: Rules, target: Target, ages: Ages, *, cluster_api: bool) -> Opinion:
    """The Machine's own conditions come first, and count without a Node, too."""
    machine, cluster = target.machine, target.cluster
    if cluster_api and not _has_begun(target):
        told = "its Cluster is not ready yet"
        if cluster is None or not cluster.initialized:
            return Opinion(Health.PENDING, "NodeStartup", told)
        return _unless_gone(rules, target, told, cluster_api=True)
    said = _by_node(rules, target, ages, cluster_api=cluster_api)
    if target.node is not None and _is_recreated(target.node):
        return said
    sick, pending, due_at = _matching(rules.machine_conditions, machine.uid, machine.condition, "Machine", ages)
    if sick:
        of_node = [said.sentence] if said.health is Health.UNHEALTHY else []
        return Opinion(Health.UNHEALTHY, SICK_MACHINE, JOINT.join([*sick, *of_node]))
    if pending and said.health is not Health.UNHEALTHY:
        told = JOINT.join(filter(None, [*pending, said.sentence]))
        return Opinion(Health.PENDING, "Pending", told, min(due_at, said.due_at))
    return said


def _by_node(rules: Rules, target: Target, ages: Ages, *, cluster_api: bool) -> Opinion:
    machine = target.machine
    if machine.node and not target.node_exists:
        return Opinion(Health.UNHEALTHY, NODE_GONE, f"Node {machine.node} has been deleted")
    if not machine.node:
        since_wallclock = _started_wallclock(target) if cluster_api else machine.updated_wallclock
        return _starting(rules, target, since_wallclock, "it has no Node yet", ages)
    if target.node is None:
        return Opinion(Health.PENDING, "Unreadable", f"its Node {machine.node} can't be read")
    said = _by_node_conditions(rules, target, target.node, ages)
    return _unless_gone(rules, target, "", cluster_api=cluster_api) if said is None else said


def _at_once(target: Target, *, cluster_api: bool) -> Opinion | None:
    """Whether its own marks make it unhealthy."""
    if cluster_api and target.machine.remediate:
        told = "marked for remediation via cluster.x-k8s.io/remediate-machine annotation"
        return Opinion(Health.UNHEALTHY, REMEDIATE, told)
    if not cluster_api and target.machine.phase == FAILED:
        return Opinion(Health.UNHEALTHY, MACHINE_FAILED, "its phase is Failed")
    return None


def _has_begun(target: Target) -> bool:
    """Whether its Cluster is so far that a Node may be expected. The first control-plane Machine comes before."""
    cluster = target.cluster
    if cluster is None or not cluster.infrastructure:
        return False
    return cluster.initialized or target.machine.control_plane


def _started_wallclock(target: Target) -> float:
    cluster, machine = target.cluster, target.machine
    ready = () if cluster is None else (cluster.infrastructure_wallclock, cluster.initialized_wallclock)
    return max(machine.created_wallclock, machine.infrastructure_wallclock, *ready)


def _starting(rules: Rules, target: Target, since_wallclock: float, sentence: str, ages: Ages) -> Opinion:
    """The Node has nodeStartupTimeout since then to report."""
    if not rules.startup_seconds or since_wallclock == math.inf:
        return Opinion(Health.PENDING, "NodeStartup", sentence)
    age_seconds = ages.age_seconds(target.machine.uid, "", "", since_wallclock)
    if age_seconds > rules.startup_seconds:
        told = f"Node failed to report startup in {render_duration(rules.startup_seconds)}"
        return Opinion(Health.UNHEALTHY, STARTUP, told)
    due_at = ages.now + rules.startup_seconds - age_seconds + LATER_SECONDS
    return Opinion(Health.PENDING, "NodeStartup", sentence, due_at)


def _is_recreated(node: NodeFacts) -> bool:
    """Whether its host has not reported since the leader recreated it."""
    ready = node.condition(READY)
    return ready is not None and ready.reason == RECREATED


def _by_node_conditions(rules: Rules, target: Target, node: NodeFacts, ages: Ages) -> Opinion | None:
    """None if none of them is against it."""
    ready = node.condition(READY)
    if ready is not None and _is_recreated(node):
        told = "its host has not come back since it was remediated"
        said = _starting(rules, target, ready.since_wallclock, told, ages)
        return replace(said, not_back=said.health is Health.UNHEALTHY)
    sick, pending, due_at = _matching(rules.conditions, node.uid, node.condition, "Node", ages)
    if sick:
        return Opinion(Health.UNHEALTHY, SICK_NODE, JOINT.join(sick))
    if pending:
        return Opinion(Health.PENDING, "Pending", JOINT.join(pending), due_at)
    if ready is None:
        return Opinion(Health.PENDING, "NodeStartup", "its Node has never reported whether it is ready")
    return None


_Find = Callable[[str], Optional[NodeCondition]]
_Matching = tuple[list[str], list[str], float]
"""Sentences about conditions that last too long, about others that match, and when the first of these does."""


def _matching(rules: Iterable[UnhealthyCondition], uid: str, condition: _Find, called: str, ages: Ages) -> _Matching:
    sick: list[str] = []
    pending: list[str] = []
    due_at = math.inf
    for each in rules:
        found = condition(each.type)
        if found is None or found.status != each.status:
            continue
        age_seconds = ages.age_seconds(uid, each.type, found.status, found.since_wallclock)
        told = f"Condition {each.type} on {called} is reporting status {each.status} with reason {found.reason}"
        if age_seconds > each.timeout_seconds:
            sick.append(f"{told} for more than {render_duration(each.timeout_seconds)}")
        else:
            pending.append(told)
            due_at = min(due_at, ages.now + each.timeout_seconds - age_seconds + LATER_SECONDS)
    return sick, pending, due_at


def _unless_gone(rules: Rules, target: Target, sentence: str, *, cluster_api: bool) -> Opinion:
    """Healthy, if its Node exists and nobody deletes the Machine. OpenShift's own request by annotation is not taken
    back; one on behalf of a remediation object is, by its deletion."""
    if target.machine.deleting:
        return Opinion(Health.PENDING, "Deleting", "it is being deleted")
    if target.machine.annotated and not cluster_api and rules.template is None:
        return Opinion(Health.PENDING, "Remediating", "its remediation is requested")
    return HEALTHY if target.node is not None else Opinion(Health.PENDING, "NodeStartup", sentence)
