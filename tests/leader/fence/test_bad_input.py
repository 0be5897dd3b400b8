"""Bad input to a flow: agents that misbehave, a configuration or Secret that is wrong, a Job that never starts, and a
NodeFence that people edit in every state. People are told, nothing is freed, and what is mended goes on."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.fencing.call import AgentCall, AgentReply
from tests.leader.fence.fence_world import IPMI, FenceWorld
from tests.leader.fence.test_methods_run import EDITS, climbing, ipmi
from tests.leader.virtual_host import HOST

REPLIES = {
    "it is not there": (AgentReply(None, "", "there is no fence_ipmilan on this host"), "there is no fence_ipmilan"),
    "it hangs": (AgentReply(None, "Connecting", "fence_ipmilan took longer than 120 s"), "took longer than 120 s"),
    "a signal ends it": (AgentReply(None, "", "signal 9 ended fence_ipmilan"), "signal 9 ended fence_ipmilan"),
    "it prints as much as is kept": (AgentReply(1, "failed: " + "x" * 4088, ""), "failed: xxx"),
    "it ends with a code that nobody knows": (AgentReply(255, "failed", ""), "it ended with 255"),
}


class Misbehaves(FenceWorld):
    """Its agent answers so to this action, and does nothing then."""

    def __init__(self, action: str, reply: AgentReply) -> None:
        self._bad, self._reply = action, reply
        super().__init__()

    async def run_agent(self, call: AgentCall) -> AgentReply:
        if dict(call.parameters)["action"] != self._bad:
            return await super().run_agent(call)
        self.calls.append((call.agent, self._bad))
        return self._reply


@pytest.mark.parametrize("action", ["status", "off"])
@pytest.mark.parametrize(("reply", "told"), REPLIES.values(), ids=REPLIES)
def test_an_agent_that_misbehaves_frees_nothing_and_people_hear_how(action: str, reply: AgentReply, told: str) -> None:
    world = Misbehaves(action, reply)
    world.by_ipmi()
    world.configure_cluster(grace_timeout="0s", giveup_retries="1", step_retries="1")
    world.cut_off()
    world.fence()
    world.run(lambda: "gave up" in world.next_action(), 3600)
    fence = world.found()
    assert fence is not None
    assert told in fence.progress.reason
    assert len(fence.progress.reason) < 1000
    assert world.pods[HOST] == 2
    assert ("fence_ipmilan", "on") not in world.calls


CORRECT = {**IPMI, "action": "reboot"}
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"isolation": "prayer", "power": "ipmi", "ipmi": CORRECT}, "there is no method prayer"),
    ({"power": "ipmi", "ipmi": {"template": "nowhere", "action": "off"}}, "there is no such ConfigMap"),
    ({"power": "ipmi", "ipmi": {**CORRECT, "agent_name": "ipmilan"}}, "not the name of a fence agent"),
    ({"power": "ipmi", "ipmi": {**CORRECT, "action": "explode"}}, "not one of on, off, reboot, status"),
]


@pytest.mark.parametrize(("wrong", "told"), WRONG, ids=[told for _, told in WRONG])
@pytest.mark.parametrize("begun", [False, True])
def test_a_wrong_configuration_stops_its_flow_until_it_is_corrected(
    wrong: dict[str, Any], told: str, begun: bool
) -> None:
    """In whichever step the flow is that needs it."""
    world = FenceWorld()
    world.configure_cluster(grace_timeout="30s", boot_timeout="120s")
    if begun:
        world.by_ipmi()
    else:
        world.configure(**{"isolation": "ipmi", **wrong})
    world.cut_off()
    world.fence()
    if begun:
        world.run(lambda: world.is_at("Isolation", "Done"))
        world.configure(**{**wrong, "power": wrong.get("isolation", "ipmi")})
    world.spend(600.0)
    assert told in world.next_action()
    assert not world.calls
    assert world.pods[HOST] == 2
    world.by_ipmi()
    world.run(lambda: world.is_at("Recovery", "Final"))
    assert world.free()


SECRETS: list[tuple[dict[str, Any] | None, str]] = [
    (None, "there is no Secret pp-hostd/bmc"),
    ({"passwort": "aHVudGVyMg=="}, "Secret pp-hostd/bmc has no key password"),
    ({"password": "/w=="}, "Secret pp-hostd/bmc holds something that is no text"),
]


@pytest.mark.parametrize(("data", "told"), SECRETS)
def test_a_secret_that_is_wrong_is_named_and_its_flow_goes_on_once_it_is_right(
    data: dict[str, Any] | None, told: str
) -> None:
    world = ipmi()
    right = world.api.get("secrets", "pp-hostd/bmc")
    world.api.put("secrets", "pp-hostd/bmc", None if data is None else {"metadata": {"name": "bmc"}, "data": data})
    world.run(lambda: told in world.next_action())
    world.spend(600.0)
    assert not world.calls
    assert world.pods[HOST] == 2
    world.api.put("secrets", "pp-hostd/bmc", right)
    world.run(lambda: world.is_at("Recovery", "Final"))


def test_a_job_that_never_starts_is_reported_and_no_other_one_begins_before_it_is_deleted() -> None:
    world = climbing()
    (job,) = world.jobs()
    world.run(lambda: "should have ended after 60 s" in world.next_action())
    world.spend(300.0)
    assert len(world.jobs()) == 1
    assert world.pods[HOST] == 2
    world.api.put("jobs", next(iter(world.api.objects["jobs"])), None)
    world.run(lambda: bool(world.jobs()))
    assert world.jobs()[0]["metadata"]["name"] != job["metadata"]["name"]


@pytest.mark.parametrize("steps", range(26))
def test_a_fence_that_is_edited_in_any_state_is_never_stuck_and_frees_by_proof_alone(steps: int) -> None:
    """That nothing is freed while it runs, the virtual host itself sees to."""
    edit, world = EDITS[steps % len(EDITS)], ipmi()
    world.spend(600.0, lambda: len(world.done) >= steps)
    if world.found() is not None:
        world.edit(**edit)
    world.spend(900.0)
    assert world.found() is None or world.next_action() or world.is_at("Recovery", "Final")
