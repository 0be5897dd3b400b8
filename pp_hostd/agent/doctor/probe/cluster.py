"""Probes of the cluster: each call of the agent's, really made, what runs out, and the roster. Nothing is changed."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import socket
import ssl
import stat
import time
from collections.abc import Awaitable, Iterator
from datetime import datetime, timezone
from functools import partial
from typing import Callable, TypeVar

from pp_hostd.agent.doctor.facts import AccessFacts, Attempt, Expiring, NotKnown, RosterFacts
from pp_hostd.agent.doctor.probe.in_time import in_thread
from pp_hostd.agent.sense.boot import boot_id
from pp_hostd.agent.state import VAR_DIRECTORY, StateFiles
from pp_hostd.errors import UserError
from pp_hostd.frozen import replace
from pp_hostd.kube.certificate import Certificate, expiry
from pp_hostd.kube.client import MERGE_PATCH, ApiClient, Json
from pp_hostd.kube.kubeconfig import Kubeconfig, Material, load
from pp_hostd.kube.outcome import ApiError, Outcome, is_missing
from pp_hostd.kube.renewing import RENEWED
from pp_hostd.kube.resources import CONFIG_MAPS, MACHINES, NODES, Resource
from pp_hostd.kube.served import ServedVersion
from pp_hostd.model.endpoint import Endpoint, parse_endpoint
from pp_hostd.model.keys import AGENT, CONDEMNED, CONTROL, NAMESPACE, ROSTER
from pp_hostd.model.machine import machine_of_node
from pp_hostd.model.promise import Withdrawn
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Roster, parse_roster
from pp_hostd.model.settings import Settings

T = TypeVar("T")

NO_ANSWER = (Outcome.UNREACHABLE, Outcome.TIMED_OUT, Outcome.TLS_REFUSED)
"""Then nothing else is tried: it would only take long to say the same."""
WRITES = 3
"""Others write to a Node too, so a conflict is no answer yet."""
WATCH = {"watch": "true", "timeoutSeconds": "1"}


class Calls:
    """`attempts` is what came of each; `roster` the ConfigMap, if it was found."""

    def __init__(self, client: ApiClient, machines: str, node: str) -> None:
        self.attempts: list[Attempt] = []
        self.roster: Json | None = None
        self._client, self._machines, self._node = client, machines, node
        self._version = ServedVersion(MACHINES[machines])
        self._unreachable = ""

    async def make(self) -> None:
        kind = MACHINES[self._machines][0].plural
        node = await self._try("api-read-node", f"get nodes {self._node}", self._read_node)
        if self._machines != "node":
            await self._try("api-read-machine", f"get {kind}", lambda: self._read_machine(node))
        await self._try("api-list-condemned", f"list {kind} (the condemned)", self._list_condemned)
        await self._try("api-watch-condemned", f"watch {kind} (the condemned)", self._watch_condemned)
        await self._try("api-list-roster", f"list configmaps {NAMESPACE}/{ROSTER}", self._list_roster)
        await self._try("api-watch-roster", f"watch configmaps {NAMESPACE}/{ROSTER}", self._watch_roster)
        await self._try("api-read-orders", f"get configmaps {NAMESPACE}/{CONTROL}", self._read_orders)
        await self._try("api-write-node", f"patch nodes {self._node} (dry run)", lambda: self._write_node(node))

    async def _try(self, check: str, right: str, call: Callable[[], Awaitable[T]]) -> T | None:
        found: T | None = None
        error: ApiError | NotKnown | None = None
        began_at = time.monotonic()
        try:
            if self._unreachable:
                raise LookupError(f"the API can't be reached ({self._unreachable})")
            found = await call()
        except ApiError as failed:
            error = failed
            self._unreachable = failed.outcome.value if failed.outcome in NO_ANSWER else ""
        except LookupError as lacking:
            error = NotKnown(str(lacking.args[0]), "See the lines above.")
        self.attempts.append(Attempt(check, right, error, time.monotonic() - began_at))
        return found

    async def _read_node(self) -> Json:
        return await self._client.get(NODES, self._node)

    async def _read_machine(self, node: Json | None) -> Json:
        machine_key = "" if node is None else machine_of_node(node, self._machines)
        if isinstance(machine_key, Unreadable) or not machine_key:
            raise LookupError(str(machine_key) or "the Node that names it could not be read")
        namespace, _, name = machine_key.rpartition("/")
        return await self._version.exchange(lambda kind: self._client.get(kind, name, namespace=namespace or None))

    async def _list_condemned(self) -> object:
        return await self._version.exchange(lambda kind: self._client.page(kind, label_selector=CONDEMNED, limit=1))

    async def _watch_condemned(self) -> None:
        await self._version.exchange(lambda kind: self._watch(kind, None, {"labelSelector": CONDEMNED}))

    async def _list_roster(self) -> None:
        selector = f"metadata.name={ROSTER}"
        page = await self._client.page(CONFIG_MAPS, namespace=NAMESPACE, field_selector=selector, limit=1)
        self.roster = page.items[0] if page.items else None

    async def _watch_roster(self) -> None:
        await self._watch(CONFIG_MAPS, NAMESPACE, {"fieldSelector": f"metadata.name={ROSTER}"})

    async def _watch(self, kind: Resource, namespace: str | None, selector: dict[str, str]) -> None:
        connection = await self._client.open_watch(kind, namespace, {**WATCH, **selector})
        connection.close()

    async def _read_orders(self) -> None:
        try:
            await self._client.get(CONFIG_MAPS, CONTROL, namespace=NAMESPACE)
        except ApiError as error:
            if not is_missing(error):  # who may be told that there are none has the right
                raise

    async def _write_node(self, node: Json | None) -> None:
        """The annotation as it stands, or as an agent that promises nothing would write it."""
        for left in reversed(range(WRITES)):
            if node is None:
                raise LookupError("the Node could not be read")
            metadata = node["metadata"]
            present = (metadata.get("annotations") or {}).get(AGENT) or Withdrawn(boot_id()).render()
            condition = {"uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"]}
            patch = {"metadata": {**condition, "annotations": {AGENT: present}}}
            try:
                await self._client.request("PATCH", f"{NODES.path(name=self._node)}?dryRun=All", patch, MERGE_PATCH)
            except ApiError as error:
                if error.outcome is not Outcome.CONFLICT or not left:
                    raise
                node = await self._read_node()
            else:
                return


CONNECT_SECONDS = 4.0
CLIENT, AUTHORITY, SERVER, TOKEN = "client-certificate", "authority", "server-certificate", "token"


def expiring(kubeconfig: Kubeconfig, in_use: Certificate | None = None) -> Iterator[Expiring]:
    """All that stands in the kubeconfig, or in the files that it names; of client certificates the one in use."""
    if kubeconfig.certificate is not None:
        material = kubeconfig.certificate
        ends = _first_end(material) if in_use is None else in_use.ends
        yield Expiring(CLIENT, "the client certificate", ends, renewed=bool(material.path))
    if kubeconfig.authority is not None:
        yield Expiring(AUTHORITY, "the cluster's authority", _first_end(kubeconfig.authority))
    if kubeconfig.token is not None:
        token_ends = _token_end(kubeconfig.token)
        if token_ends is not None:
            yield Expiring(TOKEN, "the token", token_ends, renewed=bool(kubeconfig.token.path))


def server_certificate(endpoint: Endpoint, name: str) -> Expiring:
    """Returns the end of the certificate that the server shows to anybody. Sends no request: the agent sends
    requests only to servers that it trusts."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    ends: datetime | NotKnown
    try:
        sock = socket.create_connection((endpoint.host, endpoint.port), CONNECT_SECONDS)
        with sock, context.wrap_socket(sock, server_hostname=name or endpoint.host) as tls:
            ends = expiry(ssl.DER_cert_to_PEM_cert(tls.getpeercert(True) or b""))
    except (OSError, ValueError) as error:
        ends = NotKnown(str(error), "Is that server up, and can it be reached from here?")
    return Expiring(SERVER, f"the certificate of {endpoint.url}", ends)


def _first_end(material: Material) -> datetime | NotKnown:
    """Of several certificates in one file, the earliest end."""
    try:
        text = material.read().decode("ascii", "ignore")
        parts = [part + ssl.PEM_FOOTER for part in text.split(ssl.PEM_FOOTER)[:-1]]
        return min(map(expiry, parts or [text]))
    except (UserError, ValueError) as error:
        return NotKnown(f"{material.path or material.place}: {error}", "See: pp-leader enroll NODE")


def _token_end(material: Material) -> datetime | None:
    """Where the token is a JWT with an end; it is not for us to verify."""
    try:
        payload = material.read().split(b".")[1]
        ends = json.loads(base64.urlsafe_b64decode(payload + b"=" * (-len(payload) % 4)))["exp"]
        return datetime.fromtimestamp(ends, timezone.utc)
    except (UserError, ValueError, LookupError, TypeError, OverflowError, OSError):
        return None


PATIENCE_SECONDS = 5.0
"""The least deadline of a call; the agent's may be shorter. So the doctor can tell a slow server from an absent one."""
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
