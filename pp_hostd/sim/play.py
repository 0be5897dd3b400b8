"""How each trouble of a schedule is played out in a world, and how all is healed in the end."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial
from typing import Callable

from pp_hostd.kube.resources import OPENSHIFT_MACHINES
from pp_hostd.sim.agent import MACHINES_IN
from pp_hostd.sim.api import SERVERS, Health
from pp_hostd.sim.schedule import Schedule, Trouble
from pp_hostd.sim.world import World

Pair = tuple[str, str]


class Play:
    """What lasts ends by itself, or when all is healed."""

    def __init__(self, world: World, schedule: Schedule) -> None:
        self._world = world
        self._cuts: list[frozenset[Pair]] = []
        self._acts: dict[str, Callable[[Trouble], None]] = {
            "request": lambda trouble: world.request(trouble.who[0]),
            "absolve": lambda trouble: world.absolve(trouble.who[0]),
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
            "power fails": lambda trouble: world.hosts[trouble.who[0]].go_down("its power failed"),
            "agent is killed": lambda trouble: world.kill_agent(trouble.who[0]),
            "agent hangs": self._agent_hangs,
            "agent stalls": self._stall,
            "agent stalls at the worst moment": self._stall_at_worst,
            "agent stops": self._stop,
            "leader is killed": lambda trouble: world.kill_leader(self._leader(trouble)),
            "leader hangs": self._leader_hangs,
            "reset fails": self._reset_fails,
            "packets are lost": self._lose,
            "packets come twice": self._double,
            "a host is slow": self._slow,
            "machine is replaced": self._replace_machine,
            "condemnation lapses": lambda trouble: world.lapse(trouble.who[0], min(trouble.seconds, 20.0)),
            "watches lag": self._lag,
        }
        for trouble in schedule.troubles:
            world.time.at(trouble.at, partial(self._happen, trouble))
        world.time.at(schedule.healed_at, self.heal)

    def _happen(self, trouble: Trouble) -> None:
        self._world.note("TROUBLE", f"{trouble.what}: {', '.join(trouble.who)}")
        self._acts[trouble.what](trouble)

    def heal(self) -> None:
        """The network, the API and the power are well; nobody's mind is changed."""
        world = self._world
        self._cuts.clear()
        self._apply_cuts()
        world.network.loss = world.network.doubled = 0.0
        world.network.slow_seconds.clear()
        world.api.lag_seconds = 0.0
        world.api.health.update(dict.fromkeys(SERVERS, Health.WELL))
        for host in world.hosts.values():
            host.reset_works = True
            host.power_on()
        world.mended()
        world.note("TROUBLE", "all is healed")

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
        self._world.network_changed()

    def _lose(self, trouble: Trouble) -> None:
        network = self._world.network
        network.loss = trouble.part * 0.6
        self._world.network_changed()
        self._world.time.after(trouble.seconds, lambda: setattr(network, "loss", 0.0))

    def _double(self, trouble: Trouble) -> None:
        network = self._world.network
        network.doubled = trouble.part * 0.3
        self._world.time.after(trouble.seconds, lambda: setattr(network, "doubled", 0.0))

    def _slow(self, trouble: Trouble) -> None:
        network, name = self._world.network, trouble.who[0]
        network.slow_seconds[name] = trouble.part * 4
        self._world.network_changed()

        def recover() -> None:
            network.slow_seconds.pop(name, None)

        self._world.time.after(trouble.seconds, recover)

    # The API.

    def _ail(self, trouble: Trouble, servers: tuple[str, ...], how: Health) -> None:
        health = self._world.api.health
        health.update(dict.fromkeys(servers, how))
        self._world.api_changed()

        def recover() -> None:
            health.update({server: Health.WELL for server in servers if health[server] is how})
            self._world.api_changed()

        self._world.time.after(trouble.seconds + 1, recover)

    def _lag(self, trouble: Trouble) -> None:
        """What is written is seen late by those who watch; reads are not concerned."""
        api = self._world.api
        api.lag_seconds = trouble.part * 25
        self._world.time.after(trouble.seconds, lambda: setattr(api, "lag_seconds", 0.0))

    # Hosts and processes.

    def _reset_fails(self, trouble: Trouble) -> None:
        self._world.hosts[trouble.who[0]].reset_works = False

    def _leader(self, trouble: Trouble) -> str:
        leaders = sorted(self._world.leaders)
        return leaders[int(trouble.part * len(leaders))] if leaders else ""

    def _agent_hangs(self, trouble: Trouble) -> None:
        name = trouble.who[0]
        if name in self._world.agents:
            self._world.agents[name][0].hang(trouble.seconds)
            self._world.disturbed(name, trouble.seconds)

    def _leader_hangs(self, trouble: Trouble) -> None:
        name = self._leader(trouble)
        if name:
            self._world.leaders[name][0].hang(trouble.seconds)

    def _stall(self, trouble: Trouble) -> None:
        name = trouble.who[0]
        _, agent = self._world.agents.get(name, (None, None))
        if agent is not None:
            agent.feeding.stall(min(trouble.seconds, 20.0))
            self._world.disturbed(name, 40.0)

    def _stall_at_worst(self, trouble: Trouble) -> None:
        name = trouble.who[0]
        _, agent = self._world.agents.get(name, (None, None))
        if agent is not None:
            agent.feeding.stall_at_worst()
            self._world.disturbed(name, 100.0)

    def _stop(self, trouble: Trouble) -> None:
        """As for an update of the package: stopped, and started again a little later."""
        name = trouble.who[0]
        _, agent = self._world.agents.get(name, (None, None))
        if agent is not None:
            agent.stop()
            self._world.disturbed(name, 100.0)
            self._world.time.after(5 + trouble.seconds, lambda: self._world.kill_agent(name))

    def _replace_machine(self, trouble: Trouble) -> None:
        """Another machine under the old name: it is told apart by its uid alone."""
        name, api = trouble.who[0], self._world.api
        api.delete(OPENSHIFT_MACHINES, MACHINES_IN, name)
        self._world.make_machine(name)
        boot = self._world.hosts[name].boot
        if boot is not None and boot.kubelet_since is not None and boot.watchdog_seconds is not None:
            self._world.replaced[name] = boot.id
