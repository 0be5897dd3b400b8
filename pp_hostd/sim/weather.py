"""Troubles of the network and the API: how each is played out, and how all of them end."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Callable

from pp_hostd.sim.api import SERVERS, Health
from pp_hostd.sim.schedule import MESSAGES, Trouble
from pp_hostd.sim.world import World

Pair = tuple[str, str]


class Weather:
    """What lasts ends by itself, or when all is healed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cuts: list[frozenset[Pair]] = []
        self.acts: Mapping[str, Callable[[Trouble], None]] = {
            "cut off": self._cut_off,
            "cut off from API": self._cut_off_from_api,
            "cut one way": self._cut_one_way,
            "all but the leader lose the API": self._leave_to_leader,
            "split": self._split,
            "API stops": lambda trouble: self._ail(
                trouble, SERVERS, Health.DEAD if trouble.part < 0.5 else Health.SILENT
            ),
            "API browns out": lambda trouble: self._ail(trouble, SERVERS, Health.BROWN),
            "a server stops": lambda trouble: self._ail(trouble, (SERVERS[int(trouble.part * 3)],), Health.SILENT),
            "packets are lost": self._lose,
            "packets come twice": self._double,
            "a host is slow": self._slow,
            "a request hangs": partial(self._spoil, sent=True),
            "an answer is lost": partial(self._spoil, sent=False),
            "watches lag": self._lag,
        }

    def clear(self) -> None:
        world = self._world
        self._cuts.clear()
        self._apply_cuts()
        world.network.mend()
        world.api.lag_seconds = 0.0
        world.api.health.update(dict.fromkeys(SERVERS, Health.WELL))
        world.disturbances.api_changed()

    # The network.

    def _cut_off(self, trouble: Trouble) -> None:
        self._cut(trouble, self._between(trouble.who[:1], (*self._world.names, *SERVERS)))

    def _cut_off_from_api(self, trouble: Trouble) -> None:
        self._cut(trouble, self._between(trouble.who, SERVERS))

    def _leave_to_leader(self, trouble: Trouble) -> None:
        """And the one whom it is about can't ask the leader's host either."""
        leading = self._world.leading()
        others = tuple(name for name in self._world.names if name not in leading)
        self._cut(trouble, self._between(others, SERVERS) | self._between(trouble.who, leading))

    def _cut_one_way(self, trouble: Trouble) -> None:
        others = [name for name in (*self._world.names, *SERVERS) if name not in trouble.who[:1]]
        lost = [(trouble.who[0], other) if trouble.part < 0.5 else (other, trouble.who[0]) for other in others]
        self._cut(trouble, frozenset(lost))

    def _split(self, trouble: Trouble) -> None:
        """Some hosts on one side, with as many API servers as the part says."""
        servers = SERVERS[: int(trouble.part * 4)]
        here = (*trouble.who, *servers)
        there = [name for name in (*self._world.names, *SERVERS) if name not in here]
        self._cut(trouble, self._between(here, there))

    def _between(self, here: Iterable[str], there: Collection[str]) -> frozenset[Pair]:
        pairs = [(one, other) for one in here for other in there if one != other]
        return frozenset(pairs + [(other, one) for one, other in pairs])

    def _cut(self, trouble: Trouble, pairs: frozenset[Pair]) -> None:
        self._cuts.append(pairs)
        self._apply_cuts()
        self._world.links_changed(trouble.who)
        self._world.time.after(trouble.seconds + 1, partial(self._mend, pairs))

    def _mend(self, pairs: frozenset[Pair]) -> None:
        if pairs in self._cuts:
            self._cuts.remove(pairs)
            self._apply_cuts()

    def _apply_cuts(self) -> None:
        self._world.network.cut = set().union(*self._cuts) if self._cuts else set()
        self._world.disturbances.network_changed()

    def _lose(self, trouble: Trouble) -> None:
        network = self._world.network
        network.loss = trouble.part * 0.6
        self._ends(trouble, lambda: setattr(network, "loss", 0.0))

    def _double(self, trouble: Trouble) -> None:
        network = self._world.network
        network.doubled = trouble.part * 0.3
        self._ends(trouble, lambda: setattr(network, "doubled", 0.0))

    def _slow(self, trouble: Trouble) -> None:
        slow, name = self._world.network.slow_seconds, trouble.who[0]
        slow[name] = trouble.part * 4
        self._ends(trouble, lambda: slow.pop(name, None))

    def _spoil(self, trouble: Trouble, *, sent: bool) -> None:
        """Any single exchange of a host: what it asks comes late or never, or is done, and nobody tells it so."""
        late_seconds = trouble.seconds if sent and trouble.seconds else math.inf
        number = int(trouble.part * MESSAGES)
        self._world.network.spoil(trouble.who[0], sent=sent, number=number, late_seconds=late_seconds)

    def _ends(self, trouble: Trouble, end: Callable[[], object]) -> None:
        def ended() -> None:
            end()
            self._world.disturbances.network_changed()

        self._world.time.after(trouble.seconds, ended)

    # The API.

    def _ail(self, trouble: Trouble, servers: tuple[str, ...], how: Health) -> None:
        health, disturbances = self._world.api.health, self._world.disturbances
        health.update(dict.fromkeys(servers, how))
        disturbances.api_changed()

        def recover() -> None:
            health.update({server: Health.WELL for server in servers if health[server] is how})
            disturbances.api_changed()

        self._world.time.after(trouble.seconds + 1, recover)

    def _lag(self, trouble: Trouble) -> None:
        """What is written is seen late by those who watch; reads are not concerned."""
        api = self._world.api
        api.lag_seconds = trouble.part * 25
        self._world.time.after(trouble.seconds, lambda: setattr(api, "lag_seconds", 0.0))
