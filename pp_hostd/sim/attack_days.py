"""Bad days on which somebody removes what the rules rest on, lies, or the API depends on hosts that it protects."""

from __future__ import annotations

from pp_hostd.model.settings import Settings
from pp_hostd.sim.cluster import Cluster
from pp_hostd.sim.named_day import (
    BEGIN,
    FINALIZERS_LATE,
    HELD_BY_ITSELF,
    IDS_RESTART,
    LABEL_CONDEMNS,
    LENGTHENED_UNPROMISED,
    MINUTE,
    NEWS_RESETS,
    ONE_ACCUSER_CONDEMNS,
    OWN_READ_ONLY,
    PAIRS_ARE_ARMED,
    REQUESTED_EARLY,
    SHUTDOWN_WAITS,
    UNBUDGETED,
    VANISHED_CONDEMNS,
    NamedDay,
    Names,
    everybody,
)
from pp_hostd.sim.schedule import Trouble

BUDGET = 3
"""So many remediations may begin in an hour, in a cluster of this size."""


def _remediated(name: str, at: float) -> list[Trouble]:
    """A host is cut off for long enough, requested, freed, and comes back."""
    return [Trouble(at, "cut off", (name,), MINUTE), Trouble(at + 1, "request", (name,))]


def _requested_in_isolation(name: str, at: float) -> list[Trouble]:
    """It still talks to its peers, who know of its condemnation."""
    return [Trouble(at, "cut off from API", (name,), 3 * MINUTE), Trouble(at + 1, "request", (name,))]


def _ids_restart(names: Names) -> list[Trouble]:
    """After a remediation the id is removed by hand, and by an etcd restore; the next one must not find it lifted."""
    host, other = names[-1], names[-2]
    later = BEGIN + 8 * MINUTE
    return [
        *_remediated(host, BEGIN),
        Trouble(BEGIN + 3 * MINUTE, "condemnation id is removed", (host,)),
        *_requested_in_isolation(host, BEGIN + 4 * MINUTE),
        Trouble(later, "etcd is saved"),
        *_remediated(other, later + 1),
        Trouble(later + 3 * MINUTE, "etcd is restored"),
        *_requested_in_isolation(other, later + 5 * MINUTE),
    ]


def _one_accuser(names: Names) -> list[Trouble]:
    """In each outage one peer accuses everybody who asks it: in other words each time."""
    lies = [
        Trouble(BEGIN, "a peer lies", names[-1:], 3 * MINUTE, 0.0),
        Trouble(BEGIN + 3 * MINUTE, "a peer lies", names[-1:], 3 * MINUTE, 1.0),
    ]
    return lies + [Trouble(lie.at + 10, "API stops", names, 2 * MINUTE) for lie in lies]


def _annotation_removed(names: Names) -> list[Trouble]:
    """0, 0.3, 1 and 5 s after a request, of which the host hears only later."""
    troubles = []
    for number, seconds in enumerate((0.0, 0.3, 1.0, 5.0)):
        at = BEGIN + number * 2 * MINUTE
        troubles += [
            Trouble(at, "cut off", names[-1:], 8.0),
            Trouble(at + 1, "request", names[-1:]),
            Trouble(at + 1 + seconds, "external-remediation is removed", names[-1:]),
        ]
    return troubles


def _late_news(names: Names) -> list[Trouble]:
    """Again and again: some watches report the condemnation only after it was lifted."""
    troubles = []
    for at in (BEGIN + number * MINUTE for number in range(6)):
        troubles += [
            Trouble(at, "cut off", names[-1:], 10.0),
            Trouble(at + 1, "request", names[-1:]),
            Trouble(at + 8, "absolve", names[-1:]),
        ]
    return troubles


def _rolling_fault(names: Names) -> list[Trouble]:
    """A health check that is wrong about one node after the other."""
    return [Trouble(BEGIN + number * 2 * MINUTE, "request", (name,)) for number, name in enumerate(names)]


def _asks_again(names: Names) -> list[Trouble]:
    """A health check has no patience, and another one a minute's."""
    first, second = names[-1:], names[-2:-1]
    return [
        Trouble(BEGIN, "somebody asks again", first, 0.0),
        Trouble(BEGIN, "power stays off", first, 5 * MINUTE),
        Trouble(BEGIN + 8 * MINUTE, "somebody asks again", second, MINUTE),
        Trouble(BEGIN + 8 * MINUTE, "power stays off", second, 5 * MINUTE),
    ]


def _node_with_finalizers(names: Names) -> list[Trouble]:
    return [Trouble(BEGIN, "a Node has finalizers", names[-1:]), Trouble(BEGIN + 5, "request", names[-1:])]


def _machines_vanish(names: Names) -> list[Trouble]:
    """One, then all, which come back under another uid, then all with their CRD."""
    return [
        Trouble(BEGIN, "machines vanish", names[-1:], MINUTE),
        Trouble(BEGIN + 3 * MINUTE, "machines vanish", names, 2 * MINUTE, 1.0),
        Trouble(BEGIN + 8 * MINUTE, "machines vanish with their CRD", names, 2 * MINUTE),
    ]


def _pair_with_api(names: Names) -> list[Trouble]:
    return [Trouble(BEGIN, "power stays off", names[:1], 2 * MINUTE)]


def _cold_start(names: Names) -> list[Trouble]:
    """A site without power, and then one control-plane host that reboots."""
    site = [Trouble(BEGIN, "power stays off", (name,), MINUTE) for name in names]
    return [*site, Trouble(BEGIN + 5 * MINUTE, "power stays off", names[:1], MINUTE)]


def _shutdown_in_outage(names: Names) -> list[Trouble]:
    """Two hosts of five while the API is dead, of whom one stays off and is requested once the API is back; then the
    whole site while the API is silent."""
    later = BEGIN + 12 * MINUTE
    site = [Trouble(later + MINUTE + number, "shutdown", (name,), 2 * MINUTE) for number, name in enumerate(names)]
    return [
        Trouble(BEGIN, "API stops", names, 4 * MINUTE),
        Trouble(BEGIN + MINUTE, "shutdown", names[-1:], 8 * MINUTE),
        Trouble(BEGIN + MINUTE + 20, "shutdown", names[-2:-1]),
        Trouble(BEGIN + 5 * MINUTE, "request", names[-1:]),
        Trouble(later, "API stops", names, 5 * MINUTE, 1.0),
        *site,
    ]


def _power_off(names: Names) -> list[Trouble]:
    """Of one host it ends well, of the next it hangs, until the watchdog fires; both are requested."""
    host, other, later = names[-1:], names[-2:-1], BEGIN + 20 * MINUTE
    return [
        Trouble(BEGIN, "shutdown", host, 15 * MINUTE),
        Trouble(BEGIN + MINUTE, "request", host),
        Trouble(later, "shutdown", other, 15 * MINUTE, 1.0),
        Trouble(later + 10, "request", other),
    ]


def _expired_credentials(names: Names) -> list[Trouble]:
    """Of one host that runs, of one that is off meanwhile, and then of all together."""
    return [
        Trouble(BEGIN, "credentials end", names[-1:], 3 * MINUTE),
        Trouble(BEGIN + 4 * MINUTE, "power stays off", names[-2:-1], MINUTE),
        Trouble(BEGIN + 4 * MINUTE, "credentials end", names[-2:-1], 4 * MINUTE),
        Trouble(BEGIN + 10 * MINUTE, "credentials end", names, 3 * MINUTE),
    ]


ATTACK_DAYS = {
    "cold-start": NamedDay(
        "all hosts of a site lose power, those that start the API among them, and come back",
        5,
        _cold_start,
        HELD_BY_ITSELF,
        everybody,
        Cluster(api_on=("node-1", "node-2", "node-3")),
    ),
    "shutdown-in-outage": NamedDay(
        "hosts are shut down while the API is away: two of them, and then the whole site",
        5,
        _shutdown_in_outage,
        SHUTDOWN_WAITS,
        everybody,
    ),
    "power-off": NamedDay(
        "a host is powered off, and of another one the power-off hangs; both are requested",
        5,
        _power_off,
        LENGTHENED_UNPROMISED,
        everybody,
    ),
    "expired-credentials": NamedDay(
        "the credentials end of a host that runs, of one that is off, and of all together; later each gets another",
        5,
        _expired_credentials,
        OWN_READ_ONLY,
        everybody,
    ),
    "ids-restart": NamedDay(
        "after a remediation the condemnation id is removed, by hand and by an etcd restore, and the host is condemned "
        "again",
        5,
        _ids_restart,
        IDS_RESTART,
    ),
    "one-accuser": NamedDay(
        "in an outage of the control plane one peer accuses everybody", 5, _one_accuser, ONE_ACCUSER_CONDEMNS, everybody
    ),
    "annotation-removed": NamedDay(
        "a person removes only external-remediation of a machine that is condemned",
        5,
        _annotation_removed,
        LABEL_CONDEMNS,
        everybody,
    ),
    "late-news": NamedDay(
        "a host is absolved while its link is down, and hears of the condemnation later",
        5,
        _late_news,
        NEWS_RESETS,
        everybody,
    ),
    "machines-vanish": NamedDay(
        "one Machine, then all Machines, then all with their CRD vanish and come back",
        5,
        _machines_vanish,
        VANISHED_CONDEMNS,
        everybody,
    ),
    "pair-with-api": NamedDay(
        "of two nodes the one that starts the API reboots",
        2,
        _pair_with_api,
        PAIRS_ARE_ARMED,
        everybody,
        Cluster(api_on=("node-1",), arm_pairs=False),
    ),
    "rolling-fault": NamedDay(
        "a health check requests one healthy node after the other",
        10,
        _rolling_fault,
        UNBUDGETED,
        lambda names: names[BUDGET:],
        Cluster(resets_per_hour=Settings.leader.resets_per_hour),
    ),
    "asks-again": NamedDay(
        "health checks request again, at once or after a minute, while a host is off",
        5,
        _asks_again,
        REQUESTED_EARLY,
        everybody,
    ),
    "node-with-finalizers": NamedDay(
        "a host is requested whose Node has finalizers", 5, _node_with_finalizers, FINALIZERS_LATE, everybody
    ),
}
