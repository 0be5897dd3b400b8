"""Fence devices of a simulated cluster, BMCs and switches, and the agents that a leader runs to switch hosts by them.

A device tells the truth about what it switches. Everything else may go wrong: it can't be reached, it accepts an off
and never does it, its agent hangs until the deadline, fails after it has switched, or outlives its leader.
"""

from __future__ import annotations

import enum
import random
from collections.abc import Mapping
from functools import partial
from typing import Callable

from pp_hostd.fencing.call import AgentCall, AgentReply
from pp_hostd.sim.fence_methods import IPMI, SWITCH
from pp_hostd.sim.host import Host
from pp_hostd.sim.schedule import Trouble
from pp_hostd.sim.time import Time

MOST_SECONDS = 3.0
"""An agent that does its work needs no longer."""
ODD = 0.04
"""So often a call goes wrong without a trouble that would say so."""
LEFT = 0.5
"""So often a device does not do what an agent wanted whose leader is gone meanwhile."""
LEAST_BY_HAND_SECONDS, MORE_BY_HAND_SECONDS = 3.0, 5.0
"""Between these two, from an off, a person who waits for it has pressed the button."""


class Mode(enum.Enum):
    """How the devices of a host answer."""

    OBEYS = "obeys"
    UNREACHABLE = "can't be reached"
    LIES = "an off is accepted and never done"
    HANGS = "hangs until the deadline"
    FAILS_LATE = "fails after it has switched"


_ODD = (Mode.UNREACHABLE, Mode.LIES, Mode.HANGS, Mode.FAILS_LATE)
_FAILURES = {
    Mode.UNREACHABLE: AgentReply(1, "Connection timed out", ""),
    Mode.HANGS: AgentReply(None, "", "it did not end in time, and was killed"),
    Mode.FAILS_LATE: AgentReply(1, "Lost connection", ""),
}
Ended = Callable[[AgentReply], None]


class Devices:
    """`on_off` hears of each host that is switched off, and for which node that was; `on_port` of the agent and the
    host of each port that is switched on."""

    def __init__(
        self, time: Time, chance: random.Random, hosts: Mapping[str, Host], note: Callable[[str, str], None]
    ) -> None:
        self._time, self._chance, self._hosts, self._note = time, chance, hosts, note
        self._modes: dict[str, Mode] = {}
        self._by_hand: set[str] = set()
        """Hosts that a person powers on by hand, once they are off."""
        self._ports_off: set[tuple[str, str]] = set()
        """By agent and host: ports of switches."""
        self.on_off: Callable[[str, str], None] = lambda *_: None
        self.on_port: Callable[[str, str], None] = lambda *_: None
        self.acts: Mapping[str, Callable[[Trouble], None]] = {
            "a fence device can't be reached": partial(self._ail, Mode.UNREACHABLE),
            "a fence device does nothing": partial(self._ail, Mode.LIES),
            "a fence agent hangs": partial(self._ail, Mode.HANGS),
            "a fence agent fails late": partial(self._ail, Mode.FAILS_LATE),
            "powered on by hand once it is off": lambda trouble: self._by_hand.update(trouble.who),
        }

    def _ail(self, mode: Mode, trouble: Trouble) -> None:
        for name in trouble.who:
            self._modes[name] = mode
            self._time.after(trouble.seconds, partial(self._recover, name, mode))

    def _recover(self, name: str, mode: Mode) -> None:
        if self._modes.get(name) is mode:
            del self._modes[name]

    def heal(self) -> None:
        self._modes.clear()
        self._by_hand.clear()

    def is_cut_off(self, name: str) -> bool:
        """Whether its storage is."""
        return (SWITCH, name) in self._ports_off

    # Agents.

    def run(self, node: str, call: AgentCall, lives: Callable[[], bool], ended: Ended) -> None:
        """One call for the fence of this node; `lives` tells whether its leader is still there."""
        given, chance = dict(call.parameters), self._chance
        host, action = self._hosts[given["plug"]], given["action"]
        mode = chance.choice(_ODD) if chance.random() < ODD else self._modes.get(host.name, Mode.OBEYS)
        at, took = sorted(chance.random() * MOST_SECONDS for _ in range(2))
        if mode is Mode.HANGS:
            at, took = chance.random() * 2 * call.seconds, call.seconds
        self._note("fence agent", f"{call.agent} {action} of {host.name}, for {node}: {mode.value}")
        failure = _FAILURES.get(mode)
        if failure is not None:
            self._time.after(took, partial(ended, failure))

        def reach() -> None:
            if not lives() and chance.random() < LEFT:
                return
            code = 0
            if action == "status":
                code = 0 if self._is_on(call.agent, host) else 2
            elif mode is not Mode.LIES or action == "on":
                self._switch(node, call.agent, host, on=action == "on")
            if failure is None:
                self._time.after(took - at, partial(ended, AgentReply(code, "", "")))

        if mode is not Mode.UNREACHABLE:
            self._time.after(at, reach)

    def _is_on(self, agent: str, host: Host) -> bool:
        return host.powered if agent == IPMI else (agent, host.name) not in self._ports_off

    def _switch(self, node: str, agent: str, host: Host, *, on: bool) -> None:
        if agent == IPMI and host.powered != on:
            self._switch_power(node, host, on=on)
        elif agent != IPMI and on:
            self.on_port(agent, host.name)
            self._ports_off.discard((agent, host.name))
        elif agent != IPMI:
            self._ports_off.add((agent, host.name))

    def _switch_power(self, node: str, host: Host, *, on: bool) -> None:
        if on:
            host.switch_on()
            return
        self.on_off(host.name, node)
        host.switch_off()
        if host.name in self._by_hand:
            self._by_hand.discard(host.name)
            seconds = LEAST_BY_HAND_SECONDS + self._chance.random() * MORE_BY_HAND_SECONDS
            self._time.after(seconds, partial(self._power_on_by_hand, host))

    def _power_on_by_hand(self, host: Host) -> None:
        if not host.powered:
            self._note("a person", f"powers {host.name} on by hand")
            host.switch_on()
