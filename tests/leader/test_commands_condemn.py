"""`pp-leader condemn` and `absolve`: a request is made and taken back, on the machine as it is at that moment."""

from __future__ import annotations

import uuid
from contextlib import closing

import pytest

from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, EVENTS, NODES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.model.condemnation import Condemnation, Condemned, NotRequested, Requested, parse_condemnation
from pp_hostd.model.control import Pause
from pp_hostd.model.keys import AGENT, CONDEMNATION_ID, EXTERNAL_REMEDIATION
from pp_hostd.model.promise import Committed
from tests.agent.objects import KINDS
from tests.contract.objects import annotate, sample
from tests.leader.access.attempts import Attempt
from tests.leader.desk import WHEN, Desk, Said, any_desk, desk

__all__ = ["any_desk", "desk"]


class Target:
    """A host of its own for each test."""

    def __init__(self, desk: Desk, machines: str) -> None:
        self.desk, self.machines, self.name = desk, machines, f"host-{uuid.uuid4().hex[:8]}"
        self.kind, self.namespace = KINDS[machines], None if machines == "node" else "default"
        self.promise = desk.enrol(self.name, machines)

    def run(self, command: str, *options: str) -> Said:
        return self.desk.run(command, self.name, "--machines", self.machines, *options)

    def change(self, metadata: Json) -> None:
        patch = Attempt("patch", self.kind, self.name, {"metadata": metadata}, self.namespace)
        assert self.desk.world.make(patch).ok

    def condemnation(self) -> object:
        return parse_condemnation(self.desk.world.read(self.kind, self.name, self.namespace)["metadata"])


@pytest.fixture
def target(desk: Desk) -> Target:
    return Target(desk, "node")


@pytest.fixture
def any_target(any_desk: Desk) -> Target:
    return Target(any_desk, "node")


@pytest.mark.parametrize("machines", KINDS)
def test_a_request_is_made_and_taken_back_and_the_last_id_stays(any_desk: Desk, machines: str) -> None:
    target = Target(any_desk, machines)
    target.change({"annotations": {CONDEMNATION_ID: "6"}})
    condemned = target.run("condemn", "--yes", "--why", "it smokes")
    assert (condemned.code, condemned.complaint) == (0, "")
    assert "44 s after that" in condemned.prose
    assert target.condemnation() == Requested(6)
    [event] = [each for each in _events(target) if each["reason"] == "Requested"]
    assert event["message"].endswith(": eve requests its remediation: it smokes")
    absolved = target.run("absolve")
    assert (absolved.code, absolved.complaint) == (0, "")
    assert "The leader undoes" in absolved.prose
    assert "Now nobody leads" in absolved.prose
    assert target.condemnation() == NotRequested(6)


def _events(target: Target) -> list[Json]:
    selector = f"involvedObject.name={target.name}"
    found = target.desk.world.make(Attempt("list", EVENTS, "", namespace="default", selector=selector))
    items: list[Json] = found.json()["items"]
    return items


def test_who_is_asked_for_or_condemned_already_needs_nothing_more(target: Target) -> None:
    states: list[tuple[Condemnation, str]] = [
        (Requested(7), "requested already"),
        (Condemned(7, WHEN), "condemned since 2026-03-01"),
    ]
    for state, told in states:
        target.change(state.render())
        said = target.run("condemn", "--yes")
        assert (said.code, target.condemnation()) == (0, state)
        assert said.output.startswith("Nothing to do: ")
        assert told in said.prose


def test_a_condemnation_is_lifted_and_its_id_stays(any_target: Target) -> None:
    any_target.change(Condemned(7, WHEN).render())
    assert any_target.run("absolve").code == 0
    assert any_target.condemnation() == NotRequested(7)
    again = any_target.run("absolve")
    assert (again.code, again.output.startswith("Nothing to do: ")) == (0, True)


def test_what_can_not_be_read_is_no_request_and_can_be_taken_away(target: Target) -> None:
    target.change({"annotations": {EXTERNAL_REMEDIATION: "soon", CONDEMNATION_ID: "7"}})
    refused = target.run("condemn", "--yes")
    assert refused.code == 2
    assert f"pp-leader absolve {target.name}" in refused.complaint
    assert target.run("absolve").code == 0
    assert target.condemnation() == NotRequested(7)


def test_an_id_that_can_not_be_read_is_not_lost_by_an_absolution(target: Target) -> None:
    target.change({"annotations": {EXTERNAL_REMEDIATION: "", CONDEMNATION_ID: "many"}})
    refused = target.run("absolve")
    assert refused.code == 2
    assert f"Set {CONDEMNATION_ID} to a number" in refused.complaint


def test_a_host_that_has_decided_to_reset_itself_is_told_of(target: Target) -> None:
    target.change(Condemned(7, WHEN).render())
    target.desk.annotate(target.name, **{AGENT: Committed(target.promise, 7).render()})
    assert "expect it to reboot" in target.run("absolve").prose


def test_what_stands_against_it_is_told_and_the_request_made(target: Target) -> None:
    target.desk.annotate(target.name, **{AGENT: None})
    said = target.run("condemn", "--yes")
    assert "does nothing about it yet: its agent has promised nothing" in said.prose
    assert target.condemnation() == Requested(0)


def test_what_keeps_the_leader_is_told_before_the_question(target: Target) -> None:
    target.desk.store("control", {"paused": Pause("adam", WHEN, "lunch").render()})
    with target.desk.asked("condemn", target.name, "--machines", "node") as dialogue:
        assert b"paused by adam" in dialogue.heard
        assert b"nobody leads" in dialogue.heard
    target.desk.remove(CONFIG_MAPS, "control")


def test_without_a_terminal_nothing_happens_unless_yes_is_said(target: Target) -> None:
    refused = target.run("condemn")
    assert refused.code == 2
    assert "--yes" in refused.complaint
    assert target.condemnation() == NotRequested(0)


@pytest.mark.parametrize("typed", ["{}x\n", "\n", "\x04"])
def test_another_name_typed_back_changes_nothing(target: Target, typed: str) -> None:
    with target.desk.asked("condemn", target.name, "--machines", "node") as dialogue:
        refused = dialogue.answer(typed.format(target.name))
    assert refused.code == 2
    assert "nothing was changed" in refused.complaint
    assert target.condemnation() == NotRequested(0)


def test_the_name_typed_back_is_enough(target: Target) -> None:
    with target.desk.asked("condemn", target.name, "--machines", "node") as dialogue:
        assert dialogue.answer(f"{target.name}\n").code == 0
    assert target.condemnation() == Requested(0)


@pytest.mark.parametrize("machines", KINDS)
def test_a_machine_that_is_replaced_while_the_person_is_asked_is_not_asked_for(desk: Desk, machines: str) -> None:
    target = Target(desk, machines)
    with desk.asked("condemn", target.name, "--machines", machines) as dialogue:
        desk.remove(target.kind, target.name, target.namespace)
        desk.world.create(target.kind, "", sample(target.kind, target.name), target.namespace)
        refused = dialogue.answer(f"{target.name}\n")
    assert (refused.code, "was replaced meanwhile" in refused.complaint) == (2, True)
    assert target.condemnation() == NotRequested(0)


def test_an_interrupted_question_ends_quietly(target: Target) -> None:
    with target.desk.asked("condemn", target.name, "--machines", "node") as dialogue:
        interrupted = dialogue.interrupt()
    assert (interrupted.code, interrupted.complaint) == (130, "")
    assert target.condemnation() == NotRequested(0)


def test_a_change_is_made_again_when_others_write_in_between(any_target: Target) -> None:
    """Others change the Node before the first attempt arrives, and again before the second one does."""
    seen: list[str] = []

    def change(node: Json) -> Json:
        seen.append(node["metadata"]["annotations"].get("example.com/news", ""))
        if len(seen) < 3:
            any_target.desk.annotate(any_target.name, **{"example.com/news": str(len(seen))})
        return annotate(**{"example.com/mine": seen[-1]})

    with closing(Administrator(any_target.desk.kubeconfig)) as administrator:
        assert administrator.change(NODES, any_target.name, None, change)
    assert seen == ["", "1", "2"]
    node = any_target.desk.world.read(NODES, any_target.name)
    assert node["metadata"]["annotations"]["example.com/mine"] == "2"


def test_a_change_of_what_is_gone_is_none(any_target: Target) -> None:
    with closing(Administrator(any_target.desk.kubeconfig)) as administrator:
        assert not administrator.change(NODES, f"{any_target.name}-gone", None, lambda node: node)
