"""The bad days that have a name: faults of networks, hosts and processes; attacks and fences have their own tables."""

from __future__ import annotations

from pp_hostd.sim.attack_days import ATTACK_DAYS
from pp_hostd.sim.fence_days import FENCE_DAYS
from pp_hostd.sim.mutants import mutant_called
from pp_hostd.sim.named_day import BEGIN, HOUR, LIFTED_ACCUSES, MINUTE, OUTAGE_CONDEMNS, NamedDay, Names, everybody
from pp_hostd.sim.schedule import Trouble
from pp_hostd.sim.world import LEADERS

RACK = 4
"""So many hosts are in one."""


def _switch_outage(names: Names) -> list[Trouble]:
    return [Trouble(BEGIN, "cut off", (name,), MINUTE) for name in names]


def _rolling_reboot(names: Names) -> list[Trouble]:
    """Nobody may be reset: each host is requested while it boots, and has started nothing then. Those of leaders are
    left out: until another one leads, such a host may be back, and the request is still there."""
    workers = names[LEADERS:]
    failures = [Trouble(BEGIN + number * MINUTE, "power fails", (name,)) for number, name in enumerate(workers)]
    return failures + [Trouble(failure.at + 2, "request", failure.who) for failure in failures]


def _control_plane_outage(names: Names) -> list[Trouble]:
    return [Trouble(BEGIN, "API stops", names, HOUR)]


def _racks_lost(names: Names) -> list[Trouble]:
    """Their hosts still reach each other within a rack, and are requested, in vain, until the racks are back."""
    racks = [names[first : first + RACK] for first in range(0, len(names), RACK)]
    lost = racks[-max(1, round(0.3 * len(racks))) :]
    cuts = [Trouble(BEGIN, "split", rack, 3 * MINUTE) for rack in lost]
    return cuts + [Trouble(BEGIN + 30, "request", (name,)) for rack in lost for name in rack]


def _split(names: Names) -> list[Trouble]:
    """One half has a single server of the API, so no quorum; in each half one host is requested."""
    here = names[len(names) // 2 :]
    requests = [Trouble(BEGIN + 30, "request", (name,)) for name in (here[-1], names[0])]
    return [Trouble(BEGIN, "split", here, 3 * MINUTE, part=0.25), *requests]


def _flapping_host(names: Names) -> list[Trouble]:
    host = names[-1:]
    cuts = [Trouble(BEGIN + 12 * number, "cut off", host, 3.0 + number % 9) for number in range(15)]
    return [*cuts, Trouble(BEGIN + 40, "request", host)]


def _upgrade(names: Names) -> list[Trouble]:
    """One agent after the other, and the leaders, while the API is slow, packets are lost, and a host dies."""
    agents = [Trouble(BEGIN + 5 * number, "agent stops", (name,), 3.0) for number, name in enumerate(names)]
    leaders = [Trouble(BEGIN + 20 * number, "leader is killed", names[:1], part=number / 3) for number in range(3)]
    whole = 5.0 * len(names)
    load = [
        Trouble(BEGIN, "API browns out", names[:1], whole),
        Trouble(BEGIN, "packets are lost", names[:1], whole, 0.1),
    ]
    death = [Trouble(BEGIN + whole / 3, "power fails", names[-1:]), Trouble(BEGIN + whole / 2, "request", names[-1:])]
    return agents + leaders + load + death


def _absolved_before_outage(names: Names) -> list[Trouble]:
    """Its peers acknowledge the condemnation; they are not asked again before the API stops, and so remember it."""
    host = names[-1:]
    return [
        Trouble(BEGIN, "cut off", host, 10.0),
        Trouble(BEGIN + 1, "request", host),
        Trouble(BEGIN + 8, "absolve", host),
        Trouble(BEGIN + 25, "API stops", names, 2 * MINUTE),
    ]


_UNBOUNDED = mutant_called("the watchdog is fed whatever the judgement")
_UNGATED = mutant_called("the kubelet does not wait for the gate")

DAYS = {
    "switch-outage": NamedDay("the switch between all hosts is dead for a minute", 7, _switch_outage, _UNBOUNDED),
    "rolling-reboot": NamedDay(
        "one host without a leader after the other is rebooted, a minute apart, and each is requested while it boots",
        7,
        _rolling_reboot,
        _UNGATED,
        everybody,
    ),
    "control-plane-outage": NamedDay(
        "the API is dead for an hour", 7, _control_plane_outage, OUTAGE_CONDEMNS, everybody
    ),
    "racks-lost": NamedDay("30 % of the racks are cut off, and their hosts are requested", 40, _racks_lost, _UNBOUNDED),
    "split": NamedDay(
        "the network is split in the middle, and so is the API",
        8,
        _split,
        mutant_called("half of the nodes are enough for an outage"),
    ),
    "flapping-host": NamedDay(
        "one host's link goes down and up, and the host is requested",
        5,
        _flapping_host,
        mutant_called("the committed record needs no wait"),
    ),
    "absolved-before-outage": NamedDay(
        "a host is absolved while its link is down, and the API stops before its peers hear of it",
        5,
        _absolved_before_outage,
        LIFTED_ACCUSES,
        everybody,
    ),
    "upgrade": NamedDay(
        "agents and leaders are restarted under load, and a host dies", 9, _upgrade, mutant_called("a restart forgets")
    ),
    **ATTACK_DAYS,
    **FENCE_DAYS,
}
