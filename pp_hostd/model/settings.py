"""The one table of settings: name, type, unit, default, what is allowed, and what each means for the host.

The parser, the defaults, `--help`, etc/pp-hostd.toml and docs/settings.md all come from here. Each field of `Settings`
is a TOML table, each field of that a setting. Pure values: `judge` and `plan` take them as an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from typing import Any, Protocol, TypeVar

from pp_hostd.model.address import is_address
from pp_hostd.model.endpoint import parse_endpoint
from pp_hostd.model.record import NAME, UNIT, Form

T = TypeVar("T")
Accepted = TypeVar("Accepted", covariant=True)


class Allowed(Protocol[Accepted]):
    """What a setting may be. Its `str` completes the sentence "must be ..."."""

    def accept(self, value: object) -> Accepted | None:
        """The setting's value for a TOML value, or None if that is not allowed."""


@dataclass(frozen=True)
class Number:
    low: float
    high: float

    def accept(self, value: object) -> float | None:
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            return None
        return float(value) if self.low <= value <= self.high else None  # which no NaN is

    def __str__(self) -> str:
        return f"a number from {self.low:g} to {self.high:g}"


@dataclass(frozen=True)
class Whole:
    low: int
    high: int

    def accept(self, value: object) -> int | None:
        return value if type(value) is int and self.low <= value <= self.high else None

    def __str__(self) -> str:
        return f"a whole number from {self.low} to {self.high}"


@dataclass(frozen=True)
class AbsolutePath:
    def accept(self, value: object) -> str | None:
        return value if isinstance(value, str) and value.startswith("/") and value.isprintable() else None

    def __str__(self) -> str:
        return "a path that begins with /"


@dataclass(frozen=True)
class Choice:
    words: tuple[str, ...]

    def accept(self, value: object) -> str | None:
        return value if isinstance(value, str) and value in self.words else None

    def __str__(self) -> str:
        return f"one of {', '.join(self.words)}"


@dataclass(frozen=True)
class Text:
    """Text of a form from model/record.py, or nothing."""

    form: Form

    def accept(self, value: object) -> str | None:
        return value if isinstance(value, str) and (not value or self.form.pattern.fullmatch(value)) else None

    def __str__(self) -> str:
        return f"{self.form.called}, or empty"


@dataclass(frozen=True)
class Address:
    """An address of this host to listen on."""

    def accept(self, value: object) -> str | None:
        return value if isinstance(value, str) and (not value or is_address(value)) else None

    def __str__(self) -> str:
        return "an IPv4 or IPv6 address, or empty"


@dataclass(frozen=True)
class Servers:
    """API servers by address literal or host name."""

    def accept(self, value: object) -> tuple[str, ...] | None:
        if not isinstance(value, list) or not all(isinstance(url, str) and parse_endpoint(url) for url in value):
            return None
        return tuple(value)

    def __str__(self) -> str:
        return 'a list of https URLs like "https://192.0.2.10:6443" or "https://[2001:db8::10]"'


def setting(default: T, *, allowed: Allowed[T], consequence: str, unit: str = "") -> T:
    """A field of one of the tables below, with all that a person must know about it."""
    about = {"allowed": allowed, "consequence": consequence, "unit": unit}
    value: T = field(default=default, metadata=about)
    return value


@dataclass(frozen=True)
class Api:
    """How the Kubernetes API is reached, and how often it is asked."""

    kubeconfig: str = setting(
        "/etc/pp-hostd/kubeconfig",
        allowed=AbsolutePath(),
        consequence="Credentials and the first API server; a host that cannot use them gets no proof and is not armed.",
    )
    servers: tuple[str, ...] = setting(
        (),
        allowed=Servers(),
        consequence="More API servers than the kubeconfig names, tried in turn; each spares the peers a question.",
    )
    machines: str = setting(
        "node",
        allowed=Choice(("openshift", "cluster-api", "node")),
        consequence="Whose object condemns this host: a Machine of that API, or, without machines, the Node itself.",
    )
    read_interval_seconds: float = setting(
        4.0,
        unit="seconds",
        allowed=Number(0.1, 60),
        consequence="From the start of one read of its own Machine to the next; longer notices a failure later.",
    )
    read_deadline_seconds: float = setting(
        2.0,
        unit="seconds",
        allowed=Number(0.1, 60),
        consequence="A read that takes longer in all has failed; too short and a slow API looks like a dead one.",
    )
    retry_seconds: float = setting(
        1.0,
        unit="seconds",
        allowed=Number(0.1, 60),
        consequence="The pause after a failed read; longer puts off the question to the peers.",
    )


@dataclass(frozen=True)
class Peers:
    """How a host that cannot read the API asks the other hosts about itself."""

    rounds: int = setting(
        4,
        unit="rounds",
        allowed=Whole(1, 20),
        consequence="Every peer is asked within that many rounds; fewer make the sets of peers grow faster.",
    )
    round_seconds: float = setting(
        2.0,
        unit="seconds",
        allowed=Number(0.1, 60),
        consequence="A peer that has not answered by then is silent in this round, and silence does not help the host.",
    )
    port: int = setting(
        9478,
        allowed=Whole(1, 65535),
        consequence="The port on which all hosts answer; another one on some hosts makes those silent to the rest.",
    )
    address: str = setting(
        "",
        allowed=Address(),
        consequence="Where this host answers its peers; empty listens on every address, IPv4 and IPv6.",
    )
    auth: str = setting(
        "key",
        allowed=Choice(("key", "none")),
        consequence="With none, whoever reaches the port can answer for a host, and so keep it alive or reset it.",
    )
    key_file: str = setting(
        "/etc/pp-hostd/peer.key",
        allowed=AbsolutePath(),
        consequence="The cluster's peer key, for root only: a line signs, a second one is also accepted (rotation).",
    )


@dataclass(frozen=True)
class Watchdog:
    """The device that resets a host which no longer feeds it."""

    device: str = setting(
        "/dev/watchdog",
        allowed=AbsolutePath(),
        consequence="If it can't be used, softdog is tried, then software alone, which the leader refuses by default.",
    )
    timeout_seconds: int = setting(
        10,
        unit="seconds",
        allowed=Whole(2, 120),
        consequence="How long the host lives without being fed; the leader waits for twice this time.",
    )


@dataclass(frozen=True)
class Agent:
    """When a host gives itself up."""

    node_name: str = setting(
        "",
        allowed=Text(NAME),
        consequence="The name of this host's Node; empty is the host's own name.",
    )
    mode: str = setting(
        "enforce",
        allowed=Choice(("enforce", "dry-run")),
        consequence="A dry run judges and reports. It touches neither watchdog nor host, and on the Node it withdraws "
        "no more than a promise that an earlier run left.",
    )
    gate: str = setting(
        "hold",
        allowed=Choice(("hold", "taint", "none")),
        consequence="What keeps workloads off a boot without a promise: hold the kubelet, rely on the leader's taint "
        "(hosts whose kubelet starts the control plane), or nothing, which the promise then says.",
    )
    kubelet_unit: str = setting(
        "kubelet.service",
        allowed=Text(UNIT),
        consequence="The unit that the gate holds: kubelet.service, k3s-agent.service, rke2-agent.service.",
    )
    metrics_address: str = setting(
        "127.0.0.1",
        allowed=Address(),
        consequence="Where /metrics and /healthz are served; any other than loopback shows them to the network.",
    )
    metrics_port: int = setting(
        9479,
        allowed=Whole(0, 65535),
        consequence="The port of /metrics and /healthz; 0 serves neither.",
    )
    self_timeout_seconds: float = setting(
        22.0,
        unit="seconds",
        allowed=Number(1, 600),
        consequence="Without a proof for that long the host stops feeding its watchdog; the leader waits for it too.",
    )


@dataclass(frozen=True)
class Leader:
    """When the leader may declare the workloads of a host dead."""

    # With the bounds of the timeouts above, 1 s is more than two clocks can drift apart at 1000 ppm.
    margin_seconds: float = setting(
        2.0,
        unit="seconds",
        allowed=Number(1, 600),
        consequence="Added to the computed wait, for clocks that drift apart.",
    )
    safe_time_seconds: float = setting(
        0.0,
        unit="seconds",
        allowed=Number(0, 3600),
        consequence="A longer wait than the computed one, before a host's workloads are freed; 0 waits as computed.",
    )


@dataclass(frozen=True)
class Settings:
    """Every setting, as `settings.api.read_interval_seconds`; made with no argument, the defaults."""

    api: Api = Api()
    peers: Peers = Peers()
    watchdog: Watchdog = Watchdog()
    agent: Agent = Agent()
    leader: Leader = Leader()


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    table: str
    name: str
    default: Any
    unit: str
    allowed: Allowed[Any]
    consequence: str

    @property
    def key(self) -> str:
        return f"{self.table}.{self.name}"


def every_setting() -> Iterator[Setting]:
    """The table's rows in its own order."""
    for table in fields(Settings):
        for row in fields(getattr(Settings, table.name)):
            yield Setting(table.name, row.name, row.default, **row.metadata)


def value_of(settings: Settings, key: str) -> Any:
    """The value of `api.read_interval_seconds` and the like."""
    table, name = key.split(".")
    return getattr(getattr(settings, table), name)
