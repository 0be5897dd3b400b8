"""Where a host can't be relied upon to reset itself, and falling back is allowed: it is switched off instead."""

from __future__ import annotations

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.freeing import undeletable
from pp_hostd.leader.plan.valves import Valves, begun
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import host_name, host_seen, is_off, request_of
from pp_hostd.leader.remedies.power_cycle.plan import power_cycled, requested_off, switched_on
from pp_hostd.leader.remedies.power_cycle.trouble import host_trouble, unfit, without_host


def relieved(view: View, valves: Valves, next_action: NextAction) -> NextAction | None:
    """Returns the action in place of this next action of another remedy. None if that remedy may go on."""
    return _fallen_back(view, valves, next_action) if _is_stuck(view, next_action) else None


def _is_stuck(view: View, next_action: NextAction) -> bool:
    power, memory, seen = view.settings.power, view.memory, view.machine_seen
    if not (power.cycle and power.fallback) or memory.fell_back or seen is None or seen.host.host is None:
        return False
    acknowledging = next_action.stage is Stage.ACKNOWLEDGING and memory.awaited != ""
    unheard = acknowledging and view.now >= memory.awaited_at + power.off_timeout_seconds
    return (next_action.refused and not memory.keeps_failing) or unheard


def _fallen_back(view: View, valves: Valves, next_action: NextAction) -> NextAction | None:
    """Before anything has begun, a power cycle; once it is condemned, power that reads off ends the wait (rule 11)."""
    machine, host, request = view.machine, host_seen(view), request_of(view)
    if request is not None and host is not None and host.powered_on is False and not is_off(view):
        return switched_on(view, host, f'{next_action.sentence}; its "off" proves nothing; powering it on')
    if view.condemned is None and not begun(view.seen):
        return power_cycled(view, valves)
    if machine is None or view.condemned is None or request is not None:
        return next_action
    trouble = without_host(view) if host is None else host_trouble(view, host) or unfit(host)
    trouble = trouble or ("" if view.seen is None else undeletable(view.seen))
    if host is None or trouble or host.powered_on is not True:
        why = trouble or f"BareMetalHost {host_name(view)} reads off already, and not by our request"
        return replace(next_action, sentence=f"{next_action.sentence}; and it can't be switched off: {why}")
    step = requested_off(view, machine, host, view.condemned.id)
    return view.does(Stage.SWITCHING_OFF, step, f"{next_action.sentence}; switching its host off ({host.machine_key})")
