"""The cluster as this host finds it: the kubeconfig, the calls, what runs out, and the roster."""

from __future__ import annotations

import asyncio
import os
import stat
from dataclasses import replace
from functools import partial

from pp_hostd.agent.doctor.facts import AccessFacts, NotKnown, RosterFacts
from pp_hostd.agent.doctor.probe.api import Calls
from pp_hostd.agent.doctor.probe.credentials import expiring, server_certificate
from pp_hostd.agent.doctor.probe.in_time import in_thread
from pp_hostd.agent.state import VAR_DIRECTORY, StateFiles
from pp_hostd.errors import UserError
from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.kubeconfig import Kubeconfig, load
from pp_hostd.kube.renewing import RENEWED
from pp_hostd.model.endpoint import parse_endpoint
from pp_hostd.model.keys import NAMESPACE, ROSTER
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Roster, parse_roster
from pp_hostd.model.settings import Settings

PATIENCE_SECONDS = 5.0
"""What is slow is to be told from what is away, so it may take longer than the agent would let it."""
Found = tuple["AccessFacts | NotKnown", "RosterFacts | NotKnown"]


async def cluster(settings: Settings, node: str) -> Found:
    path = settings.api.kubeconfig
    try:
        kubeconfig = await in_thread(lambda: _kubeconfig(settings))
        client = ApiClient(kubeconfig, deadline_seconds=max(PATIENCE_SECONDS, settings.api.read_deadline_seconds))
    except UserError as error:
        unknown = NotKnown.by(error)
        access = unknown if unknown.forbidden else AccessFacts(path, unknown.why, unknown.advice)
        return access, _kept_roster("the API can't be asked")
    calls = Calls(client, settings.api.machines, node)
    name = kubeconfig.tls_server_name
    servers = [in_thread(partial(server_certificate, each, name)) for each in kubeconfig.endpoints]
    try:
        await calls.make()
        in_use = client.certificate
    finally:
        client.close()
    seen = await asyncio.gather(*servers)
    found = AccessFacts(
        path=path,
        exposed=await in_thread(lambda: _exposed(path)),
        attempts=tuple(calls.attempts),
        expiring=(*await in_thread(lambda: tuple(expiring(kubeconfig, in_use))), *seen),
    )
    return found, _roster(calls)


def _kubeconfig(settings: Settings) -> Kubeconfig:
    kubeconfig = load(settings.api.kubeconfig)
    more = tuple(filter(None, map(parse_endpoint, settings.api.servers)))
    renewed = os.path.join(VAR_DIRECTORY, RENEWED)
    return replace(kubeconfig, endpoints=(*kubeconfig.endpoints, *more), renewed=renewed)


def _exposed(path: str) -> str:
    mode = stat.S_IMODE(os.stat(path).st_mode)
    return f"mode {mode:04o}" if mode & 0o077 else ""


def _roster(calls: Calls) -> RosterFacts | NotKnown:
    listed = any(each.check == "api-list-roster" and each.error is None for each in calls.attempts)
    if not listed:
        return _kept_roster("it could not be read from the API")
    if calls.roster is None:
        why = f"there is no ConfigMap {NAMESPACE}/{ROSTER}"
        return NotKnown(why, "pp-leader writes it: does one run? See: pp-leader status; pp-leader enroll NODE")
    return _read(calls.roster)


def _read(config_map: Json) -> RosterFacts | NotKnown:
    data = config_map.get("data")
    roster = parse_roster(data.get(ROSTER) if isinstance(data, dict) else None)
    if isinstance(roster, Unreadable):
        return NotKnown(str(roster), "pp-leader rewrites it when it is deleted: see pp-leader status")
    return _newest(roster, kept=False)


def _kept_roster(why: str) -> RosterFacts | NotKnown:
    """The one that the daemon keeps in /run, which its peers may still go by."""
    rosters, _ = StateFiles().load_rosters()
    return _newest(rosters[0], kept=True) if rosters else NotKnown(why)


def _newest(roster: Roster, *, kept: bool) -> RosterFacts | NotKnown:
    electorate = roster.as_of(roster.version)
    return NotKnown(str(electorate)) if isinstance(electorate, Unreadable) else RosterFacts(electorate, kept)
