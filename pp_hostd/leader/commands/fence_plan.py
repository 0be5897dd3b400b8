"""The methods by which a node would be fenced, as its configuration is now, and all that is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pp_hostd.frozen import frozen
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, NODE_REMEDY_CONFIGURATIONS, NODES, SECRETS
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.host import find_node
from pp_hostd.leader.remedies.node_fence.agent_jobs import by_executor
from pp_hostd.leader.remedies.node_fence.config_maps import CLUSTER, CONFIG, JOB, ConfigMapsSeen, FenceConfigMaps
from pp_hostd.leader.remedies.node_fence.configuration import (
    Configuration,
    Fences,
    RemedyRules,
    Threshold,
    parse_configuration,
)
from pp_hostd.leader.remedies.node_fence.dry_run import Ahead, agents_of, ahead, described, plain_secrets, twins
from pp_hostd.leader.remedies.node_fence.fence import Step
from pp_hostd.leader.remedies.node_fence.methods import OFF, AgentMethod, BuiltIn, JobMethod, Method
from pp_hostd.leader.remedies.node_fence.seen import ProvidersCache
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import filled

_BUILT_IN = {
    BuiltIn.MARK_UNSCHEDULABLE: "cordons the Node",
    BuiltIn.MARK_SCHEDULABLE: "uncordons the Node, if the leader has cordoned it",
    BuiltIn.RESTART_INSTANCE: "power-cycles its BareMetalHost if there is one, else has the host reset itself",
    BuiltIn.POWER_CYCLE: "power-cycles its BareMetalHost",
    BuiltIn.POISON_PILL: "has the host reset itself",
    BuiltIn.CLEAN_PODS: "succeeds only if its workloads were freed before",
    BuiltIn.TAINT: "cordons the Node, and taints it so that Kubernetes evicts its pods",
    BuiltIn.DRAIN: "has its pods evicted, as PodDisruptionBudgets allow",
    BuiltIn.KDUMP: "waits for a kernel that saves its dump",
    BuiltIn.CONFIRM: "waits for a person: pp-leader confirm-dead",
}
REMEDIES = "Remedies"
LADDER = {REMEDIES: Step.ISOLATION, Step.RECOVERY.value: Step.RECOVERY}


@frozen
class PlannedFlow:
    """The methods of a flow by step. `threshold` would begin it; empty for a flow that a person begins."""

    heading: str
    steps: Mapping[str, Ahead]
    configuration: str = ""
    threshold: str = ""


@frozen
class FencePlan:
    """`selecting` are the configurations that select the node, `unreadable` sentences about those that nobody can
    read. `agents` are the agents of each node that has a ConfigMap, and of this one. `lacking` are sentences about
    Secrets."""

    node: str
    provider: str
    config_maps: ConfigMapsSeen
    selecting: tuple[Configuration, ...]
    unreadable: tuple[str, ...]
    agents: Mapping[str, Ahead]
    lacking: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """For people, wrapped."""
        flows = list(self._flows())
        for flow in flows:
            yield filled(flow.heading)
            for called, found in flow.steps.items():
                yield from _step(called, found)
        for error in self._errors(flows):
            yield filled(f"ERROR: {error}.", indent=2)
        for warning in self._warnings(flows):
            yield filled(f"WARNING: {warning}.", indent=2)

    def as_json(self) -> dict[str, Any]:
        flows = list(self._flows())
        told = [
            {
                "configuration": each.configuration or None,
                "threshold": each.threshold or None,
                "steps": {called: _as_json(found) for called, found in each.steps.items()},
            }
            for each in flows
        ]
        return {"flows": told, "errors": self._errors(flows), "warnings": self._warnings(flows)}

    def _flows(self) -> Iterator[PlannedFlow]:
        """The lists that a person's request carries out, and what each threshold begins."""

        def found(step: Step, rules: RemedyRules | None, cause: Threshold | None = None) -> Ahead:
            return ahead(step, self.node, self.provider, self.config_maps, rules, cause)

        own = self.node in self.config_maps.of_nodes
        source = f"By ConfigMap {NAMESPACE}/{CONFIG}{self.node}" if own else "By default, since it has no fence-config"
        jobs = next((rules for _, rules, threshold in self._thresholds() if not threshold.remedies), None)
        where = ", agents in Jobs" if self.config_maps.numbers.executor == JOB else ""
        yield PlannedFlow(f"{source}, a flow would run now{where}:", {step.value: found(step, jobs) for step in Step})
        for configuration, rules, threshold in self._thresholds():
            then = "" if threshold.remedies else ", and the lists above are carried out"
            steps = LADDER if threshold.remedies else {}
            yield PlannedFlow(
                f"{configuration.key}: {threshold} begins a flow{then}.",
                {called: found(step, rules, threshold) for called, step in steps.items()},
                configuration.name,
                str(threshold),
            )

    def _errors(self, flows: list[PlannedFlow]) -> list[str]:
        found = (error for flow in flows for each in flow.steps.values() for error in each.errors)
        return list(dict.fromkeys([*self.errors(), *found, *self.lacking]))

    def _warnings(self, flows: list[PlannedFlow]) -> list[str]:
        found = (method for flow in flows for each in flow.steps.values() for method in each.methods)
        return [*_warnings([*self.agents[self.node].methods, *found]), *twins(self.node, self.agents)]

    def _thresholds(self) -> Iterator[tuple[Configuration, RemedyRules, Threshold]]:
        for each in self.selecting:
            if not isinstance(each.rules, Unreadable):
                for threshold in each.rules.thresholds:
                    yield each, each.rules, threshold

    def errors(self) -> Iterator[str]:
        """Those that are about no single step."""
        if isinstance(self.config_maps.cluster, Unreadable):
            yield f"ConfigMap {NAMESPACE}/{CLUSTER}: {self.config_maps.cluster.reason}"
        yield from self.unreadable
        yield from self.agents[self.node].errors
        in_jobs = by_executor(self.agents[self.node].methods, self.config_maps.numbers)
        if isinstance(in_jobs, Unreadable):
            yield f"{in_jobs.what}: {in_jobs.reason}"
        if len(self.selecting) > 1:
            names = " and ".join(each.key for each in self.selecting)
            yield f"{names} select this node, and so none of them begins a flow: let one alone select it"


def read_fence_plan(administrator: Administrator, name: str, must_exist: bool = True) -> FencePlan | str:
    """All of it; why there is none, where the Node need not exist and does not. Else a UserError with names like it."""
    node = find_node(administrator, name) if must_exist else administrator.get(NODES, name)
    if node is None:
        return f"There is no Node {name}: its NodeFence will be deleted."
    config_maps, providers = _config_maps(administrator), ProvidersCache()
    for each in administrator.list(NODES):
        providers.show(providers.keep(each))
    names = {name, *config_maps.of_nodes}
    agents = {each: agents_of(each, providers.seen.get(each, ""), config_maps) for each in names}
    selecting, unreadable = _configurations(administrator, node)
    lacking = tuple(_lacking(administrator, agents[name]))
    return FencePlan(name, providers.seen.get(name, ""), config_maps, selecting, unreadable, agents, lacking)


def _config_maps(administrator: Administrator) -> ConfigMapsSeen:
    cache = FenceConfigMaps()
    for each in administrator.list(CONFIG_MAPS, NAMESPACE):
        cache.show(cache.keep(each))
    return ConfigMapsSeen(cache.of_nodes, cache.templates, cache.cluster)


def _configurations(administrator: Administrator, node: Json) -> tuple[tuple[Configuration, ...], tuple[str, ...]]:
    labels = node["metadata"].get("labels") or {}
    selecting, unreadable = [], []
    for body in administrator.list(NODE_REMEDY_CONFIGURATIONS):
        found = parse_configuration(body)
        rules = found if isinstance(found, Unreadable) else found.rules
        if isinstance(found, Unreadable) or isinstance(rules, Unreadable):
            unreadable.append(f"{NODE_REMEDY_CONFIGURATIONS.kind} {body['metadata']['name']}: {rules}")
        elif rules.selector.matches(labels):
            selecting.append(found)
    return tuple(selecting), tuple(unreadable)


def _lacking(administrator: Administrator, found: Ahead) -> Iterator[str]:
    wanted = {
        (each, method.name) for method in found.methods if isinstance(method, AgentMethod) for each in method.secrets
    }
    for each, method in sorted(wanted, key=str):
        secret = administrator.get(SECRETS, each.name, NAMESPACE)
        if secret is None:
            yield f"there is no Secret {NAMESPACE}/{each.name}, which method {method} needs"
        elif each.key not in (secret.get("data") or {}):
            yield f"Secret {NAMESPACE}/{each.name} has no key {each.key}, which method {method} needs"


def _step(called: str, found: Ahead) -> Iterator[str]:
    yield f"  {called}{', one after the other' if called == REMEDIES else ''}:"
    for method in found.methods:
        yield filled(f"- {method.name}: {_does(method)}", indent=6, first_indent=4)
    if not found.methods:
        yield "    - no method that can be run" if found.errors else "    - no method"


def _as_json(found: Ahead) -> list[dict[str, str]]:
    return [{"name": each.name, "does": _does(each)} for each in found.methods]


def _does(method: Method) -> str:
    if isinstance(method, JobMethod):
        how = f"a Job, for at most {method.config.timeout_seconds} s"
    elif isinstance(method, AgentMethod):
        how = f"{method.action} by {method.agent} {described(method)}".rstrip()
        secrets = (f"{each.parameter} from Secret {NAMESPACE}/{each.name}, key {each.key}" for each in method.secrets)
        how = "; ".join((how, *secrets))
    else:
        return _BUILT_IN[method.built_in]
    return f"{how}; {_freed_by(method)}"


def _freed_by(method: AgentMethod | JobMethod) -> str:
    proves = method.action == OFF or isinstance(method, JobMethod)
    if method.fences is Fences.NONE or not proves:
        return "frees nothing"
    if method.fences is Fences.POWER:
        return "fences power: then all workloads are freed"
    return f"fences storage: then the workloads on {', '.join(method.storage)} are freed"


def _warnings(methods: list[Method]) -> list[str]:
    told = (
        f"{key} of method {method.name} is in a ConfigMap, where many can read it. Put it into a Secret of the "
        f"namespace {NAMESPACE}, and write {key}_secret=NAME/KEY in its place"
        for method in methods
        for key in plain_secrets(method)
    )
    return list(dict.fromkeys(told))
