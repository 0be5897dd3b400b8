"""How each trouble of a schedule is played out in a world, of the network and the API too, and how all is healed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from typing import Callable

from pp_hostd.agent.shutdown import POWER_OFF_SECONDS
from pp_hostd.sim.api import SERVERS, ServerHealth
from pp_hostd.sim.attacks import Attacks
from pp_hostd.sim.schedule import MESSAGES, Schedule, Trouble
from pp_hostd.sim.world import World
from pp_hostd.timing import first_inquiry_ends_seconds, later_inquiry_ends_seconds

Pair = tuple[str, str]


class Weather:
    """Weather that lasts ends by itself, or when all is healed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._cuts: list[frozenset[Pair]] = []
        self.acts: Mapping[str, Callable[[Trouble], None]] = {
            "cut off": self._cut_off,
            "cut off from API": self._cut_off_from_api,
            "cut one way": self._cut_one_way,
            "all but the leader lose the API": self._leave_to_leader,
            "cut off once it is back": self._cut_off_when_back,
            "split": self._split,
            "API stops": lambda trouble: self._ail(
                trouble, SERVERS, ServerHealth.DEAD if trouble.part < 0.5 else ServerHealth.SILENT
            ),
            "API browns out": lambda trouble: self._ail(trouble, SERVERS, ServerHealth.BROWN),
            "a server stops": lambda trouble: self._ail(
                trouble, (SERVERS[int(trouble.part * 3)],), ServerHealth.SILENT
            ),
            "packets are lost": self._lose,
            "packets come twice": self._double,
            "a host is slow": self._slow,
            "a request hangs": partial(self._spoil, sent=True),
            "an answer is lost": partial(self._spoil, sent=False),
            "watches lag": self._lag,
        }

    def clear(self) -> None:
        world = self._world
        world.when_started.clear()
        self._cuts.clear()
        self._apply_cuts()
        world.network.mend()
        world.api.lag_seconds = 0.0
        world.api.health.update(dict.fromkeys(SERVERS, ServerHealth.WELL))
        world.disturbances.api_changed()

    # The network.

    def _cut_off(self, trouble: Trouble) -> None:
        self._cut(trouble, self._between(trouble.who[:1], (*self._world.names, *SERVERS)))

    def _cut_off_when_back(self, trouble: Trouble) -> None:
        """Soon after it has next started workloads."""
        cut_off = partial(self._cut_off, trouble)
        self._world.when_started[trouble.who[0]] = partial(self._world.time.after, trouble.part * 5, cut_off)

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

    def _ail(self, trouble: Trouble, servers: tuple[str, ...], how: ServerHealth) -> None:
        health, disturbances = self._world.api.health, self._world.disturbances
        health.update(dict.fromkeys(servers, how))
        disturbances.api_changed()

        def recover() -> None:
            health.update({server: ServerHealth.WELL for server in servers if health[server] is how})
            disturbances.api_changed()

        self._world.time.after(trouble.seconds + 1, recover)

    def _lag(self, trouble: Trouble) -> None:
        """Shows each write late to all watches; reads are not concerned."""
        api = self._world.api
        api.lag_seconds = trouble.part * 25
        self._world.time.after(trouble.seconds, lambda: setattr(api, "lag_seconds", 0.0))


MOST_STALL_SECONDS = 20.0
MOST_LAPSE_SECONDS = 20.0
STOPPED_SECONDS = 5.0
"""At least, from an agent's stop to its start."""
LONGER_SECONDS = 20.0
"""By so much another T may exceed the shortest that is allowed."""
CLOCK_STEP_SECONDS = 600.0
REST_SECONDS = 3.0
"""A shutdown that does not hang takes so long once the agent has ended."""
SHUTDOWN_SECONDS = 30.0
"""No shutdown takes longer."""


def hangs(trouble: Trouble) -> bool:
    """Whether it is a shutdown that only the watchdog ends."""
    return trouble.what == "shutdown" and trouble.part >= 0.5


class Play:
    """Of hosts, processes and people; the rest is weather, or an attack."""

    def __init__(self, world: World, schedule: Schedule) -> None:
        self._world, self._weather, self._healed_at = world, Weather(world), schedule.healed_at
        people = world.people
        self._acts: dict[str, Callable[[Trouble], None]] = {
            **self._weather.acts,
            **Attacks(world, schedule.healed_at).acts,
            **({} if world.operator is None else world.operator.acts),
            **({} if world.devices is None else world.devices.acts),
            **({} if world.fences is None else world.fences.acts),
            "request": lambda trouble: people.request(trouble.who[0]),
            "absolve": lambda trouble: people.absolve(trouble.who[0]),
            "absolve once it is freed": self._absolve_when_freed,
            "condemnation lapses": lambda trouble: people.lapse(
                trouble.who[0], min(trouble.seconds, MOST_LAPSE_SECONDS)
            ),
            "the leader is paused": lambda trouble: people.pause(trouble.seconds),
            "a node leaves": self._leave,
            "machine is replaced": self._replace_machine,
            "power fails": lambda trouble: world.hosts[trouble.who[0]].go_down("its power failed"),
            "power stays off": self._power_off,
            "kernel crashes": lambda trouble: world.hosts[trouble.who[0]].crash(trouble.seconds),
            "shutdown": self._shut_down,
            "reset fails": self._reset_fails,
            "a clock is set": self._set_clock,
            "agent starts late": self._start_late,
            "agent is killed": lambda trouble: world.kill_agent(trouble.who[0]),
            "agent is upgraded": partial(self._promise_otherwise, restart=True),
            "agent is reloaded": partial(self._promise_otherwise, restart=False),
            "agent hangs": self._agent_hangs,
            "agent stalls": self._stall,
            "agent stalls at the worst moment": self._stall_at_worst,
            "agent stops": self._stop,
            "leader is killed": lambda trouble: world.kill_leader(self._leader(trouble)),
            "leader hangs": self._leader_hangs,
        }
        for trouble in schedule.troubles:
            world.time.at(trouble.at, partial(self._happen, trouble))
        world.time.at(schedule.healed_at, self.heal)

    def _happen(self, trouble: Trouble) -> None:
        self._world.note("TROUBLE", f"{trouble.what}: {', '.join(trouble.who)}")
        self._acts[trouble.what](trouble)

    def heal(self) -> None:
        """The network, the API, the power and the agents are well; nobody's mind is changed."""
        self._weather.clear()
        for healed in (self._world.operator, self._world.devices, self._world.fences):
            if healed is not None:
                healed.heal()
        for process, agent in list(self._world.agents.values()):
            agent.feeding.stall_no_more()
            process.hang_no_more()
        for host in self._world.hosts.values():
            host.reset_works, host.off_until = True, 0.0
            host.power_on()
        self._world.note("TROUBLE", "all is healed")

    # Hosts and their clocks.

    def _power_off(self, trouble: Trouble) -> None:
        host, time = self._world.hosts[trouble.who[0]], self._world.time
        host.off_until = time.now + trouble.seconds
        host.go_down("its power failed")
        time.after(trouble.seconds, host.power_on)

    def _shut_down(self, trouble: Trouble) -> None:
        """By systemctl: off for so long, or a restart. If it is bad enough, the rest hangs until the watchdog fires."""
        host, world = self._world.hosts[trouble.who[0]], self._world
        most_seconds = 2 * POWER_OFF_SECONDS + SHUTDOWN_SECONDS if hangs(trouble) else SHUTDOWN_SECONDS
        host.off_until = 0.0 if hangs(trouble) else world.time.now + trouble.seconds
        world.disturbances.disturbed(host.name, most_seconds)
        rest_seconds = math.inf if hangs(trouble) else REST_SECONDS
        world.shut_down(host.name, most_seconds, powers_off=trouble.seconds > 0, rest_seconds=rest_seconds)
        world.time.after(trouble.seconds, host.power_on)

    def _reset_fails(self, trouble: Trouble) -> None:
        self._world.hosts[trouble.who[0]].reset_works = False

    def _set_clock(self, trouble: Trouble) -> None:
        """The wall clock alone: nobody sets CLOCK_BOOTTIME."""
        self._world.hosts[trouble.who[0]].wallclock_off_seconds = (trouble.part - 0.5) * 2 * CLOCK_STEP_SECONDS

    # Processes.

    def _start_late(self, trouble: Trouble) -> None:
        """When next it starts; until then nobody judges, feeds or answers there."""
        world, name = self._world, trouble.who[0]
        world.hosts[name].agent_not_before = world.time.now + trouble.seconds
        world.disturbances.disturbed(name, trouble.seconds + 1)

    def _leader(self, trouble: Trouble) -> str:
        """Half of the time the one that leads."""
        leaders = (self._world.leading() if trouble.part < 0.5 else ()) or sorted(self._world.leaders)
        return leaders[int(trouble.part * len(leaders))] if leaders else ""

    def _agent_hangs(self, trouble: Trouble) -> None:
        name = trouble.who[0]
        if name in self._world.agents:
            self._world.agents[name][0].hang(trouble.seconds)
            self._world.disturbances.disturbed(name, trouble.seconds)

    def _leader_hangs(self, trouble: Trouble) -> None:
        name = self._leader(trouble)
        if name:
            self._world.leaders[name][0].hang(trouble.seconds)

    def _stall(self, trouble: Trouble) -> None:
        name = trouble.who[0]
        _, agent = self._world.agents.get(name, (None, None))
        if agent is not None:
            agent.feeding.stall(min(trouble.seconds, MOST_STALL_SECONDS))
            self._world.disturbances.disturbed(name, 40.0)

    def _stall_at_worst(self, trouble: Trouble) -> None:
        name = trouble.who[0]
        _, agent = self._world.agents.get(name, (None, None))
        if agent is not None:
            agent.feeding.stall_at_worst(partial(self._world.disturbances.disturbed, name))

    def _stop(self, trouble: Trouble) -> None:
        """As for an update of the package: stopped, and started again a little later, or once all is healed."""
        name = trouble.who[0]
        _, agent = self._world.agents.get(name, (None, None))
        if agent is not None:
            agent.stop()
            self._world.disturbances.disturbed(name, 100.0)
            healed_seconds = max(0.0, self._healed_at - self._world.time.now - STOPPED_SECONDS)
            seconds = STOPPED_SECONDS + min(trouble.seconds, healed_seconds)
            self._world.time.after(seconds, lambda: self._world.kill_agent(name))

    def _promise_otherwise(self, trouble: Trouble, *, restart: bool) -> None:
        settings = self._world.settings
        least_seconds = max(first_inquiry_ends_seconds(settings), later_inquiry_ends_seconds(settings)) + 0.5
        self._world.promise_otherwise(trouble.who[0], least_seconds + trouble.part * LONGER_SECONDS, restart=restart)

    # People.

    def _absolve_when_freed(self, trouble: Trouble) -> None:
        world, name = self._world, trouble.who[0]
        absolve = partial(world.people.absolve, name)
        world.when_freed[name] = partial(world.time.after, trouble.part, absolve)

    def _leave(self, trouble: Trouble) -> None:
        """And joins again. It is the quiet way out: whoever orders it answers for the workloads."""
        people, name = self._world.people, trouble.who[0]
        self._world.disturbances.left = True
        people.unenrol(name)
        boot = self._world.hosts[name].boot
        if boot is not None:
            boot.machine_is_gone = False
        self._world.time.after(1 + trouble.seconds, partial(people.enrol, name))

    def _replace_machine(self, trouble: Trouble) -> None:
        name, world = trouble.who[0], self._world
        if world.api.cluster.machines_are_nodes:  # a person who deletes a Node says that its workloads are gone
            return
        if world.people.replace_machine(name):
            world.hosts[name].machine_was_replaced()
