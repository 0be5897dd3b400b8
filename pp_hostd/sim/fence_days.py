"""Bad days with a name on which a host is fenced, by devices that can't be relied on."""

from __future__ import annotations

from typing import Callable

from pp_hostd.sim.cluster import Cluster
from pp_hostd.sim.fence_methods import REBOOT, STORED, STORED_ALONE, UNPLUGGED, WRONG_PLUG
from pp_hostd.sim.fence_mutants import (
    ACCEPTED_IS_OFF,
    CORDON_FREES,
    KUBELET_IS_LOUD,
    OLD_DUMP_FREES,
    ON_BEFORE_FREED,
    PORT_FREES,
    STORAGE_FREES_ALL,
    UNCONTRADICTED,
    UNFENCED_EARLY,
    UNKNOWN_IS_OFF,
)
from pp_hostd.sim.mutant import Mutant
from pp_hostd.sim.named_day import BEGIN, MINUTE, NamedDay, Names
from pp_hostd.sim.schedule import Trouble

NODES = 5
Troubles = Callable[[Names], list[Trouble]]


def _cut_off(*more: str) -> Troubles:
    """The last host is cut off, and has no agent that would reset it; these troubles of devices last as long."""
    return lambda names: [Trouble(BEGIN, what, names[-1:], 2 * MINUTE) for what in ("cut off", *more)]


def _sick(names: Names) -> list[Trouble]:
    return [Trouble(BEGIN, "kubelet is sick", names[-1:], 2 * MINUTE)]


def _pressed(names: Names) -> list[Trouble]:
    """Somebody powers it on by hand when it is off, and its network fails when it is back."""
    return [
        *_sick(names),
        Trouble(BEGIN, "powered on by hand once it is off", names[-1:]),
        *_cut_off_again(names),
    ]


def _cut_off_again(names: Names) -> list[Trouble]:
    return [Trouble(BEGIN, "cut off once it is back", names[-1:], 2 * MINUTE, 0.1)]


def _crashed(names: Names) -> list[Trouble]:
    """While another one is fenced, so that the leader hears of it, and for so long that it remembers that."""
    sick = Trouble(BEGIN, "kubelet is sick", names[-2:-1], 2 * MINUTE)
    unreachable = Trouble(BEGIN, "a fence device can't be reached", names[-2:], 2 * MINUTE)
    return [sick, unreachable, Trouble(BEGIN + 21, "kernel crashes", names[-1:], 1.0), *_cut_off_again(names)]


def _day(about: str, methods: str, troubles: Troubles, without: Mutant) -> NamedDay:
    last = (f"node-{NODES}",)
    cluster = Cluster(fenced=(methods,) * NODES, agentless=last, unenrolled=last)
    return NamedDay(about, NODES, troubles, without, cluster=cluster)


FENCE_DAYS = {
    "bmc-does-nothing": _day(
        "a host is cut off, and its BMC accepts an off and never does it",
        REBOOT,
        _cut_off("a fence device does nothing"),
        ACCEPTED_IS_OFF,
    ),
    "bmc-unreachable": _day(
        "a host is cut off, and so is its BMC",
        REBOOT,
        _cut_off("a fence device can't be reached"),
        UNKNOWN_IS_OFF,
    ),
    "wrong-plug": _day(
        "a kubelet says that it is not Ready, and the plug of its host is another one's",
        WRONG_PLUG,
        _sick,
        KUBELET_IS_LOUD,
    ),
    "button-pressed": _day(
        "a host is switched off, somebody powers it on by hand, and its network fails",
        REBOOT,
        _pressed,
        UNCONTRADICTED,
    ),
    "on-again": _day(
        "a host is switched off and on, and its network fails as soon as it is back",
        REBOOT,
        lambda names: [*_sick(names), *_cut_off_again(names)],
        ON_BEFORE_FREED,
    ),
    "crashed-before": _day(
        "a kernel crashes, and its host is cut off as soon as it is back",
        REBOOT,
        _crashed,
        OLD_DUMP_FREES,
    ),
    "network-port-off": _day(
        "a host is cut off, and so is its network port",
        UNPLUGGED,
        _cut_off(),
        PORT_FREES,
    ),
    "cordoned": _day("a host is cut off, and cordoned", REBOOT, _cut_off(), CORDON_FREES),
    "storage-cut-off": _day(
        "a host is cut off, and then from its storage",
        STORED,
        _cut_off(),
        STORAGE_FREES_ALL,
    ),
    "storage-given-back": _day(
        "a host is cut off, also from its storage, and comes back without a boot",
        STORED_ALONE,
        _cut_off(),
        UNFENCED_EARLY,
    ),
}
