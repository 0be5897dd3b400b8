"""Methods beside fence agents: Jobs of a ladder, other remedies, a person's word; and whatever people do meanwhile."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, Callable

import pytest

from pp_hostd.kube.resources import NODE_FENCES
from pp_hostd.leader.plan.plan import plan
from pp_hostd.leader.remedies.node_fence.fence import fence_name
from pp_hostd.leader.remedies.node_fence.steps import BeginFence
from pp_hostd.leader.steps.nodes import MarkFreeing, Uncordon, cordon, mark_freeing
from pp_hostd.model.condemnation import Confirmation
from pp_hostd.model.control import Pause
from pp_hostd.model.keys import CONFIRMED_DEAD, FLOW, PAUSED_NODE
from tests.leader.fence.fence_world import IPMI, MOMENT, FenceWorld
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST, World

POD = {"spec": {"containers": [{"name": "main", "image": "example.com/repair:1"}]}}
REPAIR = {"name": "repair", "podTemplate": POD, "timeoutSeconds": 60}
TERMINATE = {"name": "terminate", "podTemplate": POD, "fences": "power"}
LADDER: dict[str, Any] = {
    "remedy1": {"name": "repair", "period": "3m"},
    "remedy2": {"name": "terminate", "clean-resource": True},
    "recovery": {"name": "mark-schedulable"},
    "remedyConfigs": [REPAIR, TERMINATE],
}


def a_world(**cluster: str) -> FenceWorld:
    world = FenceWorld()
    world.configure_cluster(**{"grace_timeout": "0s", "boot_timeout": "120s", **cluster})
    return world


def climbing() -> FenceWorld:
    world = a_world()
    world.cut_off()
    world.threshold("Ready", "Unknown", **LADDER)
    world.run(lambda: bool(world.jobs()))
    return world


def test_the_next_rung_is_tried_only_if_the_first_has_not_helped_within_its_period() -> None:
    world = climbing()
    assert [job["metadata"]["name"].rpartition("-")[0] for job in world.jobs()] == ["repair"]
    world.end_job()
    ended_at = world.now
    world.run(lambda: len(world.jobs()) == 2)
    assert world.now - ended_at >= 180.0
    assert world.pods[HOST] == 2, "a Job that declares nothing proves nothing"


def test_a_rung_that_has_helped_is_followed_by_recovery() -> None:
    world = climbing()
    world.end_job()
    world.spend(10.0)
    world.come_back()
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert len(world.jobs()) == 1
    marks = world.api.objects["nodes"][HOST]["metadata"]["annotations"]
    assert marks["pp-hostd.io/remediation-podname"] == world.jobs()[0]["metadata"]["name"]
    world.run(lambda: world.found() is None)
    left = world.api.objects["nodes"][HOST]["metadata"].get("annotations", {})
    assert not [key for key in left if "remediation-" in key]


def test_a_rung_that_fences_power_frees_what_it_is_to_clean() -> None:
    world = climbing()
    world.end_job("Failed")
    world.run(lambda: len(world.jobs()) == 2, 3600)
    assert world.jobs()[1]["metadata"]["name"].startswith("repair"), "it is tried again first"
    for _ in range(2):
        world.end_job("Failed")
        before = len(world.jobs())
        world.run(lambda before=before: len(world.jobs()) > before, 3600)  # type: ignore[misc]
    assert world.jobs()[-1]["metadata"]["name"].startswith("terminate")
    world.switch(False)
    world.end_job()
    world.run(world.free)


def test_a_job_runs_once_with_a_deadline_and_never_on_the_node_itself() -> None:
    (job,) = climbing().jobs()
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (0, 60)
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["serviceAccountName"]) == ("Never", "node-fence")
    terms = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": [HOST]}]}]
    assert {"name": "NODE_NAME", "value": HOST} in pod["containers"][0]["env"]


def test_a_new_leader_follows_the_same_job() -> None:
    world = climbing()
    world.a_term("b")
    world.api.new_leader()
    world.spend(60.0)
    assert len(world.jobs()) == 1
    world.end_job()
    world.run(lambda: len(world.jobs()) == 2)


def test_a_job_that_has_ended_while_nobody_led_is_named_all_the_same() -> None:
    """Its leader died before it could name the Job in the NodeFence."""
    world = climbing()
    (job,) = world.jobs()
    world.end_job()
    world.a_term("b")
    world.api.new_leader()
    world.spend(60.0)
    fence = world.found()
    assert fence is not None
    assert fence.progress.jobs == (job["metadata"]["name"],)
    assert fence.progress.methods[-1].job == job["metadata"]["name"]
    assert len(world.jobs()) == 1


def test_a_job_that_is_deleted_has_failed() -> None:
    world = climbing()
    world.spend(10.0)
    world.api.put("jobs", next(iter(world.api.objects["jobs"])), None)
    world.run(lambda: "was deleted before it had ended" in str(world.found()))


def test_a_job_that_never_ends_frees_nothing() -> None:
    world = climbing()
    world.spend(600.0)
    assert world.pods[HOST] == 2
    assert len(world.jobs()) == 1


class ArmedWorld(FenceWorld):
    """An agent runs on the host, and keeps its promise."""

    def __init__(self) -> None:
        super().__init__()
        self.promise = self.a_promise()
        self.state(self.promise)

    def live(self) -> None:
        World.live(self)
        if self.running:
            self.renew()


def test_the_default_is_the_poison_pill_which_has_its_own_certainty() -> None:
    world = ArmedWorld()
    world.configure_cluster(grace_timeout="0s", boot_timeout="120s")
    world.report(HOST, "Unknown")
    world.reached = False
    world.fence()
    world.run(world.free)
    assert not world.running
    assert [type(step).__name__ for _, step in world.done].count("Condemn") == 1
    assert [type(step).__name__ for _, step in world.done].count("SpendBudget") == 1, "it is counted once"
    world.run(lambda: world.comes_back())
    world.report(HOST, "True")
    world.run(lambda: world.is_at("Recovery", "Final"))
    world.run(lambda: world.found() is None)
    assert world.given_back()


def test_a_remediation_that_somebody_else_has_requested_before_is_carried_out() -> None:
    world = ArmedWorld()
    world.configure_cluster(grace_timeout="0s", boot_timeout="120s")
    world.report(HOST, "Unknown")
    world.reached = False
    world.fence()
    world.run(lambda: world.is_at("Power-Management", "New"))
    world.request()
    world.run(world.free)
    assert not world.running


def test_a_persons_word_is_awaited_and_then_counts() -> None:
    world = a_world()
    world.configure("mark-unschedulable", "confirm", "mark-schedulable")
    world.cut_off()
    world.fence()
    world.run(lambda: "waits for a person" in world.next_action())
    world.spend(300.0)
    assert world.pods[HOST] == 2
    world.switch(False)
    world.annotate_node(HOST, **{CONFIRMED_DEAD: Confirmation("anna", SINCE, "boot-1").render()})
    world.run(world.free)


def ipmi(**cluster: str) -> FenceWorld:
    world = a_world(**cluster)
    world.by_ipmi()
    world.cut_off()
    world.fence()
    return world


def delete(world: FenceWorld) -> None:
    world.api.put(NODE_FENCES.plural, fence_name(HOST), None)


def delete_but_keep(world: FenceWorld) -> None:
    """A finalizer does."""
    world.edit(metadata={"deletionTimestamp": MOMENT, "finalizers": ["example.com/keep"]})


@pytest.mark.parametrize("deleted", [delete, delete_but_keep])
@pytest.mark.parametrize("steps", range(30))
def test_a_fence_that_is_deleted_by_hand_frees_nothing_more_and_leaves_no_marks(
    steps: int, deleted: Callable[[FenceWorld], None]
) -> None:
    world = ipmi()
    world.spend(600.0, lambda: bool(world.found()) and len(world.done) >= steps)
    deleted(world)
    world.run(lambda: not world.under_way)
    left = world.pods[HOST]
    world.spend(300.0)
    assert world.pods[HOST] == left
    node = world.api.get("nodes", HOST) or {}
    assert set(world.marks(node)) <= {"pp-hostd.io/fenced-boot"}
    assert not world.node(HOST).node.unschedulable


DONE = {"name": "ipmi", "action": "off", "outcome": "Done"}
EDITS: list[dict[str, Any]] = [
    {"step": "Power-Management", "status": "Done", "cleaned": True},
    {
        "step": "Power-Management",
        "status": "Running",
        "methods": [{"name": "ipmi", "action": "off", "outcome": "Done"}],
    },
    {"step": "Recovery", "status": "Running"},
    {"step": "Isolation", "status": "Done", "stepStartedAt": "2020-01-01T00:00:00Z"},
    {"status": "Error", "restarts": 99},
    {"status": "Final"},
    {"methods": [], "retries": 0},
    {"step": "Power-Management", "status": "Running", "methods": [{"name": "x", "action": "", "outcome": "Running"}]},
]


@pytest.mark.parametrize("edit", EDITS)
def test_a_fence_that_is_edited_by_hand_frees_nothing_without_proof(edit: dict[str, Any]) -> None:
    world = ipmi()
    world.mode = "lies"
    world.run(lambda: world.is_at("Isolation", "Done"))
    world.edit(**edit)
    world.spend(900.0)
    assert world.pods[HOST] == 2
    assert world.found() is None or world.next_action(), "never stuck without a reason"


def test_a_fence_that_makes_no_sense_is_reported() -> None:
    world = ipmi()
    world.edit(retries="many")
    world.spend(60.0)
    assert not world.calls
    assert "retries is not a whole number" in world.api.watch_of(NODE_FENCES.plural).caches[0].troubles()[0]


def test_a_pause_holds_what_is_next_and_ends_what_is_being_freed() -> None:
    world = ipmi()
    world.run(lambda: bool(world.steps(MarkFreeing)))
    world.order({"paused": Pause("anna", SINCE, "a look first").render()})
    world.run(world.free)
    world.spend(300.0)
    assert not world.power, "nothing more is done"
    assert "paused by anna" in world.next_action()
    world.order({})
    world.run(lambda: world.power)


def test_a_node_that_is_paused_is_not_touched() -> None:
    world = ipmi()
    world.annotate_node(HOST, **{PAUSED_NODE: ""})
    world.spend(300.0)
    assert not world.node(HOST).node.unschedulable


def test_another_remedy_gives_the_node_back_before_a_flow_begins() -> None:
    world = a_world()
    world.by_ipmi()
    world.cut_off()
    for change in (partial(cordon, condemnation_id=7), partial(mark_freeing, condemnation_id=7, out_of_service=True)):
        world.api.patch("nodes", HOST, change(world.api.get("nodes", HOST) or {}))
    world.fence()
    world.run(lambda: bool(world.steps(BeginFence)))
    assert world.steps(Uncordon, BeginFence)[0] == world.steps(Uncordon)[0]
    world.run(lambda: world.is_at("Recovery", "Final"))


def test_one_node_is_fenced_at_a_time() -> None:
    told = fenced_beside("b")
    assert sum("max_at_once is 1" in each for each in told) == 1, told


def test_a_flow_that_is_about_to_begin_counts_for_one_that_comes_later_and_is_sorted_first() -> None:
    world = ipmi()
    world.report("b", "Unknown")
    before = world.api.get(NODE_FENCES.plural, fence_name(HOST))
    world.run(lambda: bool(world.steps(BeginFence)))
    term = world.driver.term
    for name in (HOST, "b"):  # as if x's step were under way, and b, whose NodeFence is new, had looked as well
        body = {"metadata": {"name": fence_name(name)}, "node": name}
        world.api.put(NODE_FENCES.plural, fence_name(name), before if name == HOST else body)
        term = replace(term, memories={**term.memories, name: term.memories[HOST]})
    planned = plan(world.settings, world.observed(), term, (), world.now)
    assert [each.node for each in planned.next_actions if isinstance(each.step, BeginFence)] == [HOST]
    assert any(each.node == "b" and "max_at_once is 1" in each.sentence for each in planned.next_actions)


def test_nobody_is_fenced_while_too_many_nodes_do_not_respond() -> None:
    told = fenced_beside("b", "c")
    assert all("3 nodes do not respond: together 3 of 5, and leader.max_unhealthy allows 2" in each for each in told)


def fenced_beside(*names: str) -> list[str]:
    """Has these nodes fenced as well, and returns what the leader says of all."""
    world = ipmi()
    for name in names:
        world.report(name, "Unknown")
        body = {"metadata": {"name": fence_name(name)}, "node": name}
        world.api.put(NODE_FENCES.plural, fence_name(name), body)
    world.spend(120.0, world.free)
    return [world.next_action(name) for name in (HOST, *names)]


def test_a_leader_hands_over_before_its_own_host_is_fenced() -> None:
    world = a_world()
    world.by_ipmi()
    world.a_term(HOST)
    world.cut_off()
    world.fence()
    world.spend(60.0, lambda: "another must lead" in world.next_action())
    assert "another must lead" in world.next_action()
    assert not world.calls


def test_a_node_without_a_boot_is_refused() -> None:
    world = ipmi()
    world.api.patch("nodes", HOST, {"status": {"nodeInfo": None}})
    world.spend(60.0)
    assert "reports no boot" in world.next_action()
    assert not world.calls


def test_a_secret_that_is_missing_is_named_and_nothing_is_freed() -> None:
    world = ipmi()
    world.api.put("secrets", "pp-hostd/bmc", None)
    world.run(lambda: "there is no Secret pp-hostd/bmc" in world.next_action())
    assert not world.calls
    assert "hunter2" not in str(world.found())


def test_a_host_that_others_reach_is_not_fenced_though_its_node_is_unknown() -> None:
    world = a_world()
    world.configure("ipmi", "", "", ipmi={**IPMI, "action": "off"})
    world.cut_off()
    world.reached = True
    world.threshold("Ready", "Unknown")
    world.spend(120.0)
    assert "agents reach its host" in world.next_action()
    assert not world.calls


def test_a_machine_that_requests_a_node_fence_is_told_to_make_one() -> None:
    world = a_world()
    world.annotate_machine(world.machine_key, **{FLOW: "node-fence"})
    world.request()
    assert "make a NodeFence for its Node instead" in world.held(60.0)
