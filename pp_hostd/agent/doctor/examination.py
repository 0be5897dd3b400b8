"""The examination: every probe at once as far as they do not need each other, and all of it within a minute."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable
from datetime import datetime, timezone
from typing import Callable, TypeVar, Union

from pp_hostd import config
from pp_hostd.agent.act import watchdog_device
from pp_hostd.agent.doctor.diagnose.host import AGENT, GATE, SLEEP
from pp_hostd.agent.doctor.facts import DaemonFacts, Facts, KeyFacts, NotKnown, PeerFacts, RosterFacts
from pp_hostd.agent.doctor.probe import host
from pp_hostd.agent.doctor.probe.cluster import cluster
from pp_hostd.agent.doctor.probe.host import links, systemd
from pp_hostd.agent.doctor.probe.in_time import Probes, in_thread
from pp_hostd.agent.doctor.probe.peers import ask_peers, key, some
from pp_hostd.agent.sense.control_plane import by_name_service, gate_facts
from pp_hostd.config import ConfigError
from pp_hostd.model.gate_kind import GateFacts
from pp_hostd.model.settings import Settings

T = TypeVar("T")
Loaded = Union[config.Loaded, ConfigError]

LOOK_SECONDS, CLUSTER_SECONDS, PEERS_SECONDS = 12.0, 25.0, 15.0
NO_SETTINGS = NotKnown("the configuration can't be used", "Correct the configuration first.")


class Examination:
    """Of this host. `probes` tells what is still waited for."""

    def __init__(self, config_path: str, peer_count: int) -> None:
        self.probes = Probes()
        self._config_path, self._peer_count = config_path, peer_count

    async def facts(self) -> Facts:
        loading = in_thread(self._loaded)
        loaded: Loaded | NotKnown = await self.probes.begin("the configuration", loading, LOOK_SECONDS)
        settings = None if isinstance(loaded, (ConfigError, NotKnown)) else loaded.settings
        node = ((settings and settings.agent.node_name) or socket.gethostname()).lower()
        watchdog = self._given(settings, "the watchdog", _watchdog)
        key_found = self._given(settings, "the key", lambda given: in_thread(lambda: key(given.peers)))
        reached = self._given(settings, "the API", lambda given: cluster(given, node), CLUSTER_SECONDS)
        others = self._look("watchdogs", watchdog_device.all_known)
        rivals = self._look("processes", host.rivals)
        kernel = self._look("the kernel", host.kernel)
        units = [AGENT, GATE, *SLEEP, (settings or Settings()).agent.kubelet_unit]
        systemd_found = self._look("systemd", lambda: systemd(units))
        gate = self._given(settings, "the control plane", _gate)
        link_list = self._look("links", links)
        daemon = self._look("the daemon", host.daemon)
        known, cluster_found = await others, await reached
        access, roster = (cluster_found,) * 2 if isinstance(cluster_found, NotKnown) else cluster_found
        return Facts(
            now_wallclock=datetime.now(timezone.utc),
            loaded=loaded,
            node=node,
            daemon=await daemon,
            watchdog=await watchdog,
            other_watchdogs=() if isinstance(known, NotKnown) else known,
            rivals=await rivals,
            kernel=await kernel,
            systemd=await systemd_found,
            gate=await gate,
            access=access,
            roster=roster,
            links=await link_list,
            key=await key_found,
            peers=await self._peers(settings, node, await key_found, roster, await daemon),
        )

    def _loaded(self) -> Loaded:
        try:
            return config.load(self._config_path)
        except ConfigError as error:
            return error

    def _look(self, name: str, look: Callable[[], T]) -> asyncio.Task[T | NotKnown]:
        return self.probes.begin(name, in_thread(look), LOOK_SECONDS)

    def _given(
        self,
        settings: Settings | None,
        name: str,
        look: Callable[[Settings], Awaitable[T]],
        seconds: float = LOOK_SECONDS,
    ) -> asyncio.Task[T | NotKnown]:
        """Begins a probe that needs the settings; without settings its fact is NotKnown."""
        return self.probes.begin(name, _nothing() if settings is None else look(settings), seconds)

    async def _peers(
        self,
        settings: Settings | None,
        node: str,
        key_found: KeyFacts | NotKnown,
        roster: RosterFacts | NotKnown,
        daemon: DaemonFacts | NotKnown,
    ) -> PeerFacts | NotKnown:
        if settings is None or isinstance(roster, NotKnown) or isinstance(key_found, NotKnown):
            lacking = "configuration" if settings is None else "roster" if isinstance(roster, NotKnown) else "peer key"
            return NotKnown(f"it takes the {lacking}")
        me, others = roster.electorate.member(node), some(roster.electorate, node, self._peer_count)
        if me is None or not others:
            return NotKnown("this host is not in the roster" if me is None else "there are no peers to ask")
        runs = not isinstance(daemon, DaemonFacts) or bool(daemon.pid)
        asking = ask_peers(settings, key_found.keyring, me, others, runs)
        return await self.probes.begin("peers", asking, PEERS_SECONDS)


def _watchdog(settings: Settings) -> Awaitable[watchdog_device.Seen]:
    return in_thread(lambda: watchdog_device.query(settings.watchdog.device))


def _gate(settings: Settings) -> Awaitable[GateFacts]:
    return in_thread(lambda: gate_facts(settings, by_name_service))


async def _nothing() -> NotKnown:
    return NO_SETTINGS
