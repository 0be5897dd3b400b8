"""The one table of settings: name, type, unit, default, what is allowed, and what each means for the host.

The parser, the defaults, `--help`, etc/pp-hostd.toml and docs/settings.md all come from here. Each field of `Settings`
is a TOML table, each field of that a setting. Pure values: `judge` and `plan` take them as an argument.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields
from typing import Any, TypeVar

from pp_hostd.frozen import frozen
from pp_hostd.model.allowed import AbsolutePath, Address, Allowed, Choice, Flag, Number, Servers, Share, Text, Whole
from pp_hostd.model.record import NAME, SUFFIX, UNIT

T = TypeVar("T")


def setting(default: T, *, allowed: Allowed[T], consequence: str, unit: str = "") -> T:
    """A field of one of the tables below, with all that a person must know about it."""
    about = {"allowed": allowed, "consequence": consequence, "unit": unit}
    return field(default=default, metadata=about)


@frozen
class Api:
    """How the daemons reach the Kubernetes API, and how often they read it."""

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
        consequence="The kind of object that condemns this host: a Machine of that API, or, without Machines, the Node "
        "itself.",
    )
    read_interval_seconds: float = setting(
        4.0,
        unit="seconds",
        allowed=Number(0.1, 60),
        consequence="The time from the start of one read of its own Machine to the next; with a longer one the host "
        "notices a failure later.",
    )
    read_deadline_seconds: float = setting(
        2.0,
        unit="seconds",
        allowed=Number(0.1, 60),
        consequence="A read that takes longer in all has failed; with too short a deadline a slow API looks like a "
        "dead one.",
    )
    retry_seconds: float = setting(
        1.0,
        unit="seconds",
        allowed=Number(0.1, 60),
        consequence="The pause after a failed read; with a longer one the host asks its peers later.",
    )


@frozen
class Peers:
    """How a host that can't read the API asks the other hosts about itself."""

    rounds: int = setting(
        4,
        unit="rounds",
        allowed=Whole(1, 20),
        consequence="The host asks every peer within that many rounds; with fewer rounds the sets of peers grow "
        "faster.",
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
        consequence="The port on which all hosts answer; a host with another port is silent to the rest.",
    )
    address: str = setting(
        "",
        allowed=Address(),
        consequence="The address on which this host answers its peers; if empty, it listens on every address, IPv4 and "
        "IPv6.",
    )
    auth: str = setting(
        "key",
        allowed=Choice(("key", "none")),
        consequence="With none, anyone who reaches the port can answer for a host, and so keep it alive or reset it.",
    )
    key_file: str = setting(
        "/etc/pp-hostd/peer.key",
        allowed=AbsolutePath(),
        consequence="The cluster's peer key, for root only: the first line signs, a second line is also accepted "
        "(rotation).",
    )


@frozen
class Watchdog:
    """The device that resets a host which no longer feeds it."""

    device: str = setting(
        "/dev/watchdog",
        allowed=AbsolutePath(),
        consequence="If the device can't be used, the agent tries softdog, then software alone, which the leader "
        "refuses by default.",
    )
    timeout_seconds: int = setting(
        10,
        unit="seconds",
        allowed=Whole(2, 120),
        consequence="The watchdog resets a host that has not fed it for that long; the leader waits for twice this "
        "time.",
    )


@frozen
class Agent:
    """When a host gives itself up."""

    node_name: str = setting(
        "",
        allowed=Text(NAME),
        consequence="The name of this host's Node; if empty, the host's own name.",
    )
    mode: str = setting(
        "enforce",
        allowed=Choice(("enforce", "dry-run")),
        consequence="A dry run judges and reports. It touches neither watchdog nor host, and on the Node it withdraws "
        "only a promise, and removes suspects, that an earlier run left.",
    )
    gate: str = setting(
        "auto",
        allowed=Choice(("auto", "hold", "taint", "none")),
        consequence="The way to keep workloads off a boot without a promise: hold holds the kubelet, taint relies on "
        "the leader's taint, none does neither, and the promise then says so. auto is taint on hosts that "
        "start an API server or etcd, that are an API server's address, or that reach the API only by "
        "loopback; else hold.",
    )
    arm_pairs: bool = setting(
        False,
        allowed=Flag(),
        consequence="Whether a node is armed in a cluster of two. If true, the other node is the only peer: a host "
        "that reaches neither API nor peer resets itself, so each reboot of a node that runs the only API "
        "server resets the other one. If false, the leader can free neither node's workloads.",
    )
    probe: bool = setting(
        True,
        allowed=Flag(),
        consequence="This host probes three others, and names on its Node those that are silent: the leader can try "
        "them within seconds. If false, it sends no probes and names nobody.",
    )
    kubelet_unit: str = setting(
        "kubelet.service",
        allowed=Text(UNIT),
        consequence="The unit that the gate holds: kubelet.service, k3s-agent.service, rke2-agent.service.",
    )
    metrics_address: str = setting(
        "127.0.0.1",
        allowed=Address(),
        consequence="The address that serves /metrics and /healthz; any other than loopback shows them to the network.",
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
        consequence="Without a proof for that long the host stops feeding its watchdog; the leader waits for that time "
        "too.",
    )


@frozen
class Leader:
    """When the leader may declare the workloads of a host dead."""

    kubeconfig: str = setting(
        "/etc/pp-hostd/leader.kubeconfig",
        allowed=AbsolutePath(),
        consequence="The leader's own credentials; without them the leader frees no node, and recreates none.",
    )
    mode: str = setting(
        "enforce",
        allowed=Choice(("enforce", "dry-run")),
        consequence="A dry run plans and reports, and writes nothing but the roster and the Lease.",
    )
    strategy: str = setting(
        "node-delete",
        allowed=Choice(("node-delete", "out-of-service", "resources")),
        consequence="How the leader frees workloads: delete the Node, its pods and attachments, and recreate it; taint "
        "the Node out-of-service for a while; or delete only its pods and attachments.",
    )
    lease_seconds: float = setting(
        15.0,
        unit="seconds",
        allowed=Number(5, 120),
        consequence="A leader that could not renew its Lease for that long has stopped, and another one may begin. The "
        "value must be equal on all leaders: where a Lease was deleted, each waits for its own value.",
    )
    start_grace_seconds: float = setting(
        10.0,
        unit="seconds",
        allowed=Number(0, 3600),
        consequence="For that long after it began to lead, a leader condemns no node: its view may still settle.",
    )
    max_unhealthy: str = setting(
        "40%",
        allowed=Share(),
        consequence="If more nodes than these do not respond (Ready is not True) or have their remediation requested, "
        "something else is wrong: the leader condemns no node.",
    )
    max_at_once: int = setting(
        3,
        unit="nodes",
        allowed=Whole(1, 1000),
        consequence="The leader works on that many nodes at the same time; others wait their turn.",
    )
    resets_per_hour: str = setting(
        "20%",
        allowed=Share(),
        consequence="At most that many remediations begin in an hour; a part of all nodes allows at least 3 (0%: "
        "none). More wait, until a person grants more: pp-leader resume --more.",
    )
    cool_down_seconds: float = setting(
        300.0,
        unit="seconds",
        allowed=Number(0, 86400),
        consequence="After more than max_unhealthy nodes were sick, the leader condemns no node for that long.",
    )
    accept_software_only: bool = setting(
        False,
        allowed=Flag(),
        consequence="Trusts hosts without any watchdog to reset themselves: a hung kernel does not, and then there are "
        "two copies.",
    )
    accept_softdog: bool = setting(
        True,
        allowed=Flag(),
        consequence="Trusts hosts whose watchdog is softdog, a timer of the very kernel that it watches: softdog does "
        "not reset a kernel that hangs, and then there are two copies. The leader warns of each such host; "
        "false refuses them.",
    )
    deletions_per_second: float = setting(
        20.0,
        allowed=Number(0.1, 1000),
        consequence="How fast the leader deletes the pods and attachments of a dead node; a lower rate spares the API.",
    )
    metrics_address: str = setting(
        "127.0.0.1",
        allowed=Address(),
        consequence="The address that serves the leader's /metrics and /healthz; any other than loopback shows them to "
        "the network.",
    )
    metrics_port: int = setting(
        9480,
        allowed=Whole(0, 65535),
        consequence="The port of the leader's /metrics and /healthz; 0 serves neither.",
    )
    page_port: int = setting(
        9481,
        allowed=Whole(0, 65535),
        consequence="The port of the leader's page for people, which shows the fleet live; always on 127.0.0.1. 0 "
        "serves no page.",
    )
    # With the bounds of the timeouts above, 1 s is more than two clocks can drift apart at 1000 ppm.
    margin_seconds: float = setting(
        2.0,
        unit="seconds",
        allowed=Number(1, 600),
        consequence="The leader adds this to the computed wait, for clocks that drift apart.",
    )
    safe_time_seconds: float = setting(
        0.0,
        unit="seconds",
        allowed=Number(0, 3600),
        consequence="A longer wait than the computed one, before the leader frees a host's workloads; 0 waits as "
        "computed.",
    )


@frozen
class Power:
    """How the leader switches the hosts of machines off and on, where a cluster has BareMetalHosts."""

    cycle: bool = setting(
        False,
        allowed=Flag(),
        consequence="The leader power-cycles machines that stand on a BareMetalHost, and their hosts no longer have to "
        "reset themselves. If this is set to false while hosts are off, the leader still powers them on.",
    )
    suffix: str = setting(
        "machine-remediation",
        allowed=Text(SUFFIX),
        consequence="The annotation reboot.metal3.io/<suffix> keeps a host off; nobody else may use this suffix.",
    )
    off_timeout_seconds: float = setting(
        300.0,
        unit="seconds",
        allowed=Number(10, 86400),
        consequence="If the host is still on after this, the leader reports it and may fall back.",
    )
    on_timeout_seconds: float = setting(
        1800.0,
        unit="seconds",
        allowed=Number(10, 86400),
        consequence="If a host has not come back that long after it could have, the leader deletes its Machine, if the "
        "Machine's owner makes new ones. Without power cycles, a request that is made before a freed host "
        "is back waits for that long.",
    )
    fallback: bool = setting(
        False,
        allowed=Flag(),
        consequence="Where switching off does not work, an enrolled host has to reset itself, and the other way round.",
    )


@frozen
class Remediations:
    """Which remediation objects the leader carries out, so that health checks can use it by their template."""

    poison_pill: bool = setting(
        False,
        allowed=Flag(),
        consequence="A PoisonPillRemediation of pp-hostd.io has the host of its Machine, or of its Node, reset itself.",
    )
    metal3: bool = setting(
        False,
        allowed=Flag(),
        consequence="A Metal3Remediation of infrastructure.cluster.x-k8s.io has the host power-cycled, by this leader "
        "and no longer by Metal3's own controller, which must not run then.",
    )
    metal3_proposed: bool = setting(
        False,
        allowed=Flag(),
        consequence="The same for the Metal3Remediation of remediation.metal3.io, as the proposals have it.",
    )


@frozen
class Health:
    """Which health checks of others the leader carries out, where their own controller does not run."""

    machine_health_checks: bool = setting(
        False,
        allowed=Flag(),
        consequence="The leader carries out the MachineHealthChecks of the API that api.machines names. It leaves each "
        "one alone whose status another controller has written: those controllers must not run then.",
    )


@frozen
class Settings:
    """Every setting, as `settings.api.read_interval_seconds`; made with no argument, the defaults."""

    api: Api = Api()
    peers: Peers = Peers()
    watchdog: Watchdog = Watchdog()
    agent: Agent = Agent()
    leader: Leader = Leader()
    power: Power = Power()
    remediations: Remediations = Remediations()
    health: Health = Health()


@frozen
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
