"""A new remedy is a folder and one line of the registry: one that is not shipped, in the leader's own loop."""

from __future__ import annotations

from dataclasses import replace

from pp_hostd.kube.resources import OPENSHIFT_MACHINES
from pp_hostd.leader.access.manifests import leader_roles
from pp_hostd.leader.commands.explain import explained
from pp_hostd.leader.commands.host import Host
from pp_hostd.leader.leadership import Leadership
from pp_hostd.leader.registry import REMEDIES, Registry
from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.steps.nodes import DeleteNode
from pp_hostd.leader.steps.own_objects import SpendBudget
from pp_hostd.leader.steps.workloads import FreeWorkloads
from pp_hostd.model.keys import FLOW
from tests.leader.trial_remedy import OUTLETS, TRIAL, Cut
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST, World

REGISTRY = Registry(remedies=(TRIAL, *REMEDIES))
OUTLET = f"strip/{HOST}"


class TrialWorld(World):
    """The host's power strip obeys."""

    def __init__(self) -> None:
        super().__init__(registry=REGISTRY)
        metadata = {"name": HOST, "namespace": "strip", "uid": "outlet-x"}
        self.api.put(OUTLETS.plural, OUTLET, {"metadata": metadata, "spec": {}, "status": {}})

    def live(self) -> None:
        super().live()
        outlet = self.api.get(OUTLETS.plural, OUTLET) if OUTLETS.plural in self.api.objects else None
        if outlet is not None and outlet["spec"].get("cut") is not outlet["status"].get("dead"):
            if outlet["spec"]["cut"] and self.running:
                self.reset()
            self.api.patch(OUTLETS.plural, OUTLET, {"status": {"dead": outlet["spec"]["cut"]}})


def test_a_remedy_that_suits_first_has_the_node_from_its_request_to_its_return() -> None:
    world = TrialWorld()
    world.request()
    world.run(world.given_back)
    steps = [type(step) for step in world.steps(SpendBudget, Cut, DeleteNode, FreeWorkloads, Condemn)]
    assert steps == [SpendBudget, Cut, DeleteNode, FreeWorkloads, Cut]
    assert world.api.objects[OUTLETS.plural][OUTLET]["spec"] == {"cut": False}


def test_the_machines_annotation_names_another_remedy_all_the_same() -> None:
    world = TrialWorld()
    world.api.patch("machines", world.machine_key, {"metadata": {"annotations": {FLOW: "poison-pill"}}})
    world.request()
    world.run(world.given_back)
    assert world.steps(Condemn)
    assert not world.steps(Cut)


def test_a_name_that_is_none_is_refused_with_those_that_are() -> None:
    world = TrialWorld()
    world.api.patch("machines", world.machine_key, {"metadata": {"annotations": {FLOW: "prayer"}}})
    world.request()
    assert "is none of trial, power-cycle, node-fence, poison-pill" in world.held(60.0)


def test_the_limits_of_the_leader_hold_for_it() -> None:
    world = TrialWorld()
    world.settings = replace(world.settings, leader=replace(world.settings.leader, resets_per_hour="0"))
    world.a_term("a")
    world.request()
    assert "leader.resets_per_hour allows 0" in world.held(60.0)
    assert not world.steps(Cut)


def test_its_rights_are_granted_where_it_is_installed() -> None:
    rules = [rule for role in leader_roles("openshift", ["trial"], REGISTRY) for rule in role.get("rules", ())]
    assert any(OUTLETS.plural in rule["resources"] for rule in rules)
    assert "trial" in REGISTRY.flows


def test_explain_tells_what_it_reads_and_what_it_would_do() -> None:
    world = TrialWorld()
    machine, observed = world.machine(world.machine_key), world.observed()
    host = Host(
        HOST,
        world.settings,
        world.node(HOST),
        world.machine_key,
        machine,
        OPENSHIFT_MACHINES,
        observed,
        registry=REGISTRY,
    )
    sentences = explained(host, Leadership("", None, 15.0, None, None), SINCE)
    assert "Its outlet is live." in sentences
    assert any("the leader cuts outlet x" in sentence for sentence in sentences)
