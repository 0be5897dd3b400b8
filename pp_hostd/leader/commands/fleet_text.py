"""The fleet as `pp-leader status` prints it: first what needs a person; well hosts are one line once they are many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from pp_hostd.leader.fleet import WAITING_STAGES, WELL, Fleet, FleetHost, Limit, Ongoing, Remediation
from pp_hostd.leader.leadership import due_text, grant_text
from pp_hostd.model.leader_status import LeaderStatus
from pp_hostd.model.lease import host_of_holder
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import Unreadable
from pp_hostd.service.screen import Cell, Colour, Row, Screen

BAR_CELLS = 16
MOST_WELL = 20
"""So many well hosts are listed one by one; of more there is one line."""
LATE_SECONDS = 10
"""After the end of the wait the leader still checks once more, and deletes."""
MOST_UNWELL = 50
MOST_ONGOING = 20
WIDER = "pp-leader status -o wide"
HOSTS = ("NODE", "PROTECTED", "READY", "WATCHDOG", "GATE", "NOTE")
AGENT = ("VERSION", "CERTIFICATE ENDS")
HOSTS_WIDE = ("NODE", "ROLES", "PROTECTED", "SINCE", "READY", "STATE", "WATCHDOG", "T", "W", "GATE", *AGENT, "NOTE")


def fleet_text(fleet: Fleet, screen: Screen, *, wide: bool) -> str:
    parts = [screen.labelled(list(_summary(fleet, wide))), _ongoing(fleet, screen, wide), _hosts(fleet, screen, wide)]
    return "\n\n".join(filter(None, parts))


# The leader, and the limits that hold.


def _summary(fleet: Fleet, wide: bool) -> Iterator[tuple[str, Cell | str]]:
    leadership, said = fleet.leadership, fleet.leadership.status
    status = said if isinstance(said, LeaderStatus) else None
    yield "leader", _leader(fleet, status)
    if status is not None and not _is_current(fleet, status):
        since = render_moment(status.since_wallclock)
        yield "last said", Cell(f"by {host_of_holder(status.leader)}, who began to lead at {since}", Colour.YELLOW)
    if fleet.hosts:
        yield "hosts", counts(fleet)
    yield from _versions(fleet)
    if fleet.resets_left is not None and status is not None:
        yield "budget", f"{fleet.resets_left} of {status.resets_per_hour} remediations may still begin in this hour"
    if fleet.control.grant is not None:
        yield "granted", grant_text(fleet.control.grant, fleet.at_wallclock)
    for limit in fleet.limits:
        if limit.sentence != leadership.sentence():
            yield limit.kind.value, Cell(_limit(limit), Colour.YELLOW)
    if isinstance(said, Unreadable):
        yield "trouble", Cell(str(said), Colour.RED)
    elif wide and said is not None:
        yield from _details(said)
    if fleet.not_enrolled:
        yield "no care", _not_enrolled(fleet)


def _versions(fleet: Fleet) -> Iterator[tuple[str, str]]:
    found = Counter(host.info.version for host in fleet.hosts if host.info is not None)
    if found:
        yield "agents", ", ".join(f"{number} of version {version}" for version, number in found.most_common())


def _details(status: LeaderStatus) -> Iterator[tuple[str, str]]:
    yield "mode", status.mode
    yield "roster", f"version {status.roster}, {status.nodes} nodes" if status.roster else "none yet"
    if status.certificate_ends_wallclock is not None:
        yield "certificate", f"the leader's ends at {render_moment(status.certificate_ends_wallclock)}"


def _leader(fleet: Fleet, status: LeaderStatus | None) -> Cell:
    told = fleet.leadership.sentence()
    if status is not None and _is_current(fleet, status):
        return Cell(f"{told} since {render_moment(status.since_wallclock)}")
    return Cell(told, None if fleet.leadership.leads else Colour.RED)


def _is_current(fleet: Fleet, status: LeaderStatus) -> bool:
    return fleet.leadership.leads and fleet.leadership.holder == status.leader


def counts(fleet: Fleet) -> str:
    """The enrolled hosts in one line, the usual ones first."""
    found = Counter(map(_group, fleet.hosts))
    order = ("protected", "not protected", "unknown", "in maintenance", "under remediation", "not back", "missing")
    return f"{len(fleet.hosts)} enrolled: {', '.join(f'{found[each]} {each}' for each in order if found[each])}"


def _group(host: FleetHost) -> str:
    if host.remediation is not Remediation.NONE:
        return "under remediation"
    if not host.present:
        return "missing"
    if host.away:
        return "not back"
    if host.maintenance is not None:
        return "in maintenance"
    return {True: "protected", False: "not protected", None: "unknown"}[host.protected]


def _limit(limit: Limit) -> str:
    return limit.sentence if limit.until_wallclock is None else f"{limit.sentence} (until {_clock(limit)})"


def _clock(limit: Limit) -> str:
    return "" if limit.until_wallclock is None else render_moment(limit.until_wallclock.replace(microsecond=0))


def _not_enrolled(fleet: Fleet) -> str:
    some, most = ", ".join(fleet.not_enrolled[:3]), len(fleet.not_enrolled)
    return f"{most} Nodes are not enrolled: {some}{', ...' if most > 3 else ''}. To enrol one: pp-leader enroll NODE"


# The present work.


def _ongoing(fleet: Fleet, screen: Screen, wide: bool) -> str:
    if not fleet.ongoing:
        return "No remediation is requested or running."
    urgent = sorted(fleet.ongoing, key=_urgency)
    shown = urgent if wide else urgent[:MOST_ONGOING]
    rows: list[Row] = [_work(each, screen, fleet.at_wallclock) for each in shown]
    text = screen.table(("NOW", "STAGE", "PROGRESS", "WORK"), rows)
    return text if shown == urgent else f"{text}\n{len(urgent) - len(shown)} more: {WIDER}"


def _urgency(ongoing: Ongoing) -> int:
    return 0 if ongoing.told.refused else 2 if ongoing.told.stage in WAITING_STAGES else 1


def _work(ongoing: Ongoing, screen: Screen, at: datetime) -> Row:
    told = ongoing.told
    due = "" if told.refused or ongoing.part is not None else due_text(told, at)
    colour = Colour.RED if told.refused else None if told.stage in WAITING_STAGES else Colour.BOLD
    name = told.node or told.machine or "(no node)"
    return Cell(name, colour), told.stage, progress(ongoing, screen, at), f"{told.sentence}{due and f' ({due})'}"


def progress(ongoing: Ongoing, screen: Screen, at: datetime) -> Cell:
    """Its bar with seconds, if a time is promised; else how long it has been so."""
    told, part = ongoing.told, ongoing.part
    if told.refused:
        return Cell("needs an operator", Colour.RED)
    if part is None or told.began_wallclock is None:
        return Cell(f"for {_seconds(told.since_wallclock, at)}")
    bar = screen.bar(part, BAR_CELLS)
    if part == 1:
        return Cell(f"{bar} freed", Colour.GREEN)
    promised = "" if told.dead_by_wallclock is None else f"/{_seconds(told.began_wallclock, told.dead_by_wallclock)}"
    late = told.dead_by_wallclock is not None and (at - told.dead_by_wallclock).total_seconds() > LATE_SECONDS
    text = f"{bar} {_number(told.began_wallclock, at)}{promised}{' late' if late else ''}"
    return Cell(text, Colour.RED if late else Colour.YELLOW)


def _seconds(since: datetime, at: datetime) -> str:
    return f"{_number(since, at)} s"


def _number(since: datetime, at: datetime) -> int:
    return max(0, round((at - since).total_seconds()))


# The hosts.


def _hosts(fleet: Fleet, screen: Screen, wide: bool) -> str:
    if not fleet.hosts:
        return "No host is enrolled. To enrol one: pp-leader enroll NODE"
    well = [host for host in fleet.hosts if host.rank == WELL]
    unwell = fleet.unwell if wide else fleet.unwell[:MOST_UNWELL]
    listed = well if wide or len(well) <= MOST_WELL else []
    row, header = (_wide_row, HOSTS_WIDE) if wide else (_row, HOSTS)
    text = screen.table(header, [row(host) for host in (*unwell, *listed)]) if unwell or listed else ""
    left = len(fleet.unwell) - len(unwell)
    more = [f"{left} more need attention: {WIDER}"] if left else []
    if len(listed) < len(well):
        more.append(f"{len(well)} {'more ' if unwell else ''}hosts are protected and ready. To list them: {WIDER}")
    return "\n".join([*filter(None, [text]), *more])


def _row(host: FleetHost) -> Row:
    ready = "yes" if host.ready else Cell("no", Colour.YELLOW)
    return _name(host), _protected(host), ready, host.watchdog or "-", host.gate or "-", note(host)


def _wide_row(host: FleetHost) -> Row:
    node, protected, ready, watchdog, gate, words = _row(host)
    return (
        node,
        ",".join(host.roles) or "-",
        protected,
        _moment(host.protected_since_wallclock),
        ready,
        host.state.value,
        watchdog,
        _timeout(host.self_timeout_seconds),
        _timeout(host.watchdog_timeout_seconds),
        gate,
        "-" if host.info is None else host.info.version,
        _moment(None if host.info is None else host.info.certificate_ends_wallclock),
        words,
    )


def _moment(moment: datetime | None) -> str:
    return "-" if moment is None else render_moment(moment)


def _name(host: FleetHost) -> Cell:
    return Cell(host.name, None if host.rank == WELL else Colour.BOLD)


def _protected(host: FleetHost) -> Cell:
    if host.remediation in (Remediation.RUNNING, Remediation.BLOCKED) or not host.present or host.away:
        return Cell("-")
    if host.protected is None:
        return Cell("unknown", Colour.YELLOW)
    if host.protected:
        return Cell("yes", Colour.GREEN)
    return Cell("no", Colour.YELLOW if host.maintenance is not None else Colour.RED)


def _timeout(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:g} s"


def note(host: FleetHost) -> str:
    """Why this host needs a person's eyes; empty if it does not."""
    if host.remediation is Remediation.BLOCKED:
        return "its remediation is blocked"
    if host.remediation is not Remediation.NONE:
        return f"its remediation is {host.remediation.value}"
    if not host.present:
        return f"its Node is missing. See: pp-leader explain {host.name}"
    if host.away:
        return "its workloads are freed, and its host is not back yet"
    if host.maintenance is not None:
        order = host.maintenance
        return f"in maintenance by {order.who} until {render_moment(order.until_wallclock)}: {order.why}"
    if host.protected is None:
        return "no leader has judged it yet"
    said = [] if host.protected else [f"{host.reason}: {host.message}"]
    said += [] if host.ready else ["its Node is not Ready"]
    said += [f"paused. To let the leader work: pp-leader resume --node {host.name}"] if host.paused else []
    return "; ".join(said)
