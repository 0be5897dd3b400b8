"""The power cycle: a requested machine has its host switched off, its Node deleted, and both given back.

The table says what comes next; this module, whether it may, and what goes with it. Nothing is remembered but for how
long something has not come: every state is read from annotations, power and backup, so that any leader goes on.
"""

from __future__ import annotations

from pp_hostd.frozen import replace
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.plan.freeing import deleted, freed, undeletable
from pp_hostd.leader.plan.request_trouble import ids_are_used_up, others_node, unreadable_backup
from pp_hostd.leader.plan.valves import Valves, handed_over, paused
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.remedies.poison_pill.certainty import look_again, refusal
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import (
    BareMetalHost,
    HostsSeen,
    PowerRequest,
    booting_of,
    host_seen,
    is_off,
    request_of,
)
from pp_hostd.leader.remedies.power_cycle.steps import SwitchOff, SwitchOn
from pp_hostd.leader.remedies.power_cycle.table import Action, Situation, action
from pp_hostd.leader.remedies.power_cycle.trouble import host_trouble, kept_off_by_others, rival, unfit, without_host
from pp_hostd.leader.steps.machines import Clear, DeleteMachine, Inspect
from pp_hostd.leader.steps.nodes import Complete, DropBackup, Recreate, StoreBackup
from pp_hostd.model.backup import Backup
from pp_hostd.model.condemnation import NotRequested, Requested, last_id
from pp_hostd.model.machine import Machine
from pp_hostd.model.observed import NodeSeen
from pp_hostd.model.record import Unreadable

_READY = "back with a Ready Node"
OFF, ON = "the host is off", "the host is back"
"""The awaited events."""


def power_cycled(view: View, valves: Valves) -> NextAction | None:
    """The next step for a machine whose host is, or is to be, switched off; None: nothing of it."""
    machine, host = view.machine, host_seen(view)
    if unreadable_backup(view):
        return view.refuses(unreadable_backup(view))
    if machine is not None and isinstance(machine.condemnation, Unreadable):
        return view.refuses(f"{machine.condemnation}. To make it readable: pp-leader absolve {view.name}")
    completed = _completed(view)
    if completed is not None:
        return completed
    if host is None:
        return _hostless(view)
    released = _released(view, host)
    if released is not None:
        return released
    what, why = action(situation(view, host))
    if what is Action.SWITCH_OFF and machine is not None:
        return _switch_off(view, machine, host, valves, why)
    if what is Action.DELETE_NODE and machine is not None:
        return _delete_node(view, machine, host, why)
    if what is Action.TAKE_REQUEST and machine is not None:
        return _renewed(view, host) or _freed(view) or _take_request(view, machine, why)
    if what is Action.SWITCH_ON:
        return _freed(view) or _recreated(view) or switched_on(view, host, why)
    return _nothing(view, host, valves, why)


def situation(view: View, host: BareMetalHost) -> Situation:
    """The row of the table. A host that nobody has told the power of is taken for on: that allows least."""
    return Situation(view.seen is not None, _asks(view), host.powered_on is not False, request_of(view) is not None)


def _asks(view: View) -> bool:
    """Whether a request stands that no power cycle has answered. Health checks ask again as soon as a Node is missing:
    what is requested before the host is back begins no second cycle."""
    machine = view.machine
    if machine is None or not isinstance(machine.condemnation, Requested):
        return False
    request = request_of(view)
    if request is not None:  # its id is on the machine once that request was taken off
        return last_id(machine.condemnation) < request.id
    return not booting_of(view) and (not _is_deleted(view) or _is_over(view, machine))


def _is_over(view: View, machine: Machine) -> bool:
    """Whether the power cycle of this backup has ended: a leader that was long gone may still have stored it."""
    backup = own_backup(view)
    return backup is not None and last_id(machine.condemnation) > backup.id


def _is_deleted(view: View) -> bool:
    """Whether the Node was deleted for a power cycle whose backup still stands."""
    backup = own_backup(view)
    return backup is not None and (view.seen is None or view.seen.node.uid != backup.uid)


def awaited(view: View) -> str:
    """Returns the awaited event, which may never come; empty if none."""
    host = host_seen(view)
    if view.condemned is not None:
        return ""
    if host is not None and request_of(view) is not None:
        return "" if host.powered_on is False else OFF
    if view.memory.awaited == OFF and view.memory.failures and _asks(view):
        return OFF  # it can't even be requested
    begun = _is_deleted(view) or booting_of(view) is not None
    if host is None or not begun or _is_back(view, host) or kept_off_by_others(host):
        return ""
    return ON


def own_backup(view: View) -> Backup | None:
    """The backup of a Node whose host was switched off for it."""
    stored = None if view.backup_seen is None else view.backup_seen.backup
    return stored if isinstance(stored, Backup) and stored.host else None


def _is_back(view: View, host: BareMetalHost) -> bool:
    """Whether it is on, and its Node Ready."""
    return _has_node(view) and view.seen is not None and view.seen.ready and host.powered_on is True


def _has_node(view: View) -> bool:
    """Whether a kubelet of this boot can have said all that its Node says. Of a Node that was deleted nobody knows
    more; on one that was kept another boot stands then."""
    seen, booting = view.seen, booting_of(view)
    return seen is not None and (booting is None or seen.node.boot != booting.boot)


# Off.


def _switch_off(view: View, machine: Machine, host: BareMetalHost, valves: Valves, why: str) -> NextAction:
    trouble = _trouble(view, machine) or host_trouble(view, host) or unfit(host)
    trouble = trouble or ("" if view.seen is None else undeletable(view.seen))
    if trouble:
        return view.refuses(trouble)
    order = paused(view)
    held = view.waits(Stage.HELD, order) if order else valves.held(view)
    if held is not None:
        return held
    first = handed_over(view) or valves.allowance.next_write(view, Stage.SWITCHING_OFF)
    if first is not None:
        return first
    step = requested_off(view, machine, host, view.term.draw.id_after(last_id(machine.condemnation)))
    return view.does(Stage.SWITCHING_OFF, step, f"{why} ({host.machine_key})")


def requested_off(view: View, machine: Machine, host: BareMetalHost, remediation_id: int) -> SwitchOff:
    request = PowerRequest(machine.machine_key, machine.uid, view.name, remediation_id)
    return SwitchOff(host.machine_key, host.uid, host.resource_version, request)


def _trouble(view: View, machine: Machine) -> str:
    """Why nothing may be done about this machine; empty if something may."""
    strange = "" if view.seen is None else others_node(machine, view.seen)
    return ids_are_used_up(view, machine) or (strange and f"{strange}. Correct that")


def _delete_node(view: View, machine: Machine, host: BareMetalHost, why: str) -> NextAction:
    """Rule 12: only what linearizable reads and the watch show alike is acted upon."""
    if not is_off(view):
        doubt = host.obstacle or host.error or "it was read before something else happened to the host"
        return switched_on(view, host, f'its "off" proves nothing ({doubt}); powering it on, to switch it off again')
    trouble, held = _trouble(view, machine) or host_trouble(view, host), paused(view)
    if trouble:
        return view.refuses(f"switched off, and its workloads are not freed: {trouble}")
    if held:
        return view.waits(Stage.HELD, held)
    inspection, request = view.memory.inspection, request_of(view)
    if inspection is None:
        return view.does(Stage.CHECKING, Inspect(view.machine_key, view.name, view.looks), f"{why}; checking once more")
    found, backup = inspection.node, inspection.backup
    unchanged = found == view.seen and inspection.machine == machine and host in inspection.beside
    if found is None or not unchanged or not request:
        return look_again(view, inspection, f"{why}, and something has changed; checking once more")
    if isinstance(backup, Backup):
        backup = replace(backup, id=request.id, host=host.machine_key, off=host.resource_version)
    return deleted(view, found, backup, why)


def _freed(view: View) -> NextAction | None:
    """Its Node is gone, and its host is kept off: what it ran may run elsewhere."""
    stored, backup = view.backup_seen, own_backup(view)
    if stored is None or backup is None or view.seen is not None or view.memory.left == 0 or not is_off(view):
        return None
    return freed(view, stored, backup)


def _renewed(view: View, host: BareMetalHost) -> NextAction | None:
    """A backup records the last power cycle. Where that found no Node, it is still the one before it."""
    stored, request, backup = view.backup_seen, request_of(view), own_backup(view)
    if stored is None or request is None or backup is None or backup.id >= request.id:
        return None
    renewed = replace(backup, id=request.id, off=host.resource_version if is_off(view) else "")
    return view.does(Stage.FREEING, StoreBackup(renewed, stored.resource_version), "keeping the backup of its Node")


def _take_request(view: View, machine: Machine, why: str) -> NextAction:
    request = request_of(view)
    newest = max(last_id(machine.condemnation), 0 if request is None else request.id)
    step = Clear(view.machine_key, machine.uid, machine.resource_version, newest)
    return view.does(Stage.CLEARING, step, f"{why}; removing the request from its machine")


def _nothing(view: View, host: BareMetalHost, valves: Valves, why: str) -> NextAction | None:
    if request_of(view) is not None:
        return _still_on(view, host, why)
    if _asks(view):  # it is off, and not by us
        trouble = (
            host_trouble(view, host)
            or unfit(host)
            or f"{why}. The leader has it switched off, and on again, once it is on"
        )
        return view.refuses(f"BareMetalHost {host.machine_key} reads off: {trouble}. {_or_a_word(view)}")
    return _coming_back(view, host, valves)


def _or_a_word(view: View) -> str:
    if view.name not in view.observed.enrolled:
        return "If it does not come on, see what its operator says about it"
    return f"If it is certainly off: pp-leader confirm-dead {view.name}"


def _still_on(view: View, host: BareMetalHost, why: str) -> NextAction:
    error = f"; its operator says: {host.error}" if host.error else ""
    obstacle = f"; {host.obstacle}" if host.obstacle else ""
    seconds = view.settings.power.off_timeout_seconds
    due_at = view.memory.awaited_at + seconds
    if view.now < due_at:
        return view.waits(Stage.SWITCHING_OFF, f"{why} ({host.machine_key}){error}{obstacle}", due_at)
    told = f"BareMetalHost {host.machine_key} is still on, {seconds:g} s after it was to be off{error}{obstacle}"
    if _can_reset_itself(view):
        step = SwitchOn(host.machine_key, host.uid, host.resource_version, falls_back=True)
        return view.does(Stage.SWITCHING_OFF, step, f"{told}; the host has to reset itself instead")
    return view.refuses(f"{told}. See that its BMC and its operator work; the leader goes on once the host is off")


def is_never_off(view: View) -> bool:
    """Whether the request itself could not be written in time, so that the host has to reset itself instead."""
    due_at = view.memory.awaited_at + view.settings.power.off_timeout_seconds
    waits = view.memory.awaited == OFF == awaited(view) and request_of(view) is None
    late = waits and view.now >= due_at
    return late and _can_reset_itself(view)


def _can_reset_itself(view: View) -> bool:
    seen, machine = view.seen, view.machine
    enrolled = view.name in view.observed.enrolled
    if not view.settings.power.fallback or not enrolled or seen is None or machine is None:
        return False
    return not refusal(view, seen, machine.uid)


# On again.


def _released(view: View, host: BareMetalHost) -> NextAction | None:
    """Our request is not, or no longer, to keep this host off. None if it may."""
    if _is_left_over(view, host):
        return switched_on(view, host, "was kept off for a machine that is gone; powering it on again")
    contested = rival(view, host)
    if not contested or not _asks(view):  # what was freed already is given back
        return None
    return view.refuses(contested) if request_of(view) is None else switched_on(view, host, contested)


def _is_left_over(view: View, host: BareMetalHost) -> bool:
    """Whether our request is on it for a machine that is no more, though there may be another of its name."""
    request = host.request
    if not isinstance(request, PowerRequest):
        return False
    seen = view.observed.machines.get(request.machine)
    return view.machine is not None and (seen is None or seen.machine.uid != request.uid)


def _completed(view: View) -> NextAction | None:
    """A Node that has come back gets what it lacks, whatever comes next: or the next backup would lack it too."""
    backup, seen = own_backup(view), view.seen
    if backup is None or seen is None or seen.node.uid == backup.uid or seen.freed == backup.id:
        return None
    return view.does(Stage.RESTORING, Complete(backup, seen.node.uid), "completing the Node that came back")


def _recreated(view: View) -> NextAction | None:
    """Where an agent holds the kubelet, nobody else can recreate its Node."""
    backup = own_backup(view)
    if backup is None or view.seen is not None or view.name not in view.observed.enrolled:
        return None
    return view.does(Stage.RESTORING, Recreate(backup), "workloads released; recreating the Node")


def switched_on(view: View, host: BareMetalHost, why: str) -> NextAction:
    """Of a Node that is there the host remembers the power cycle until it is back: no backup does."""
    seen, request = view.seen, request_of(view)
    booting = None
    if seen is not None and request is not None and is_off(view) and (seen.node.boot or _is_recreated(view, seen)):
        booting = replace(request, boot=seen.node.boot)
    step = SwitchOn(host.machine_key, host.uid, host.resource_version, booting=booting)
    return view.does(Stage.SWITCHING_ON, step, f"{why} ({host.machine_key})")


def _is_recreated(view: View, seen: NodeSeen) -> bool:
    """Whether a leader has recreated it, no kubelet has reported on it yet, and its backup is gone."""
    return seen.away and own_backup(view) is None


def _coming_back(view: View, host: BareMetalHost, valves: Valves) -> NextAction | None:
    """Nothing keeps it off any more; the host, and its Node if that was deleted, are waited for."""
    machine, backup, booting = view.machine, own_backup(view), booting_of(view)
    begun = backup or booting
    if begun is None:
        return None
    if _is_gone(view) or (backup is None and machine is None):
        return _over(view, host, "its Machine was deleted")
    if backup is not None and not _is_deleted(view):
        return _drop(view, "its Node was not deleted")
    if not _is_back(view, host):
        return _recreated(view) or _awaited_back(view, host, valves)
    told = "its host is on, and its Node is Ready"
    if machine is not None and last_id(machine.condemnation) <= begun.id:
        # Above the id of a backup, too, that a leader which is long gone may yet store.
        over = view.term.draw.id_above_all(begun.id)
        step = Clear(view.machine_key, machine.uid, machine.resource_version, over)
        return view.does(Stage.CLEARING, step, f"{told}; this power cycle and all requests for it are over")
    return _over(view, host, told)


def _awaited_back(view: View, host: BareMetalHost, valves: Valves) -> NextAction | None:
    seconds, lacks = view.settings.power.on_timeout_seconds, _lacks(view, host)
    due_at, error = view.memory.awaited_at + seconds, f"; its operator says: {host.error}" if host.error else ""
    others, machine = kept_off_by_others(host), view.machine
    asked = machine is not None and isinstance(machine.condemnation, Requested)
    if others:
        return view.refuses(f"waiting until BareMetalHost {host.machine_key} is on, and {others}")
    if lacks == _READY and not asked and view.is_claimed:
        told = "its host and its Node are back, and its remediation object waits until the Node is Ready"
        return _over(view, host, told)
    if view.now < due_at:
        meanwhile = "; a request in the meantime begins no second power cycle" if asked else ""
        told = f"waiting until BareMetalHost {host.machine_key} is {lacks}{error}{meanwhile}"
        return view.waits(Stage.SWITCHING_ON, told, due_at)
    told = f"BareMetalHost {host.machine_key} is not {lacks}, {seconds:g} s after it could have been{error}"
    if lacks == _READY and not asked:
        return _over(view, host, told)
    kept = _kept(view, host)
    if machine is not None and not kept:
        step = DeleteMachine(machine.machine_key, machine.uid, machine.resource_version)
        return view.does(Stage.SWITCHING_ON, step, f"{told}; deleting its Machine, for its owner to make another")
    if machine is not None and asked and host.powered_on is True:
        return _switch_off(view, machine, host, valves, f"{told}, and its Machine is kept, since {kept}; once more")
    return view.refuses(f"{told}. Its Machine is not deleted, since {kept}. See what its BMC and its console say")


def _lacks(view: View, host: BareMetalHost) -> str:
    if host.powered_on is not True:
        return "on"
    return _READY if _has_node(view) else "back as a Node"


def _kept(view: View, host: BareMetalHost) -> str:
    """Why the Machine of a host that does not come back is not deleted; nothing, if it is."""
    seen = view.machine_seen
    reasons = (
        paused(view),
        "its host is externally provisioned" if host.external else "",
        "it is gone" if seen is None else seen.host.kept,
    )
    return next(filter(None, reasons), "")


def _is_gone(view: View) -> bool:
    """Whether the Machine was deleted, as far as it is known which one it was."""
    return view.machine is None and view.machine_key != ""


def _over(view: View, host: BareMetalHost, sentence: str) -> NextAction | None:
    """Forgets the power cycle."""
    if own_backup(view) is not None:
        return _drop(view, sentence)
    return switched_on(view, host, f"{sentence}; this power cycle is over")


def _drop(view: View, sentence: str) -> NextAction | None:
    stored, seen = view.backup_seen, view.seen
    if stored is None:
        return None
    drop = DropBackup(view.name, None if seen is None else seen.node.uid, stored.resource_version)
    return view.does(Stage.CLEARING, drop, f"{sentence}; dropping the backup")


def _hostless(view: View) -> NextAction | None:
    """There is no host to look at: what can be given back is, and the rest waits for a person. A leader that has not
    listed the hosts yet keeps the backup, which alone remembers the power cycle."""
    if own_backup(view) is not None:
        if view.observed.part(HostsSeen).late:
            return view.waits(Stage.SWITCHING_ON, without_host(view))
        if _is_gone(view) or view.seen is not None:
            return _drop(view, "there is nothing more to wait for")
        recreated = _recreated(view)
        if recreated is not None:
            return recreated
    elif view.machine is None or isinstance(view.machine.condemnation, NotRequested):
        return None
    return view.refuses(without_host(view))
