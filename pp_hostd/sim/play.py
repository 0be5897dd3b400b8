"""How each trouble of a schedule is played out in a world, and how all is healed in the end."""

from __future__ import annotations

import math
from functools import partial
from typing import Callable

from pp_hostd.agent.shutdown import POWER_OFF_SECONDS
from pp_hostd.sim.attacks import Attacks
from pp_hostd.sim.schedule import Schedule, Trouble
from pp_hostd.sim.weather import Weather
from pp_hostd.sim.world import World
from pp_hostd.timing import first_inquiry_ends_seconds, later_inquiry_ends_seconds

MOST_STALL_SECONDS = 20.0
MOST_LAPSE_SECONDS = 20.0
STOPPED_SECONDS = 5.0
"""At least, from an agent's stop to its start."""
LONGER_SECONDS = 20.0
"""By so much another T may exceed the shortest that is allowed."""
CLOCK_STEP_SECONDS = 600.0
REST_SECONDS = 3.0
"""What a shutdown takes once the agent has ended."""
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
        if self._world.operator is not None:
            self._world.operator.heal()
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
        leaders = sorted(self._world.leaders)
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
            agent.feeding.stall_at_worst()
            self._world.disturbances.disturbed(name, 100.0)

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
        if world.api.cluster.machines_are_nodes:  # who deletes a Node says that its workloads are gone
            return
        if world.people.replace_machine(name):
            world.hosts[name].machine_was_replaced()
