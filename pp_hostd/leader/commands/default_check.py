"""The NodeHealthCheck that `pp-leader install --health-check` makes where there is none, and `uninstall` removes."""

from __future__ import annotations

from argparse import Namespace
from typing import TYPE_CHECKING

from pp_hostd.errors import UserError
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import NODE_HEALTH_CHECKS, NODES
from pp_hostd.leader.commands.waiting import awaited
from pp_hostd.leader.definition import DEFINITIONS, MANAGED_BY, US
from pp_hostd.leader.requests.health_checks.check import DEFAULT_MOST, HealthCheck, Rules, parse_health_check
from pp_hostd.leader.requests.health_checks.definitions import DEFAULT_NAME, FULL_NAME, default_check
from pp_hostd.service.output import filled, say

if TYPE_CHECKING:
    from pp_hostd.leader.commands.administrator import Administrator

APPLIED_TWICE = (
    f"\n# Where {NODE_HEALTH_CHECKS.kind} is new, kubectl knows it only after the first apply: apply this once more."
)
MOST_NAMES = 10


def chosen_check(arguments: Namespace) -> Json | None:
    """The check that these arguments ask to make; None if they ask for none."""
    if arguments.health_check:
        return default_check(arguments.max_unhealthy or DEFAULT_MOST, control_plane=arguments.control_plane)
    if arguments.max_unhealthy is not None or arguments.control_plane:
        hint = "Say --health-check, too."
        raise UserError("--max-unhealthy and --control-plane are about the health check that install makes", hint)
    return None


def make_default_check(administrator: Administrator, check: Json, wait_seconds: float) -> None:
    """Make it once the API serves its kind, unless there is one already, and say what it selects."""
    _await_kind(administrator, wait_seconds)
    names = [each["metadata"]["name"] for each in administrator.list(NODE_HEALTH_CHECKS)]
    if names or not administrator.create(NODE_HEALTH_CHECKS, check):
        name = (names or [DEFAULT_NAME])[0]
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        change = f"To see it: pp-leader health. To change it: kubectl edit {FULL_NAME} {name}"
        say(f"{'left':9}  {NODE_HEALTH_CHECKS.describe(None, name)}{more}, which was there before. {change}")
        return
    say(f"{'created':9}  {NODE_HEALTH_CHECKS.describe(None, DEFAULT_NAME)}")
    for sentence in _selection(administrator):
        say(filled(sentence, indent=2))


def made_by_install(administrator: Administrator) -> list[str]:
    """The names of the checks that bear the label of `install`."""
    found = [each["metadata"] for each in administrator.list(NODE_HEALTH_CHECKS)]
    return [each["name"] for each in found if (each.get("labels") or {}).get(MANAGED_BY) == US]


def _await_kind(administrator: Administrator, wait_seconds: float) -> None:
    def is_served() -> bool:
        return "Established" in _conditions(administrator) and administrator.serves(NODE_HEALTH_CHECKS)

    if not awaited(is_served, wait_seconds, f"the API to serve {NODE_HEALTH_CHECKS.plural}"):
        names = _conditions(administrator, "False").get("NamesAccepted", "")
        hint = f"{names + '. ' if names else ''}All else is installed. Try again. See: kubectl describe crd {FULL_NAME}"
        raise UserError(f"the API does not serve {NODE_HEALTH_CHECKS.plural} within {wait_seconds:g} s", hint)


def _conditions(administrator: Administrator, status: str = "True") -> dict[str, str]:
    """The messages of the definition's conditions that have this status, by their types."""
    found = (administrator.get(DEFINITIONS, FULL_NAME) or {}).get("status") or {}
    conditions = found.get("conditions") or ()
    return {each["type"]: each.get("message", "") for each in conditions if each.get("status") == status}


def _selection(administrator: Administrator) -> list[str]:
    """Sentences about the Nodes that the new check selects, and about its limit."""
    check = parse_health_check(administrator.get(NODE_HEALTH_CHECKS, DEFAULT_NAME))
    if not isinstance(check, HealthCheck) or not isinstance(check.rules, Rules):
        return []  # somebody has removed or changed it since
    nodes = [each["metadata"] for each in administrator.list(NODES)]
    names = sorted(each["name"] for each in nodes if check.rules.selector.matches(each.get("labels") or {}))
    limit, count = check.rules.limit, len(names)
    if not nodes:
        return ["There are no Nodes yet."]
    if not names:
        again = f"kubectl delete {FULL_NAME} {DEFAULT_NAME}, then pp-leader install --health-check --control-plane"
        return [f"It selects none of {len(nodes)} Nodes, which are all of the control plane. To select them: {again}"]
    more = f" and {count - MOST_NAMES} more" if count > MOST_NAMES else ""
    selected = f"It selects {count} of {len(nodes)} Nodes: {', '.join(names[:MOST_NAMES])}{more}."
    if limit.most(count):
        return [selected, f"It acts while at most {limit.brief(count)} of them are not healthy."]
    patch = f'kubectl patch {FULL_NAME} {DEFAULT_NAME} --type merge -p \'{{"spec":{{"maxUnhealthy":1}}}}\''
    why = f"{limit}, and of {count} Nodes that is 0, rounded down"
    return [selected, f"Nobody would be remediated: {why}. To have what --max-unhealthy 1 gives: {patch}"]
