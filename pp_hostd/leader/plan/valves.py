"""Safety valves: what keeps the leader from condemning too many, too soon, or against a person's wish."""

from __future__ import annotations

from dataclasses import replace

from pp_hostd.frozen import frozen
from pp_hostd.leader.plan.allowance import Allowance
from pp_hostd.leader.plan.view import View
from pp_hostd.model.backup import Backup
from pp_hostd.model.bare_metal_host import PowerRequest
from pp_hostd.model.case import Course, Stage, Term
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.control import Pause
from pp_hostd.model.machine import Machine
from pp_hostd.model.observed import CONTROL_PLANE_LABELS, BackupSeen, MachineSeen, NodeSeen, Observed, is_early
from pp_hostd.model.owners_wish import wish_of_cluster, wish_of_machine
from pp_hostd.model.record import Unreadable
from pp_hostd.model.remedy import SpendBudget, SwitchOff
from pp_hostd.model.settings import Settings

LEAST_RESETS_PER_HOUR = 3
"""Where leader.resets_per_hour is a part of all nodes."""


def paused(view: View) -> str:
    """Who wants the leader to stand still, for all or for this node; or nothing."""
    order = view.observed.control.paused
    if isinstance(order, Pause):
        return f"paused by {order.who}: {order.why}. To go on: pp-leader resume"
    if isinstance(order, Unreadable):
        return f"paused: {order}"
    if view.seen is not None and view.seen.paused:
        return "the Node is marked as paused"
    return unwanted(view)


def unwanted(view: View) -> str:
    """Why the owner of its Machine wants nobody to remedy it, or why that is not known; or nothing."""
    if view.machine_seen is None:
        return ""
    about, clusters = view.machine_seen.host, view.observed.clusters
    wish = wish_of_machine(view.subject, about)
    if wish or not about.cluster or view.settings.api.machines != "cluster-api":
        return wish
    if clusters.late:
        return f"whether Cluster {about.cluster} is paused is not known: {clusters.late}"
    return wish_of_cluster(about.cluster, clusters.pauses.get(about.cluster))


@frozen
class Valves:
    """What one plan has counted. `most` nodes may be asked for at once; `busy` are worked on. Of `control_plane` nodes
    that run the control plane `busy_control_plane` are worked on, or have not come back since. `calm_at`: see Term."""

    asked: int
    most: int
    busy: int
    busy_control_plane: int
    control_plane: int
    calm_at: float
    allowance: Allowance

    @classmethod
    def of(cls, settings: Settings, observed: Observed, term: Term, now: float) -> Valves:
        listed = (observed.machines[subject] for subject in observed.requests if subject in observed.machines)
        on_hosts = settings.power.cycle
        found = [seen for seen in listed if not _begins_nothing(observed, seen, on_hosts)]
        asked = [seen.machine for seen in found]
        names = {seen.machine.node for seen in found if seen.machine.node in observed.enrolled}
        names |= {_called(seen.machine) for seen in found if on_hosts and seen.host.host is not None}
        nodes = len(_within_reach(observed) if on_hosts else observed.enrolled)
        most = most_of(settings.leader.max_unhealthy, nodes, 1)
        storm = len(names) > most
        busy = {machine.node for machine in asked if isinstance(machine.condemnation, Condemned)}
        deleted = {name for name, stored in observed.backups.items() if not is_early(stored)}
        busy |= deleted | {name for name in observed.marked if begun(observed.nodes.get(name))}
        off = _kept_off(observed)
        control_plane = {name for name, seen in observed.nodes.items() if seen.control_plane}
        control_plane |= {name for name, stored in observed.backups.items() if _of_control_plane(stored)}
        absent = {name for name in control_plane if _absent(observed.nodes.get(name))}
        calm_at = now + settings.leader.cool_down_seconds if storm else term.calm_at
        worked_on = busy & observed.enrolled | deleted | off  # about all others nothing can be done
        busy_control_plane = (busy | off) & control_plane | absent
        most_begin = most_of(settings.leader.resets_per_hour, nodes, LEAST_RESETS_PER_HOUR)
        allowance = Allowance.of(most_begin, observed, term, now)
        return cls(len(names), most, len(worked_on), len(busy_control_plane), len(control_plane), calm_at, allowance)

    def after(self, course: Course, view: View) -> Valves:
        """With this node counted as worked on, if it is about to be."""
        seen = view.seen
        begins = course.stage is Stage.CONDEMNING or isinstance(course.step, (SwitchOff, SpendBudget))
        if not begins or view.condemned is not None or begun(seen):
            return self
        control_plane = seen is not None and seen.control_plane
        return replace(
            self,
            busy=self.busy + 1,
            busy_control_plane=self.busy_control_plane + control_plane,
            allowance=self.allowance.after(course),
        )

    def held(self, view: View) -> Course | None:
        """Why this node, whose remediation has not begun yet, must wait. None if it may begin."""
        why, until_at = self._held(view)
        return view.waits(Stage.HELD, why, until_at) if why else self.allowance.held(view)

    def _held(self, view: View) -> tuple[str, float | None]:
        settings, now = view.settings.leader, view.now
        settled_at = view.term.began_at + settings.start_grace_seconds
        if now < settled_at:
            return "this leader has just begun, and condemns nobody yet", settled_at
        if self.asked > self.most:
            return f"{self.asked} nodes are asked for, and leader.max_unhealthy allows {self.most}", None
        if now < self.calm_at:
            return (
                "too many nodes were asked for a while ago, and nobody is condemned until that has settled",
                self.calm_at,
            )
        if self.busy >= settings.max_at_once:
            return f"{self.busy} nodes are worked on already, and leader.max_at_once is {settings.max_at_once}", None
        control_plane = view.seen is not None and view.seen.control_plane
        others, spare = self.busy_control_plane - _absent(view.seen), (self.control_plane - 1) // 2
        if control_plane and others >= spare:
            return f"one more of {self.control_plane} control-plane nodes would leave no quorum", None
        return "", None


def begun(seen: NodeSeen | None) -> bool:
    """Whether a leader has laid hands on this Node."""
    return seen is not None and (seen.node.tainted or seen.node.freeing is not None)


def _begins_nothing(observed: Observed, seen: MachineSeen, on_hosts: bool) -> bool:
    """Whether nobody requests it, or only again, before its host is back (rule 16)."""
    machine = seen.machine
    if not isinstance(machine.condemnation, Requested):
        return isinstance(machine.condemnation, NotRequested)
    node = observed.nodes.get(machine.node or "")
    return node is not None and node.away and not (on_hosts and seen.host.host is not None)


def _called(machine: Machine) -> str:
    return machine.node or machine.subject


def _within_reach(observed: Observed) -> set[str]:
    """Whom something can be done about: who is enrolled, and who stands on a BareMetalHost."""
    claims = {subject for claimants in observed.hosts.claims.values() for subject in claimants}
    on_hosts = (observed.machines[subject].machine for subject in claims if subject in observed.machines)
    return {*observed.enrolled, *map(_called, on_hosts)}


def _kept_off(observed: Observed) -> set[str]:
    """Whose hosts our requests keep off."""
    requests = (observed.hosts.seen[name].request for name in observed.hosts.held)
    return {each.node or each.machine for each in requests if isinstance(each, PowerRequest)}


def _of_control_plane(stored: BackupSeen) -> bool:
    return isinstance(stored.backup, Backup) and not stored.backup.labels.keys().isdisjoint(CONTROL_PLANE_LABELS)


def _absent(seen: NodeSeen | None) -> bool:
    """Whether the host was freed, and has not come back since."""
    return seen is None or (seen.freed is not None and seen.node.agent is None)


def most_of(share: str, nodes: int, least: int) -> int:
    """Of a part of all nodes at least so many."""
    if not share.endswith("%"):
        return int(share)
    percent = int(share[:-1])
    return max(nodes * percent // 100, least if percent else 0)
