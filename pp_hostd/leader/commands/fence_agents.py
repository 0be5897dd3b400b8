"""`pp-leader fence test`: asks the fence agents of a node how its devices are, and never for anything else."""

from __future__ import annotations

import asyncio
import os
from argparse import Namespace
from contextlib import closing

from pp_hostd.errors import UserError
from pp_hostd.fencing.call import AgentCall, Power, power_of
from pp_hostd.fencing.client import run_agent
from pp_hostd.kube.resources import SECRETS
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.leader.commands.fence_plan import FencePlan, read_fence_plan
from pp_hostd.leader.remedies.node_fence.dry_run import described, twins
from pp_hostd.leader.remedies.node_fence.methods import STATUS, AgentMethod
from pp_hostd.leader.remedies.node_fence.steps import decoded, told_by
from pp_hostd.leader.steps.port import Unwritten
from pp_hostd.model.keys import NAMESPACE
from pp_hostd.service.output import filled, say

EXIT_SILENT = 1


def test(arguments: Namespace) -> int:
    name = arguments.node
    with closing(Administrator(arguments.kubeconfig)) as administrator:
        plan = read_fence_plan(administrator, name)
        assert isinstance(plan, FencePlan)  # else there is no such Node
        found = plan.agents[name]
        asked = {each.name: each for each in found.methods if isinstance(each, AgentMethod)}
        secrets = {each.name: _secrets(administrator, each) for each in asked.values()}
    for sentence in found.errors:
        say(filled(f"ERROR: {sentence}.", indent=2))
    if asked:
        _check(arguments.socket)
    answers = [_ask(arguments.socket, each, secrets[each.name]) for each in asked.values()]
    for warning in twins(name, plan.agents):
        say(filled(f"WARNING: {warning}.", indent=2))
    if not asked and not found.errors:
        say(filled(f"No method of {name} is described that uses a fence agent: there is nothing to ask."))
    return 0 if all(answers) and not found.errors else EXIT_SILENT


def _check(path: str) -> None:
    if not os.access(path, os.R_OK | os.W_OK):
        hint = "Run it as root on a control-plane host where pp-leader runs: systemctl start pp-leader-fence.socket"
        raise UserError(f"{path}: there is no socket that this user may use, so no agent was asked", hint)


def _secrets(administrator: Administrator, method: AgentMethod) -> dict[str, str] | str:
    """The values of its parameters that are in Secrets, or the trouble."""
    values: dict[str, str] = {}
    for each in method.secrets:
        what = f"Secret {NAMESPACE}/{each.name}"
        secret = administrator.get(SECRETS, each.name, NAMESPACE)
        text = None if secret is None else (secret.get("data") or {}).get(each.key)
        if text is None:
            return f"there is no {what}" if secret is None else f"{what} has no key {each.key}"
        try:
            values[each.parameter] = decoded(text, what)
        except Unwritten as refused:
            return refused.sentence
    return values


def _ask(path: str, method: AgentMethod, secrets: dict[str, str] | str) -> bool:
    """Says what the agent answers, in a line; False if that says nothing about the device."""
    head = f"{method.name}: {method.agent} {described(method)}".rstrip()
    if isinstance(secrets, str):
        say(filled(f"{head}: not asked: {secrets}", indent=2))
        return False
    given = {**dict(method.parameters), **secrets, "action": STATUS}
    reply = asyncio.run(run_agent(path, AgentCall(method.agent, tuple(given.items()), method.seconds)))
    power = power_of(reply)
    answer = f"no answer: {told_by(reply)}" if power is Power.UNKNOWN else power.value
    say(filled(f"{head}: {answer}", indent=2))
    return power is not Power.UNKNOWN
