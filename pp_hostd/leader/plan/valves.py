"""Safety valves: what keeps the leader from condemning too many, too soon, or against a person's wish."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Set

from pp_hostd.frozen import frozen, replace
from pp_hostd.leader.node_memory import NextAction, Stage, Term
from pp_hostd.leader.plan.view import View
from pp_hostd.leader.steps.own_objects import HandOver, SpendBudget
from pp_hostd.leader.steps.port import LeaderStep
from pp_hostd.model.backup import Backup
from pp_hostd.model.budget import MAX_BEGINNINGS, Beginning, Budget
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.control import Grant, Maintenance, Pause
from pp_hostd.model.keys import BUDGET, NAMESPACE
from pp_hostd.model.machine import Machine
from pp_hostd.model.machine_details import wish_of_cluster, wish_of_machine
from pp_hostd.model.moment import render_moment
from pp_hostd.model.observed import (
    CONTROL_PLANE_LABELS,
    BackupSeen,
    BudgetSeen,
    MachineSeen,
    NodeSeen,
    Observed,
    is_early,
)
from pp_hostd.model.promise import Withdrawn
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings


@frozen
class Allowance:
    """`most` remediations may begin in an hour. `counted` are those that have, each with the time until which it
    counts. `stored` is the record; None if there is none. `writing`: this plan writes another beginning."""

    most: int
    counted: Mapping[Beginning, float]
    stored: BudgetSeen | None
    wallclock_seconds: int
    writing: bool = False

    @classmethod
    def of(cls, most: int, observed: Observed, term: Term, now: float) -> Allowance:
        """`most` is what the settings allow; a person may have granted more."""
        wallclock_seconds, grant = term.draw.wallclock_seconds, observed.control.grant
        if isinstance(grant, Grant) and grant.counts_at(wallclock_seconds):
            most += grant.more
        stored = observed.budget
        budget = Budget() if stored is None or isinstance(stored.budget, Unreadable) else stored.budget
        counted = {}
        for each in budget.beginnings:
            until_at = now + each.counts_for_seconds(wallclock_seconds)
            until_at = min(until_at, term.beginnings.get(each, until_at))  # whatever the wall clock does meanwhile
            if now < until_at:
                counted[each] = until_at
        return cls(min(most, MAX_BEGINNINGS), counted, stored, wallclock_seconds)

    @property
    def left(self) -> int:
        return max(0, self.most - len(self.counted))

    def held(self, view: View) -> NextAction | None:
        """Why this remediation must not begin yet. None if it may, or is counted already, or costs nothing."""
        if self._is_paid(view):
            return None
        if self.stored is not None and isinstance(self.stored.budget, Unreadable):
            where = f"ConfigMap {NAMESPACE}/{BUDGET}"
            return view.refuses(f"{where}: {self.stored.budget}. Delete it: the count of this hour then begins again")
        if not self.left:
            return view.waits(Stage.OVER_BUDGET, self._told(), min(self.counted.values(), default=None))
        return view.waits(Stage.HELD, "waiting while the leader counts another remediation") if self.writing else None

    def next_write(self, view: View, stage: Stage) -> NextAction | None:
        """The step that counts this remediation. None once it is counted, or if it costs nothing."""
        if self._is_paid(view):
            return None
        stored = self.stored
        budget = Budget() if stored is None or isinstance(stored.budget, Unreadable) else stored.budget
        budget = budget.after(Beginning(view.name or view.machine_key, self.wallclock_seconds))
        step = SpendBudget(budget, None if stored is None else stored.resource_version)
        return view.does(stage, step, "counting it among the remediations of this hour")

    def after(self, next_action: NextAction) -> Allowance:
        return replace(self, writing=True) if isinstance(next_action.step, SpendBudget) else self

    def _is_paid(self, view: View) -> bool:
        """Whether it is counted, has begun before (as a power cycle), or finds nothing left to reset."""
        return view.memory.counted in self.counted or view.memory.fell_back or _is_away(view)

    def _told(self) -> str:
        begun = f"{len(self.counted)} remediations have begun in the last hour"
        return f"{begun}, and leader.resets_per_hour allows {self.most}. To allow more: pp-leader resume --more NUMBER"


def _is_away(view: View) -> bool:
    """Whether the node was freed and is not back: nothing of it is lost by a reset."""
    seen, stored = view.seen, view.licence
    if seen is not None and seen.ready:
        return False
    if stored is not None:
        return not isinstance(stored.backup, Unreadable) and (seen is None or seen.node.uid != stored.backup.uid)
    freed = seen is not None and seen.freed is not None and seen.node.agent is None
    return freed and view.name in view.observed.enrolled


SETTLE_SECONDS = 60.0
"""So much longer a control-plane node counts as lost that the leader has worked on. A host may be off that its operator
still calls on, and whose Node is still called Ready."""
RESIGN_SECONDS = 300.0
"""Between two times that a leader gives its Lease up: more than it takes to free a node and give it back."""
LEAST_RESETS_PER_HOUR = 3
"""Where leader.resets_per_hour is a part of all nodes."""


def paused(view: View) -> str:
    """Returns why the leader must stand still, for all or for this node, and by whose wish; empty if it need not."""
    order = view.observed.control.paused
    if isinstance(order, Pause):
        return f"paused by {order.who}: {order.why}. To go on: pp-leader resume"
    if isinstance(order, Unreadable):
        return f"paused: {order}"
    if view.seen is not None and view.seen.paused:
        return "the Node is marked as paused"
    return unwanted(view)


def unwanted(view: View) -> str:
    """Why the owner of its Machine wants nobody to remedy it, or why that is not known; empty if none."""
    if view.machine_seen is None:
        return ""
    about, clusters = view.machine_seen.host, view.observed.clusters
    wish = wish_of_machine(view.machine_key, about)
    if wish or not about.cluster or view.settings.api.machines != "cluster-api":
        return wish
    if clusters.late:
        return f"whether Cluster {about.cluster} is paused is not known: {clusters.late}"
    return wish_of_cluster(about.cluster, clusters.pauses.get(about.cluster))


def in_maintenance(view: View) -> str:
    """By whose order nothing is begun about this node: its own, or one for all hosts. Empty if by none."""
    record, order = None if view.seen is None else view.seen.node.agent, view.observed.control.maintenance
    if isinstance(record, Withdrawn) and record.maintenance is not None:
        own = record.maintenance
        return f"it is in maintenance by {own.who} until {render_moment(own.until_wallclock)}: {own.why}"
    if not isinstance(order, Maintenance) or order.until_wallclock.timestamp() <= view.term.draw.wallclock_seconds:
        return ""
    return f"all hosts are in maintenance by {order.who} until {render_moment(order.until_wallclock)}: {order.why}"


class Limit(enum.Enum):
    """The limits that keep remediations from beginning."""

    PAUSED = "paused"
    MAINTENANCE = "maintenance"
    STARTING = "starting"
    STORM = "storm"
    COOL_DOWN = "cool-down"
    MAX_AT_ONCE = "max-at-once"
    QUORUM = "quorum"
    BUDGET = "budget"


@frozen
class Holds:
    """A limit that holds, the sentence that says why, and until when, if that is known."""

    limit: Limit
    sentence: str
    until_at: float | None = None


@frozen
class Reach:
    """The answers of all requesters and remedies about the cluster. `requested` are the machines whose requests count.
    `within_reach` are those about which something can be done, and `at_work_on` those that a remedy's own marks tell to
    be worked on: nodes by name, machines without one by key. `down` are the control-plane nodes whose host is certainly
    not up, `unreachable` all nodes that nobody reaches. `first_steps` are those by which a remediation begins."""

    requested: tuple[MachineSeen, ...]
    within_reach: Set[str]
    at_work_on: Set[str]
    down: Set[str]
    unreachable: Set[str]
    first_steps: tuple[type[LeaderStep], ...]


@frozen
class Valves:
    """The counts of one plan. `storm` says that too many nodes are sick at once; empty if they are not. `busy` are
    worked on. Of the `control_plane` nodes `busy_control_plane` are worked on or were just now, have not come back
    since, or have a host that is off; nobody reaches the `silent_control_plane`. `labelled`, `settles_at` and
    `calm_at`: see Term."""

    storm: str
    busy: int
    busy_control_plane: Set[str]
    silent_control_plane: Set[str]
    control_plane: Set[str]
    labelled: Mapping[str, str]
    settles_at: Mapping[str, float]
    calm_at: float
    allowance: Allowance
    first_steps: tuple[type[LeaderStep], ...]
    beginning: int = 0
    """So many remediations this very plan begins."""

    @classmethod
    def of(cls, settings: Settings, observed: Observed, term: Term, now: float, reach: Reach) -> Valves:
        asked = [seen.machine for seen in reach.requested]
        busy = {machine.node for machine in asked if isinstance(machine.condemnation, Condemned)}
        deleted = {name for name, stored in observed.backups.items() if not is_early(stored)}
        busy |= deleted | {name for name in observed.marked if begun(observed.nodes.get(name))}
        labelled = _labelled(observed, term)
        named = {seen.machine.node or seen.machine.machine_key: seen.host.control_plane for seen in reach.requested}
        control_plane = {
            node for node, says in named.items() if says or (node in labelled and node not in observed.nodes)
        }
        control_plane |= {name for name, uid in labelled.items() if _is_of_control_plane(observed.nodes.get(name), uid)}
        control_plane |= {name for name, stored in observed.backups.items() if _of_control_plane(stored)}
        absent = {name for name in control_plane if _absent(observed.nodes.get(name))}
        storm = _storm(settings.leader.max_unhealthy, observed, asked, deleted, reach.within_reach)
        calm_at = now + settings.leader.cool_down_seconds if storm else term.calm_at
        worked_on = busy & observed.enrolled | deleted | reach.at_work_on  # about all others nothing can be done
        now_busy = control_plane & (busy | reach.at_work_on)
        settles_at = {name: at for name, at in term.settles_at.items() if now < at}
        settles_at.update(dict.fromkeys(now_busy, now + SETTLE_SECONDS))
        busy_control_plane = control_plane & settles_at.keys() | absent | reach.down
        most_begin = most_of(settings.leader.resets_per_hour, len(reach.within_reach), LEAST_RESETS_PER_HOUR)
        return cls(
            storm=storm,
            busy=len(worked_on),
            busy_control_plane=busy_control_plane,
            silent_control_plane=control_plane & reach.unreachable,
            control_plane=control_plane,
            labelled=labelled,
            settles_at=settles_at,
            calm_at=calm_at,
            allowance=Allowance.of(most_begin, observed, term, now),
            first_steps=(SpendBudget, *reach.first_steps),
        )

    def after(self, next_action: NextAction, view: View) -> Valves:
        """With this node counted as worked on, if it is about to be."""
        seen = view.seen
        begins = next_action.stage is Stage.CONDEMNING or isinstance(next_action.step, self.first_steps)
        if not begins or view.condemned is not None or begun(seen):
            return self
        own = self.control_plane & {view.name or view.machine_key}
        return replace(
            self,
            busy=self.busy + 1,
            beginning=self.beginning + 1,
            busy_control_plane=self.busy_control_plane | own,
            allowance=self.allowance.after(next_action),
        )

    def held(self, view: View) -> NextAction | None:
        """Why this node, whose remediation has not begun yet, must wait. None if it may begin."""
        why, until_at = self._held(view)
        return view.waits(Stage.HELD, why, until_at) if why else self.allowance.held(view)

    def limits(self, settings: Settings, began_at: float, now: float) -> Iterator[Holds]:
        """Those that hold every node back, in a term that began then."""
        settled_at, most = began_at + settings.leader.start_grace_seconds, settings.leader.max_at_once
        if now < settled_at:
            yield Holds(Limit.STARTING, "this leader has just begun, and condemns no node yet", settled_at)
        if self.storm:
            yield Holds(Limit.STORM, self.storm)
        elif now < self.calm_at:
            told = "too many nodes were sick a while ago; no node is condemned until that has settled"
            yield Holds(Limit.COOL_DOWN, told, self.calm_at)
        if self.busy >= most:
            told = f"the leader works on {self.busy} nodes already, and leader.max_at_once is {most}"
            yield Holds(Limit.MAX_AT_ONCE, told)

    def leaves_no_quorum(self, own: str) -> bool:
        """Whether the remediation of this node, if it is one of the control plane, would leave no majority of it. One
        that nobody reaches is lost already: others that are silent, too, do not hold it."""
        silent: Set[str] = set() if own in self.silent_control_plane else self.silent_control_plane
        others, spare = (self.busy_control_plane | silent) - {own}, (len(self.control_plane) - 1) // 2
        return own in self.control_plane and len(others) >= spare

    def _held(self, view: View) -> tuple[str, float | None]:
        for limit in self.limits(view.settings, view.term.began_at, view.now):
            return limit.sentence, limit.until_at
        if self.leaves_no_quorum(view.name or view.machine_key):
            return f"one more of {len(self.control_plane)} control-plane nodes would leave no quorum", None
        return "", None


def _storm(share: str, observed: Observed, asked: list[Machine], deleted: Set[str], within_reach: Set[str]) -> str:
    """Too many nodes within reach are sick at once: their remediation is requested, or they do not respond. A Node that
    a leader deleted does not respond until its kubelet says Ready; one that never reported counts not."""
    requested = {machine.node or machine.machine_key for machine in asked} & within_reach
    away = {name for name in deleted if name not in observed.nodes or not observed.nodes[name].ready}
    silent = (observed.not_ready | away) & within_reach
    sick, most = len(requested | silent), most_of(share, len(within_reach), 1)
    if sick <= most:
        return ""
    each = f"remediation is requested for {len(requested)} nodes, and {len(silent)} nodes do not respond"
    return f"{each}: together {sick} of {len(within_reach)}, and leader.max_unhealthy allows {most}"


def handed_over(view: View) -> NextAction | None:
    """Rule 14: a leader on the very host that is to die gives its Lease up. None if this one runs elsewhere. Not again
    soon: where nobody else keeps the Lease, no other node's remediation would ever come to its end."""
    if not view.name or view.name != view.term.own_node:
        return None
    told, again_at = "this leader runs on that very host: another must lead", view.term.resigned_at + RESIGN_SECONDS
    if view.now < again_at:
        return view.waits(Stage.HELD, f"{told}, and none has kept the Lease that this one gave up", again_at)
    return view.does(Stage.HELD, HandOver(), told)


def begun(seen: NodeSeen | None) -> bool:
    """Whether a leader has laid hands on this Node."""
    return seen is not None and (seen.node.tainted or seen.node.freeing is not None)


def _labelled(observed: Observed, term: Term) -> dict[str, str]:
    """The uid of the Node of each name that bore the label of the control plane last, as far as this term has seen.
    Somebody has taken it off a Node that is there and has lost it; another Node of that name is no such word."""
    nodes = observed.nodes
    kept = {name: uid for name, uid in term.labelled.items() if name not in nodes or nodes[name].node.uid != uid}
    return {**kept, **{name: seen.node.uid for name, seen in nodes.items() if seen.control_plane}}


def _is_of_control_plane(seen: NodeSeen | None, labelled_uid: str) -> bool:
    """A kubelet that registers its Node again can't give it the label, and runs on the same host."""
    return seen is not None and (seen.control_plane or seen.node.uid != labelled_uid)


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
