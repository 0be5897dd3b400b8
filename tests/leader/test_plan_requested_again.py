"""Health checks that request again before a freed host is back: one remediation for each fault, no needless reset."""

from __future__ import annotations

import pytest

from pp_hostd.leader.remedies.poison_pill.steps import Condemn
from pp_hostd.leader.requests.remediation_objects.remediation import POISON_PILL, Phase
from pp_hostd.leader.steps.machines import Clear
from pp_hostd.leader.steps.nodes import Cordon, DeleteNode, NoteRequest, Uncordon
from pp_hostd.model.condemnation import Confirmation, NotRequested, Requested
from pp_hostd.model.keys import AGENT, CONFIRMED_DEAD
from pp_hostd.model.settings import Leader, Settings
from tests.leader.external.asked import AskedWorld
from tests.leader.power.powered import Bmc
from tests.leader.remediation import KINDS
from tests.leader.virtual_cluster import SINCE
from tests.leader.virtual_host import HOST, World

ON_TIMEOUT_SECONDS = Settings().power.on_timeout_seconds
EACH_PATIENCE = pytest.mark.parametrize("after_seconds", [0.0, 5.0, 60.0])


class RequestedAgain(World):
    """A health check that annotates the machine whenever its Node has been missing or not Ready for so long."""

    after_seconds, ill_since = 0.0, float("inf")

    def live(self) -> None:
        super().live()
        if self.api.get("nodes", HOST) is not None and self.node(HOST).ready:
            self.ill_since = float("inf")
            return
        self.ill_since = min(self.ill_since, self.now)
        if self.now >= self.ill_since + self.after_seconds and isinstance(self.condemnation(), NotRequested):
            self.request()
            self.ill_since = self.now


def freed(machines: str = "openshift", after_seconds: float = 0.0) -> RequestedAgain:
    """Its host has died, and was requested and freed; nobody but the health check knows more."""
    world = RequestedAgain(machines)
    world.after_seconds = after_seconds
    world.reset()
    world.run(lambda: bool(world.steps(DeleteNode)))
    return world


def noted(machines: str = "openshift") -> RequestedAgain:
    world = freed(machines)
    world.run(lambda: bool(world.steps(NoteRequest)))
    return world


@KINDS
@EACH_PATIENCE
def test_a_host_that_comes_back_late_is_freed_once_and_not_condemned_again(machines: str, after_seconds: float) -> None:
    world = freed(machines, after_seconds)
    world.spend(ON_TIMEOUT_SECONDS / 2)
    assert "its host is not back; a request in the meantime begins nothing" in world.next_action()
    assert world.comes_back()
    world.spend(60.0)
    world.kubelet_reports()
    world.run(lambda: world.given_back() and not world.driver.next_actions)
    world.spend(600.0)
    assert [len(world.steps(kind)) for kind in (Condemn, DeleteNode, NoteRequest)] == [1, 1, 1]
    assert world.running and world.restored()


@KINDS
def test_a_request_that_was_noted_begins_nothing_under_the_next_leader_either(machines: str) -> None:
    world = noted(machines)
    assert world.comes_back()
    world.a_term("b")
    world.spend(60.0)
    assert "its Node is not Ready; a request in the meantime begins nothing" in world.next_action()
    world.kubelet_reports()
    world.run(world.given_back)
    assert len(world.steps(Condemn)) == 1


def test_the_request_is_taken_off_before_the_note() -> None:
    world = noted()
    assert world.comes_back()
    world.kubelet_reports()
    world.run(world.given_back)
    assert [type(step) for step in world.steps(Clear, Uncordon)][-2:] == [Clear, Uncordon]


def test_a_request_that_is_taken_back_takes_the_note_along() -> None:
    world = noted()
    world.after_seconds = float("inf")
    world.lift()
    world.run(world.given_back)
    assert not world.node(HOST).requested_again


@pytest.mark.parametrize("ready", [True, False])
def test_a_request_that_is_made_once_the_host_is_back_is_carried_out(ready: bool) -> None:
    world = World()
    world.reset()
    world.request()
    world.run(world.given_back)
    assert world.comes_back()
    world.kubelet_reports(ready)
    world.request()
    world.run(lambda: len(world.steps(DeleteNode)) == 2)
    assert not world.steps(NoteRequest)


def test_a_request_that_follows_one_which_was_over_is_carried_out() -> None:
    world = noted()
    assert world.comes_back()
    world.kubelet_reports()
    world.run(world.given_back)
    world.request()
    world.run(lambda: len(world.steps(DeleteNode)) == 2)


def test_a_host_that_never_comes_back_is_reported_and_not_freed_again() -> None:
    world = noted()
    told = world.held(ON_TIMEOUT_SECONDS + 60.0)
    assert "its host is not back, 1800 s after it was requested again. See what its console" in told
    assert world.driver.next_actions[0].refused
    assert isinstance(world.condemnation(), Requested)
    assert world.comes_back()
    world.kubelet_reports()
    world.run(world.given_back)
    assert len(world.steps(Condemn)) == 1


def test_a_host_that_is_back_for_long_and_not_ready_is_reset_once_more() -> None:
    world = noted()
    world.spend(ON_TIMEOUT_SECONDS - 60.0)
    assert world.comes_back()
    back_at = world.now
    world.run(lambda: len(world.steps(Cordon)) == 2, ON_TIMEOUT_SECONDS + 60.0)
    assert world.now >= back_at + ON_TIMEOUT_SECONDS
    world.run(lambda: len(world.steps(DeleteNode)) == 2)


@pytest.mark.parametrize(("most", "acts"), [("1", False), ("2", True)])
def test_a_host_that_is_not_back_counts_by_its_node_and_not_by_its_request(most: str, acts: bool) -> None:
    world = RequestedAgain(settings=Settings(leader=Leader(max_unhealthy=most)))
    world.reset()
    world.run(lambda: bool(world.steps(NoteRequest)))
    world.annotate_node("b", **{AGENT: world.a_promise(machine_uid="machine-b").render()})
    world.request("machines/b")
    world.spend(30.0)
    assert (len(world.steps(Condemn)) == 2) is acts
    assert acts or "remediation is requested for 1 nodes, and 1 nodes do not respond" in world.next_action("b")


def test_a_person_who_knows_that_the_host_is_dead_has_it_freed_again() -> None:
    world = noted()
    world.annotate_node(HOST, **{CONFIRMED_DEAD: Confirmation("ann", SINCE, None).render()})
    world.run(lambda: len(world.steps(DeleteNode)) == 2)


def test_a_remediation_object_counts_its_attempts_although_nothing_is_left_to_free() -> None:
    world = AskedWorld("cluster-api")
    world.bmc = Bmc.UNATTENDED
    world.switch(on=False)
    world.make(POISON_PILL)
    world.run(lambda: world.phase(POISON_PILL) is Phase.DELETING, seconds=4000)
    assert world.status(POISON_PILL)["retryCount"] == 1
    assert len(world.steps(DeleteNode)) == 1
    assert not world.steps(NoteRequest)
