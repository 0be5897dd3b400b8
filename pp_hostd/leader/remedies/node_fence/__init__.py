"""Node fences: a node is isolated, power-managed and recovered by the methods that its configuration names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from pp_hostd.frozen import replace
from pp_hostd.kube.resources import JOBS, NODE_FENCES, PODS, SECRETS, VOLUME_CLAIMS, VOLUMES, Resource
from pp_hostd.leader.caches import AGAIN_SECONDS, Watch
from pp_hostd.leader.interfaces import READ, Reading, Remedy, rule, sub_rule
from pp_hostd.leader.node_memory import NextAction, NodeMemory
from pp_hostd.leader.plan.valves import Valves, begun
from pp_hostd.leader.plan.view import Target, View
from pp_hostd.leader.remedies.node_fence.config_maps import ConfigMapsSeen, FenceConfigMaps
from pp_hostd.leader.remedies.node_fence.configuration import ConfigurationsSeen
from pp_hostd.leader.remedies.node_fence.delegation import delegates, has_claimed
from pp_hostd.leader.remedies.node_fence.fence import FENCE, NodeFence, NodeFences, Status
from pp_hostd.leader.remedies.node_fence.flow import at_work
from pp_hostd.leader.remedies.node_fence.memory import FenceMemory, after_look, after_news
from pp_hostd.leader.remedies.node_fence.plan import fenced
from pp_hostd.leader.remedies.node_fence.seen import FencesSeen, ProvidersCache
from pp_hostd.leader.remedies.node_fence.steps import BeginFence
from pp_hostd.leader.remedies.node_fence.survey import with_look_ahead
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.port import StepNews
from pp_hostd.model.condemnation import NotRequested
from pp_hostd.model.observed import Observed
from pp_hostd.model.settings import Settings


class NodeFenceRemedy(Remedy):
    """For nodes that have a NodeFence. Where a cluster has no such kind, the leader need have no right to read it."""

    name = "node-fence"
    needs_machines = False
    first_steps = (BeginFence,)

    def reading(self, settings: Settings) -> Reading:
        fences, config_maps, providers = NodeFences(), FenceConfigMaps(), ProvidersCache()
        watch = Watch((NODE_FENCES,), (fences,), unused=True, again_seconds=AGAIN_SECONDS)

        def part() -> FencesSeen:
            described = ConfigMapsSeen(config_maps.of_nodes, config_maps.templates, config_maps.cluster)
            return FencesSeen(fences.seen, described, providers.seen)

        return Reading(FENCE, (watch,), part, of_nodes=(providers,), of_config_maps=(config_maps,))

    def rights(self, machines: Resource) -> list[Json]:
        fences, evictions = rule(NODE_FENCES, f"{READ} create patch delete"), sub_rule(PODS, "eviction", "create")
        return [fences, rule(VOLUME_CLAIMS, "get"), rule(VOLUMES, "get"), evictions]

    def rights_at_home(self) -> list[Json]:
        return [rule(SECRETS, "get"), rule(JOBS, "get create")]

    def objections(self, kind: Resource, api_object: Json) -> Iterator[str]:
        if kind is NODE_FENCES:
            yield f"NodeFence {api_object['metadata']['name']} is there: let pp-leader finish, or delete it"

    def why_off(self, settings: Settings) -> str:
        """A machine's annotation, or a remediation object, can't request it: its request is a NodeFence."""
        return "no machine requests it: make a NodeFence for its Node instead"

    def within_reach(self, settings: Settings, observed: Observed) -> Collection[str]:
        used = observed.part(FencesSeen).fences or observed.part(ConfigurationsSeen).configurations
        return observed.nodes.keys() if used else ()

    def at_work_on(self, observed: Observed) -> Collection[str]:
        return {name for name, fence in observed.part(FencesSeen).fences.items() if at_work(fence)}

    def left_behind(self, observed: Observed, known: Iterable[Target]) -> Iterator[Target]:
        named = {target.node for target in known}
        for name, fence in observed.part(FencesSeen).fences.items():
            if name not in named and not fence.deleting:
                seen = observed.nodes.get(name)
                key = "" if seen is None or not isinstance(seen.machine_key, str) else seen.machine_key
                yield Target(name, key)

    def has_begun(self, view: View) -> bool:
        """Another remedy that has begun finishes first, and gives the Node back; one that is only requested waits for a
        flow that has begun, unless the flow itself has requested it, or waits for it."""
        fence = _fence(view)
        if fence is None or view.condemned is not None or view.licence is not None:
            return False
        if not at_work(fence) and not fence.progress.gave_up and _is_given_back(view, fence):
            return False
        if view.machine is None or isinstance(view.machine.condemnation, NotRequested):
            return True
        return at_work(fence) and not has_claimed(view, fence) and not delegates(fence)

    def suits(self, view: View) -> bool:
        return False

    def next_action(self, view: View, valves: Valves) -> NextAction | None:
        return fenced(view, valves)

    def has_marked(self, view: View) -> bool:
        fence = _fence(view)
        return fence is not None and at_work(fence) and not has_claimed(view, fence) and not delegates(fence)

    def after_view(self, view: View) -> NodeMemory:
        fence, part = _fence(view), view.memory.part(FenceMemory)
        if fence is None:
            return view.memory
        node = None if view.seen is None else view.seen.node
        boot, is_freeing = ("", False) if node is None else (node.boot, node.freeing is not None)
        found = after_look(part, fence, boot, is_freeing, view.now, view.term.draw.wallclock_seconds)
        # Another status: workloads that were freed before it are counted again.
        memory = view.memory if found is part else replace(view.memory, left=None)
        return memory.with_part(with_look_ahead(found, view.term, view.name))

    def after_news(self, settings: Settings, memory: NodeMemory, news: list[StepNews]) -> NodeMemory:
        return after_news(memory, news)

    def explained(self, view: View) -> list[str]:
        fence = view.observed.part(FencesSeen).fences.get(view.name)
        if fence is None:
            return []
        if fence.deleting:
            return [f"{fence.key} is deleted, and a finalizer keeps it. Until it is gone no flow begins."]
        progress = fence.progress
        at = f"{progress.step.value} {progress.status.value}"
        freed = ", and its workloads are freed" if progress.cleaned else ""
        return [f"{fence.key} is {progress.state.value} ({at}){freed}: {progress.reason or fence.cause}."]

    def prospect(self, view: View) -> str:
        return "carries out the NodeFence of this node"


def _is_given_back(view: View, fence: NodeFence) -> bool:
    """Whether another remedy has yet to give the Node back: there is a backup, or there are marks on a Node whose flow
    has not begun."""
    untouched = fence.progress.status is Status.NEW and not fence.progress.id  # one that begins again keeps its marks
    return view.seen is not None and (view.backup_seen is not None or (untouched and begun(view.seen)))


def _fence(view: View) -> NodeFence | None:
    """None for one that is deleted, also while a finalizer keeps it."""
    fence = view.observed.part(FencesSeen).fences.get(view.name)
    return None if fence is None or fence.deleting else fence


NODE_FENCE = NodeFenceRemedy()
