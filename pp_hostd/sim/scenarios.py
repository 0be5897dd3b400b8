"""Bad days that have a name, each as a schedule."""

from __future__ import annotations

from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.sim.schedule import Schedule, Trouble

RACK = 4
"""So many hosts are in one."""
SETTLED_SECONDS = 120.0
"""After all is healed: by then everybody is back."""
BEGIN = 30.0
"""By then everybody is well, and somebody leads."""
MINUTE = 60.0
HOUR = 60 * MINUTE

Names = tuple[str, ...]


@frozen
class Scenario:
    """`nodes` is how many it has if nobody says otherwise."""

    about: str
    nodes: int
    troubles: Callable[[Names], list[Trouble]]

    def schedule(self, seed: int, nodes: int | None = None) -> Schedule:
        names = tuple(f"node-{number}" for number in range(1, (nodes or self.nodes) + 1))
        troubles = sorted(self.troubles(names), key=lambda trouble: trouble.at)
        healed_at = max(trouble.at + trouble.seconds for trouble in troubles) + 1
        return Schedule(seed, len(names), tuple(troubles), healed_at, healed_at + SETTLED_SECONDS)


def _switch_outage(names: Names) -> list[Trouble]:
    return [Trouble(BEGIN, "cut off", (name,), MINUTE) for name in names]


def _rolling_reboot(names: Names) -> list[Trouble]:
    return [Trouble(BEGIN + number * MINUTE, "power fails", (name,)) for number, name in enumerate(names)]


def _control_plane_outage(names: Names) -> list[Trouble]:
    return [Trouble(BEGIN, "API stops", names, HOUR)]


def _racks_lost(names: Names) -> list[Trouble]:
    """Their hosts still reach each other within a rack, and are asked for, in vain, until the racks are back."""
    racks = [names[first : first + RACK] for first in range(0, len(names), RACK)]
    lost = racks[-max(1, round(0.3 * len(racks))) :]
    cuts = [Trouble(BEGIN, "split", rack, 3 * MINUTE) for rack in lost]
    return cuts + [Trouble(BEGIN + 30, "request", (name,)) for rack in lost for name in rack]


def _split(names: Names) -> list[Trouble]:
    """One half has a single server of the API, so no quorum; each half has one host that is asked for."""
    here = names[: len(names) // 2]
    requests = [Trouble(BEGIN + 30, "request", (name,)) for name in (here[-1], names[-1])]
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


SCENARIOS = {
    "switch-outage": Scenario("the switch between all hosts is dead for a minute", 7, _switch_outage),
    "rolling-reboot": Scenario("one host after the other is rebooted, a minute apart", 7, _rolling_reboot),
    "control-plane-outage": Scenario("the API is dead for an hour", 7, _control_plane_outage),
    "racks-lost": Scenario("30 % of the racks are cut off, and their hosts are asked for", 40, _racks_lost),
    "split": Scenario("the network is split in the middle, and so is the API", 8, _split),
    "flapping-host": Scenario("one host's link goes down and up, and the host is asked for", 5, _flapping_host),
    "upgrade": Scenario("agents and leaders are restarted under load, and a host dies", 9, _upgrade),
}
