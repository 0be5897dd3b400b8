"""The facts that probes find, and the lines that are made of them. A fact that no probe could find is `NotKnown`."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from pp_hostd.agent.act.watchdog_device import Seen
from pp_hostd.config import ConfigError, Loaded
from pp_hostd.errors import UserError
from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import ApiError
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.gate_kind import GateFacts
from pp_hostd.model.roster import Electorate, Member
from pp_hostd.model.settings import Settings
from pp_hostd.peers.client import Heard, Silence
from pp_hostd.peers.signing import Keyring

Properties = Mapping[str, str]
"""The properties that `systemctl show` prints about one unit, or about systemd itself."""


@frozen
class NotKnown:
    """`advice` is what to do in order to know. `forbidden`: to this user, so nothing need be wrong."""

    why: str
    advice: str = ""
    forbidden: bool = False

    @classmethod
    def by(cls, error: UserError) -> NotKnown:
        if "permission denied" in error.message:
            return cls(error.message, "Run this as root.", forbidden=True)
        return cls(error.message, " ".join(error.hint.split()))


@frozen
class DaemonFacts:
    """`pid` is 0 when it does not run; `report` is what it says; the rest is of its process, None if unknown."""

    pid: int = 0
    report: Mapping[str, Any] | NotKnown = NotKnown("the daemon does not run")
    locked_limit: str | None = None
    locked_kib: int | None = None


@frozen
class KernelFacts:
    """None is unknown, or a kernel without it. `hypervisor` is who made the virtual machine that this kernel runs in;
    empty on bare metal."""

    panic_seconds: int | None = None
    sysrq_mask: int | None = None
    sysrq_trigger: bool = False
    crash_kernel_loaded: bool | None = None
    hypervisor: str = ""


@frozen
class Rival:
    """A process of another program that resets hosts, or feeds watchdogs."""

    program: str
    pid: int


@frozen
class SystemdFacts:
    """`manager` is systemd itself, `units` go by their names."""

    manager: Properties
    units: Mapping[str, Properties]


@frozen
class Attempt:
    """One call that the agent needs, really tried. `right` is how RBAC names it; no error: it was granted."""

    check: str
    right: str
    error: ApiError | NotKnown | None = None
    took_seconds: float = 0.0


@frozen
class Expiring:
    """A certificate or token, and when it ends. `renewed`: it stands in a file, which others renew in time."""

    check: str
    what: str
    ends_wallclock: datetime | NotKnown
    renewed: bool = False


@frozen
class AccessFacts:
    """`trouble` is why the kubeconfig can't be used at all; `exposed` how others may read it."""

    path: str
    trouble: str = ""
    hint: str = ""
    exposed: str = ""
    attempts: tuple[Attempt, ...] = ()
    expiring: tuple[Expiring, ...] = ()


@frozen
class RosterFacts:
    """The newest roster, and whether it was read from the API just now or was kept by the daemon."""

    electorate: Electorate
    kept: bool


@frozen
class Link:
    name: str
    is_up: bool
    has_carrier: bool
    is_hardware: bool
    addresses: tuple[str, ...]


@frozen
class KeyFacts:
    """`owner` is the user id that the file belongs to. A keyring without keys signs nothing."""

    path: str
    keyring: Keyring
    owner: int


@frozen
class PeerFacts:
    """The outcomes for each peer: of a signed question, of a knock, and of an unsigned question over plain HTTP (the
    status of the reply, or why there is none). `heard_by` says who listens here when a peer calls back."""

    asked: tuple[Member, ...]
    answers: Mapping[str, PeerAnswered]
    knocks: Mapping[str, Heard | Silence]
    unsigned: Mapping[str, int | str] | NotKnown
    heard_by: str


@frozen
class Facts:
    """Everything. Of `settings` only those that were read count; a broken configuration has none."""

    now_wallclock: datetime
    loaded: Loaded | ConfigError | NotKnown
    node: str
    daemon: DaemonFacts | NotKnown
    watchdog: Seen | NotKnown
    other_watchdogs: Sequence[str]
    rivals: Sequence[Rival] | NotKnown
    kernel: KernelFacts | NotKnown
    systemd: SystemdFacts | NotKnown
    gate: GateFacts | NotKnown
    access: AccessFacts | NotKnown
    roster: RosterFacts | NotKnown
    links: Sequence[Link] | NotKnown
    key: KeyFacts | NotKnown
    peers: PeerFacts | NotKnown

    @property
    def settings(self) -> Settings | None:
        return self.loaded.settings if isinstance(self.loaded, Loaded) else None

    @property
    def report(self) -> Mapping[str, Any]:
        """The daemon's report; empty if there is none."""
        found = self.daemon.report if isinstance(self.daemon, DaemonFacts) else None
        return {} if found is None or isinstance(found, NotKnown) else found

    @property
    def own_member(self) -> Member | None:
        return self.roster.electorate.member(self.node) if isinstance(self.roster, RosterFacts) else None


class Outcome(enum.Enum):
    OK = "ok"
    WARNING = "warning"
    FAILURE = "failure"


@frozen
class Line:
    """`advice` is empty only where all is well."""

    check: str
    outcome: Outcome
    found: str
    advice: str = ""

    def fields(self) -> dict[str, str]:
        return {"check": self.check, "outcome": self.outcome.value, "found": self.found, "advice": self.advice}


def ok(check: str, found: str) -> Line:
    return Line(check, Outcome.OK, found)


def warning(check: str, found: str, advice: str) -> Line:
    return Line(check, Outcome.WARNING, found, advice)


def failure(check: str, found: str, advice: str) -> Line:
    return Line(check, Outcome.FAILURE, found, advice)


def not_checked(check: str, why: str, advice: str) -> Line:
    """Returns a warning: an unknown fact is no failure, but nobody should think that it was checked."""
    return Line(check, Outcome.WARNING, f"not checked: {why}", advice)
