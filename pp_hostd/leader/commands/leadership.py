"""Who leads, by the Lease, and what the last leader has said of itself: the ConfigMap `leader`."""

from __future__ import annotations

from datetime import datetime

from pp_hostd.frozen import frozen
from pp_hostd.kube.client import Json
from pp_hostd.kube.resources import CONFIG_MAPS, LEASES
from pp_hostd.leader.commands.administrator import Administrator
from pp_hostd.model.keys import HISTORY, LEADER, NAMESPACE, STATUS
from pp_hostd.model.leader_status import LeaderStatus, Told, parse_history, parse_leader_status
from pp_hostd.model.lease import LEASE, Lease, parse_lease
from pp_hostd.model.moment import parse_moment
from pp_hostd.model.record import Unreadable


@frozen
class Leadership:
    """`holder` is empty when nobody holds the Lease; `idle_seconds` have passed since it was renewed, by two clocks on
    the wall, so it is for people alone (rule 13). `status` and `history` are None if no leader has said any yet."""

    holder: str
    idle_seconds: float | None
    duration_seconds: float
    status: LeaderStatus | Unreadable | None
    history: tuple[Told, ...] | Unreadable | None

    @property
    def leads(self) -> bool:
        """Whether somebody does, as far as can be told from here."""
        return bool(self.holder) and self.idle_seconds is not None and self.idle_seconds <= self.duration_seconds

    def sentence(self) -> str:
        if not self.holder:
            return "nobody leads. See on the control-plane hosts: systemctl status pp-leader"
        if self.leads:
            return f"{self.holder} leads"
        idle = "never" if self.idle_seconds is None else f"{self.idle_seconds:.0f} s ago"
        return (
            f"nobody leads, it seems: {self.holder} holds the Lease for {self.duration_seconds:g} s at a time and has "
            f"renewed it {idle}, by the clock of this host. See there: systemctl status pp-leader"
        )


def read_leadership(administrator: Administrator, now: datetime) -> Leadership:
    found = administrator.get(LEASES, LEASE, NAMESPACE)
    lease = None if found is None else parse_lease(found)
    config_map = administrator.get(CONFIG_MAPS, LEADER, NAMESPACE) or {}
    said = config_map.get("data") or {}
    return Leadership(
        holder=lease.holder if isinstance(lease, Lease) else "",
        idle_seconds=idle_seconds(found, now),
        duration_seconds=lease.duration_seconds if isinstance(lease, Lease) else 0,
        status=parse_leader_status(said[STATUS]) if STATUS in said else None,
        history=parse_history(said[HISTORY]) if HISTORY in said else None,
    )


def idle_seconds(lease: Json | None, now: datetime) -> float | None:
    """How long ago a Lease was renewed, by its holder's clock and ours; None if it never was."""
    renewed = parse_moment(str(((lease or {}).get("spec") or {}).get("renewTime")))
    return None if renewed is None else max(0.0, (now - renewed).total_seconds())
