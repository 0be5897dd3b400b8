"""A host: its power, kernel, watchdog and disk; the gate, and the kubelet behind it, which runs workloads."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Callable

from pp_hostd.kube.resources import NODES
from pp_hostd.model.boot_commitments import Gate
from pp_hostd.model.control import Maintenance
from pp_hostd.model.node import parse_node
from pp_hostd.model.roster import Roster
from pp_hostd.sim.api import SERVERS, Api, Json, as_it_is
from pp_hostd.sim.network import Network
from pp_hostd.sim.time import Clock, Time

BOOT_SECONDS = 8.0
"""The least that it takes a machine to be back."""
MOST_BOOT_SECONDS = 6 * BOOT_SECONDS
DUMP_MESSAGE_SECONDS = 10.0
"""Between two messages of a kernel that saves the dump of one that has crashed."""
MAX_DRIFT = 0.0005
"""Two clocks drift apart by at most 1000 ppm."""
SHORTENED_SECONDS = 1.0
"""A watchdog's longest timeout once the reset is decided (rule 8)."""


@dataclass
class Boot:
    """One boot: all that a reset takes away. `run` is what the agent keeps in /run."""

    id: str
    clock: Clock
    since: float
    gate: Gate = Gate.CLOSED
    run: str = ""
    rosters: tuple[Roster, ...] = ()
    self_timeout_seconds: float = 0.0
    """The longest T that its agents have gone by."""
    watchdog_seconds: float | None = None
    fires_at: float = 0.0
    kubelet_since: float | None = None
    decided: bool = False
    rest_seconds: float | None = None
    """Its shutdown takes so long once the agent has ended; None if none was ordered."""
    storage_freed: bool = False
    """Workloads were freed that may still run, since their storage is cut off."""
    machine_is_gone: bool = False
    """The one that is promised, so that it must end."""
    on_end: list[Callable[[], None]] = field(default_factory=list)


class Host:
    """`boot` is None while the host is down. Its watchdog calls `fired`, its kubelet's start calls `started`."""

    def __init__(
        self,
        name: str,
        time: Time,
        chance: random.Random,
        note: Callable[[str, str], None],
        fired: Callable[[str], None],
    ) -> None:
        self.name = name
        self.boot: Boot | None = None
        self.boots = 0
        self.down_since = 0.0
        self.off_until = 0.0
        """It has no power before."""
        self._switched_off = False
        """By its BMC."""
        self.wallclock_off_seconds = 0.0
        self.agent_not_before = 0.0
        """Its agent starts no earlier: things that the agent waits for may take long."""
        self.maintenance: Maintenance | None = None
        """A person's order for this host; None if there is none."""
        self.reset_works = True
        self.sick_until = 0.0
        """Until then its kubelet says that it is not Ready."""
        self._dumps_until = 0.0
        """Until then another kernel saves the dump of one that has crashed."""
        self.held = True
        """Whether its gate holds the kubelet, rather than relying on the leader's taint."""
        self.start: Callable[[Boot], object] = lambda _: None
        """Starts all that runs on the host, in each boot."""
        self.started: Callable[[], None] = lambda: None
        """Reports workloads."""
        self.kubelet_runs: Callable[[], None] = lambda: None
        """Hears again and again that its kubelet runs, whether or not it may start workloads."""
        self.sends_dump_message: Callable[[], None] = lambda: None
        """Hears of each message of the kernel that saves a dump."""
        self.register: Callable[[], None] = lambda: None
        """Makes its Node. Where an agent runs, that is the leader's to recreate."""
        self._time, self._chance, self._note, self._fired = time, chance, note, fired

    @property
    def powered(self) -> bool:
        """As its BMC reads it, also while it boots."""
        return self.boot is not None or (not self._switched_off and self._time.now >= self.off_until)

    def crash(self, dump_seconds: float) -> None:
        """Its kernel is dead; another one saves the dump, and boots the host at once."""
        if self.boot is not None:
            self._dumps_until = self._time.now + dump_seconds
            self._time.at(self._dumps_until + BOOT_SECONDS, self.power_on)
            self.go_down("its kernel crashed")
            self._dump()

    def _dump(self) -> None:
        if self.powered and self._time.now < self._dumps_until:
            self.sends_dump_message()
            self._time.after(DUMP_MESSAGE_SECONDS, self._dump)

    def switch_off(self) -> None:
        self._dumps_until = 0.0
        self._switched_off = True
        self.go_down("its BMC switched it off")

    def switch_on(self) -> None:
        self._switched_off = False
        self._boot_later()

    def power_on(self) -> None:
        if self.boot is not None or not self.powered:
            return
        if self._time.now < self._dumps_until:
            self._time.at(self._dumps_until, self.power_on)
            return
        self.boots += 1
        rate = 1 + MAX_DRIFT * (2 * self._chance.random() - 1)
        shows = self._chance.random() * 1000 if self.boots == 1 else BOOT_SECONDS
        self.boot = Boot(f"{self.name}-boot-{self.boots}", Clock(self._time, rate, shows), self._time.now)
        self._note(self.name, "boots")
        self.start(self.boot)

    def go_down(self, how: str) -> None:
        """Everything in the kernel's memory is gone."""
        boot, self.boot = self.boot, None
        if boot is not None:
            self.down_since = self._time.now
            self._note(self.name, f"is down: {how}")
            for end in boot.on_end:
                end()
            self._boot_later()

    def _boot_later(self) -> None:
        seconds = BOOT_SECONDS + (MOST_BOOT_SECONDS - BOOT_SECONDS) * self._chance.random()
        self._time.after(seconds, self.power_on)

    # The watchdog: a timer of its own, which only a feed puts off.

    def arm(self, boot: Boot, seconds: float) -> None:
        boot.watchdog_seconds = seconds
        self.feed(boot)

    def feed(self, boot: Boot) -> None:
        if boot.watchdog_seconds is None:
            return
        idle = boot.fires_at <= self._time.now
        boot.fires_at = self._time.now + boot.watchdog_seconds
        if idle:
            self._time.at(boot.fires_at, lambda: self._look_at_watchdog(boot))

    def disarm(self, boot: Boot) -> None:
        boot.watchdog_seconds = None
        boot.fires_at = 0.0
        boot.machine_is_gone = False

    def machine_was_replaced(self) -> None:
        """By another one of its name: if it has started anything for the old one, it must end or disarm."""
        boot = self.boot
        if boot is not None and boot.gate is Gate.OPEN and boot.watchdog_seconds is not None:
            boot.machine_is_gone = True

    def machine_is_back(self) -> None:
        """The one that it has promised by: nothing must end any more."""
        if self.boot is not None:
            self.boot.machine_is_gone = False

    def _look_at_watchdog(self, boot: Boot) -> None:
        if self.boot is not boot or boot.watchdog_seconds is None:
            return
        if boot.fires_at > self._time.now:
            self._time.at(boot.fires_at, lambda: self._look_at_watchdog(boot))
        else:
            self._fired(self.name)
            self.go_down("its watchdog fired")

    # A reset that is decided.

    def reset(self, boot: Boot, sync_seconds: float) -> None:
        """Rule 8: the watchdog is shortened and fed no more; the rest is haste, which may fail."""
        boot.decided = True
        if boot.watchdog_seconds is not None:
            boot.watchdog_seconds = min(boot.watchdog_seconds, SHORTENED_SECONDS)
            boot.fires_at = min(boot.fires_at, self._time.now + boot.watchdog_seconds)
            self._time.at(boot.fires_at, lambda: self._look_at_watchdog(boot))
        if self.reset_works:
            self._time.after(sync_seconds, lambda: self.go_down("it reset itself") if self.boot is boot else None)

    def end(self, boot: Boot, seconds: float) -> None:
        """As a shutdown ends it, so many seconds from now; whatever runs there runs until then."""
        self._time.after(seconds, lambda: self.go_down("it is shut down") if self.boot is boot else None)

    def agent_ended(self, boot: Boot) -> None:
        """A shutdown that was ordered goes on."""
        if boot.rest_seconds is not None:
            self.end(boot, boot.rest_seconds)

    # Workloads.

    def open_gate(self, boot: Boot) -> None:
        boot.gate = Gate.OPEN
        if self.held:
            self.start_workloads(boot)

    def start_workloads(self, boot: Boot) -> None:
        if boot.kubelet_since is None:
            boot.kubelet_since = self._time.now
            self._note(self.name, "its kubelet starts")
            self.started()

    @property
    def decided(self) -> bool:
        return self.boot is not None and self.boot.decided

    @property
    def runs_workloads(self) -> bool:
        return self.boot is not None and self.boot.kubelet_since is not None


PERIOD_SECONDS = 10.0
LOOK_SECONDS = 1.0


def has_a_way(api: Api, network: Network, name: str) -> bool:
    """Whether this host reaches an API server that answers."""
    return any(api.answers(server) and not network.is_cut_between(name, server) for server in SERVERS)


class Kubelet:
    """The kubelet of one boot. Unless it is `held`, it runs from the beginning, and looks for the leader's taint."""

    def __init__(self, api: Api, network: Network, time: Time, host: Host, boot: Boot, *, held: bool) -> None:
        self._api, self._network, self._time = api, network, time
        self._host, self._boot, self._held = host, boot, held
        time.after(LOOK_SECONDS, self._go_on)

    def _go_on(self) -> None:
        if self._host.boot is not self._boot:
            return
        runs = self._boot.kubelet_since is not None
        if runs or not self._held:
            self._host.kubelet_runs()  # and starts what needs no API
        if (runs or not self._held) and has_a_way(self._api, self._network, self._host.name):
            self._report()
            if not runs and not self._is_kept_away():
                self._host.start_workloads(self._boot)
        self._time.after(PERIOD_SECONDS if runs else LOOK_SECONDS, self._go_on)

    def _report(self) -> None:
        name = self._host.name
        self._api.renew(name)
        if not self._api.exists(NODES, "", name):
            self._host.register()
        node = self._api.if_there(as_it_is, NODES, "", name)
        if node is not None and not self._is_reported(node):
            ready = {"type": "Ready", "status": self._ready}
            others = [each for each in node.get("status", {}).get("conditions") or () if each["type"] != "Ready"]
            status = {"status": {"nodeInfo": {"bootID": self._boot.id}, "conditions": [*others, ready]}}
            self._api.patch(NODES, "", name, status, "status")

    def _is_reported(self, node: Json) -> bool:
        status = node.get("status", {})
        ready = any((each["type"], each["status"]) == ("Ready", self._ready) for each in status.get("conditions") or ())
        return ready and bool(status.get("nodeInfo", {}).get("bootID") == self._boot.id)

    @property
    def _ready(self) -> str:
        return "False" if self._time.now < self._host.sick_until else "True"

    def _is_kept_away(self) -> bool:
        """A Node that is missing is the leader's to recreate."""
        node = self._api.if_there(parse_node, NODES, "", self._host.name)
        return node is None or node.tainted
