"""Whether a host is protected: bound by a promise to reset itself, which the leader would accept as it stands."""

from __future__ import annotations

from pp_hostd.leader.plan.freeing import undeletable
from pp_hostd.leader.plan.roster import own_machine
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.poison_pill.certainty import OTHER_BOOT, Trouble, not_enrolled, unbound
from pp_hostd.leader.remedies.poison_pill.memory import overtaken
from pp_hostd.leader.steps.nodes import Condition
from pp_hostd.model.keys import PROTECTED
from pp_hostd.model.observed import NodeSeen
from pp_hostd.model.promise import Committed, promise_in

ARMED = "Armed"
REASONS = (
    *("NotEnrolled", "NoMachine", "NoPromise", "Unreadable", "Withdrawn", "Maintenance", "NoWatchdog", "Softdog"),
    *("Booting", "Resetting", "OtherBoot", "OtherMachine", "NotListed", "UnknownRoster", "Finalizers"),
)
"""Why a host is not protected."""


def protected(view: View, seen: NodeSeen) -> Condition:
    """The condition that this Node should have. Its message holds nothing that changes by itself."""
    trouble = _trouble(view, seen)
    if trouble is not None:
        return Condition(PROTECTED, "False", trouble.reason, trouble.sentence)
    promise = promise_in(seen.node.agent)
    assert promise is not None, seen  # who promises nothing is unbound
    self_timeout, watchdog_timeout = promise.self_timeout_seconds, promise.watchdog_timeout_seconds
    told = (
        f"resets itself within {self_timeout + 2 * watchdog_timeout:g} s of its last proof: "
        f"T {self_timeout:g} s, watchdog {promise.watchdog.value}, W {watchdog_timeout:g} s"
    )
    return Condition(PROTECTED, "True", ARMED, told)


def _trouble(view: View, seen: NodeSeen) -> Trouble | None:
    """Why the poison pill would not work on this host, by its own rules; None if it would."""
    if not_enrolled(view):
        return Trouble("NotEnrolled", not_enrolled(view))
    machine = own_machine(view.observed, view.name)
    if isinstance(machine, str):
        return Trouble("NoMachine", machine)
    trouble = unbound(view, seen, machine.uid)
    if trouble is not None:
        return trouble
    if isinstance(seen.node.agent, Committed):
        return Trouble("Resetting", f"it has decided to reset itself, for condemnation {seen.node.agent.id}")
    if overtaken(seen.node):
        return Trouble("OtherBoot", OTHER_BOOT)
    if view.settings.leader.strategy == "node-delete" and undeletable(seen):
        return Trouble("Finalizers", undeletable(seen))
    return None
