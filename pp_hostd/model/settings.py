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
    value: T = field(default=default, metadata=about)
    return value


@frozen
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


@frozen
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


@frozen
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


@frozen
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
        "auto",
        allowed=Choice(("auto", "hold", "taint", "none")),
        consequence="What keeps workloads off a boot without a promise: hold the kubelet, rely on the leader's taint, "
        "or nothing, which the promise then says. auto is taint on hosts that start an API server or etcd, that are an "
        "API server's address, or that reach the API only by loopback; else hold.",
    )
    arm_pairs: bool = setting(
        False,
        allowed=Flag(),
        consequence="Whether a node is armed in a cluster of two. With it the other node is the only peer: a host that "
        "reaches neither API nor peer resets itself, so each reboot of a node that runs the only API server resets the "
        "other one. Without it the leader can free neither node's workloads.",
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


@frozen
class Leader:
    """When the leader may declare the workloads of a host dead."""

    kubeconfig: str = setting(
        "/etc/pp-hostd/leader.kubeconfig",
        allowed=AbsolutePath(),
        consequence="The leader's own credentials; without them no node is ever given up, and none comes back.",
    )
    mode: str = setting(
        "enforce",
        allowed=Choice(("enforce", "dry-run")),
        consequence="A dry run plans and reports, and writes nothing but the roster and the Lease.",
    )
    strategy: str = setting(
        "node-delete",
        allowed=Choice(("node-delete", "out-of-service", "resources")),
        consequence="How workloads are freed: delete the Node, its pods and attachments, and make it anew; taint the "
        "Node out-of-service for a while; or delete only its pods and attachments.",
    )
    lease_seconds: float = setting(
        15.0,
        unit="seconds",
        allowed=Number(5, 120),
        consequence="A leader that could not renew its Lease for that long has stopped, and another one may begin. It "
        "must be equal on all leaders: each waits out its own, where a Lease was deleted.",
    )
    start_grace_seconds: float = setting(
        10.0,
        unit="seconds",
        allowed=Number(0, 3600),
        consequence="For so long after it began to lead, a leader condemns nobody: what it sees may still settle.",
    )
    max_unhealthy: str = setting(
        "40%",
        allowed=Share(),
        consequence="With more nodes than these asked for at once, something else is wrong: nobody is condemned.",
    )
    max_at_once: int = setting(
        3,
        unit="nodes",
        allowed=Whole(1, 1000),
        consequence="So many nodes are worked on at the same time; others wait their turn.",
    )
    resets_per_hour: str = setting(
        "20%",
        allowed=Share(),
        consequence="So many remediations begin in an hour at most; of a part of all nodes at least 3 (0%: none). More "
        "wait, until a person grants more: pp-leader resume --more.",
    )
    cool_down_seconds: float = setting(
        300.0,
        unit="seconds",
        allowed=Number(0, 86400),
        consequence="After more than max_unhealthy were asked for, nobody is condemned for that long.",
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
        consequence="Trusts hosts whose watchdog is softdog, a timer of the very kernel that it watches: one that "
        "hangs is not reset, and then there are two copies. The leader warns of each such host; false refuses them.",
    )
    deletions_per_second: float = setting(
        20.0,
        allowed=Number(0.1, 1000),
        consequence="How fast the pods and attachments of a dead node are deleted; slower spares the API.",
    )
    metrics_address: str = setting(
        "127.0.0.1",
        allowed=Address(),
        consequence="Where the leader's /metrics and /healthz are served; other than loopback shows them to others.",
    )
    metrics_port: int = setting(
        9480,
        allowed=Whole(0, 65535),
        consequence="The port of the leader's /metrics and /healthz; 0 serves neither.",
    )
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


@frozen
class Power:
    """How the leader switches the hosts of machines off and on, where a cluster has BareMetalHosts."""

    cycle: bool = setting(
        False,
        allowed=Flag(),
        consequence="Machines that stand on a BareMetalHost are power-cycled, and no longer have to reset themselves; "
        "hosts that are off when this is switched off are still switched on.",
    )
    suffix: str = setting(
        "machine-remediation",
        allowed=Text(SUFFIX),
        consequence="The annotation reboot.metal3.io/<suffix> keeps a host off; nobody else may use this one.",
    )
    off_timeout_seconds: float = setting(
        300.0,
        unit="seconds",
        allowed=Number(10, 86400),
        consequence="A host that is still on so long after it was to be off is told of, and its machine may fall back.",
    )
    on_timeout_seconds: float = setting(
        1800.0,
        unit="seconds",
        allowed=Number(10, 86400),
        consequence="The Machine of a host that has not come back so long after it may is deleted, if its owner makes "
        "new ones. Without power cycles, a request that is made before a freed host is back waits for so long.",
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
        consequence="A PoisonPillRemediation of pp-hostd.io has the host of its Machine reset itself.",
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
class Settings:
    """Every setting, as `settings.api.read_interval_seconds`; made with no argument, the defaults."""

    api: Api = Api()
    peers: Peers = Peers()
    watchdog: Watchdog = Watchdog()
    agent: Agent = Agent()
    leader: Leader = Leader()
    power: Power = Power()
    remediations: Remediations = Remediations()


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
