"""The invariants of node fences: no off without a cause, no two writers, and no flow that is stuck without a reason."""

from __future__ import annotations

import itertools
import math
from typing import Callable

from pp_hostd.kube.resources import NODES
from pp_hostd.leader.node_memory import NextAction, Stage
from pp_hostd.leader.remedies.node_fence.fence import Status
from pp_hostd.model.keys import FENCED_BOOT
from pp_hostd.sim.api import as_it_is
from pp_hostd.sim.fence_devices import Devices
from pp_hostd.sim.fence_methods import SWITCH
from pp_hostd.sim.fences import Fences
from pp_hostd.sim.host import Host
from pp_hostd.sim.violation import Violation
from pp_hostd.sim.world import World

LATE_SECONDS = 45.0
"""A watch may show a Node so much later as it has become Ready, and a call of an agent take its time."""
STUCK_SECONDS = 150.0
"""Longer than any flow waits for anything by itself."""


class FenceInvariants:
    """Hears of everything that a device does. `fences` and `devices` are those of the world."""

    def __init__(self, world: World, fences: Fences, devices: Devices) -> None:
        self._world, self._fences, self._devices = world, fences, devices
        devices.on_off, devices.on_port = self._off, self._port_on

    def _off(self, host: str, node: str) -> None:
        """For a host whose plug is another one's nobody can do anything but notice it afterwards."""
        ready, since = self._fences.since.get(node, (False, 0.0))
        boot = self._world.hosts[host].boot
        if host != node or not ready or boot is None or boot.id in self._noted(node):
            return
        seconds = self._world.time.now - max(since, boot.since, self._fences.silent_at.get(node, 0.0))
        if seconds > LATE_SECONDS:
            raise Violation("needless off", f"{host} is switched off, and was Ready and heard for {seconds:.0f} s")

    def _noted(self, node: str) -> list[str]:
        """The boots whose workloads were freed, or of which there were none to free: only another one makes it well."""
        found = self._world.api.if_there(as_it_is, NODES, "", node)
        annotations = {} if found is None else found["metadata"].get("annotations", {})
        return str(annotations.get(FENCED_BOOT, "")).split()

    def _port_on(self, agent: str, host: str) -> None:
        boot = self._world.hosts[host].boot
        if agent == SWITCH and boot is not None and boot.storage_freed:
            raise Violation("two writers", f"{host} gets its storage back in the boot whose workloads were freed")

    def stored_freed(self, name: str, host: Host) -> None:
        """Its workloads on storage that can be cut off were freed."""
        if host.boot is None or not host.runs_workloads:
            return
        if not self._devices.is_cut_off(name):
            raise Violation("two copies", f"{name} runs, and can write to, what the leader has just freed")

    def at_the_end(self, is_remediated: Callable[[str], bool]) -> None:
        """A flow whose node somebody else has remediated may wait for that. One that waits for another leader has its
        time from when that one leads."""
        leaders = self._world.leaders
        term_seconds = (leaders[host][1].term_seconds for host in self._world.leading() or leaders)
        led_seconds = min(term_seconds, default=math.inf)
        for name in itertools.filterfalse(is_remediated, self._world.names):
            fence = self._fences.found(name)
            if fence is None or fence.progress.gave_up or fence.progress.status is Status.FINAL:
                continue
            age_seconds = min(led_seconds, self._world.time.now - self._fences.changed_at[name])
            if age_seconds > STUCK_SECONDS and not any(map(_is_held, self._next_actions(name))):
                told = self._world.told.get(name, "nothing")
                raise Violation("progress", f"the NodeFence of {name} is stuck for {age_seconds:.0f} s: {told}")

    def _next_actions(self, name: str) -> list[NextAction]:
        leading = (self._world.leaders[host][1] for host in self._world.leading())
        return [each for leader in leading for each in leader.next_actions if each.node == name]


def _is_held(next_action: NextAction) -> bool:
    return bool(next_action.sentence) and (next_action.refused or next_action.stage in (Stage.HELD, Stage.OVER_BUDGET))
