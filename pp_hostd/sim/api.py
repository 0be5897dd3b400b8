"""The cluster's API: one store, three servers before it, and a quorum without which nobody is answered."""

from __future__ import annotations

import enum
import itertools
import math
import random
from functools import partial
from typing import Any, Callable

from pp_hostd.embedded.lifecycle import DeleteOptions
from pp_hostd.embedded.status import StatusError, no_such_path, not_found
from pp_hostd.embedded.store import Saved, Store
from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import CLUSTERS, MACHINES, REMEDIATIONS, Resource
from pp_hostd.model.step import Written
from pp_hostd.sim.cluster import Cluster
from pp_hostd.sim.network import Network
from pp_hostd.sim.time import Process, Time

Json = dict[str, Any]
SERVERS = ("api-1", "api-2", "api-3")
EPOCH = 1_767_225_600.0
CACHE_SECONDS = 60.0
_PLAINLY = DeleteOptions()
Parse = Callable[[object], Any]
_Key = tuple[Resource, str, str]


@frozen
class Failed:
    """No answer, or a refusal. `written` is the outcome of a write, as far as the client can know."""

    sentence: str
    written: Written
    missing: bool = False
    """The API itself says that there is no such object."""
    unserved: bool = False
    """Nothing is served under that path."""


Reply = Any
"""The answer to a request: the requested value, or Failed."""
Serve = Callable[[], Any]
Done = Callable[[Reply], None]


class ServerHealth(enum.Enum):
    """How a server answers."""

    WELL = "well"
    DEAD = "dead"
    """Connections are refused."""
    SILENT = "silent"
    """Nothing comes back."""
    BROWN = "browned out"
    """Some requests take seconds, some are refused."""


_UP = (ServerHealth.WELL, ServerHealth.BROWN)


class Api:
    """`health` is by server; a server reaches a quorum if one other is neither dead nor cut off from it."""

    def __init__(self, time: Time, network: Network, chance: random.Random, cluster: Cluster) -> None:
        self.cluster = cluster
        self._time, self._network, self._chance = time, network, chance
        uids = itertools.count(1)
        self.store = Store(lambda: EPOCH + time.now, lambda: f"uid-{next(uids)}", history_limit=100, watch_limit=1000)
        self.health = dict.fromkeys(SERVERS, ServerHealth.WELL)
        self.down: set[str] = set()
        """Servers that do not run, because their host or its kubelet does not."""
        self.refused: set[str] = set()
        """Hosts whose agents and leaders have no valid credential: each of their requests is refused."""
        self.serves_machines = True
        """Whether the CRD of the machines is there."""
        self.leases: dict[str, str] = {}
        """Of kubelets, by node: when each was last renewed."""
        self._renewed_before: dict[str, float] = {}
        """The same of the renewal before."""
        self.pods: dict[str, float] = {}
        """By node: when the pods were last written that it runs, or ran when it was last there."""
        self.machine_deleted_at: dict[str, float] = {}
        self.requests = 0
        self.lag_seconds = 0.0
        """Of watches."""
        kinds = (MACHINES[cluster.machines], CLUSTERS, *REMEDIATIONS.values())
        self._unserved = {each for versions in kinds for each in versions if each is not cluster.served(versions)}
        self._machine_kind = cluster.kind
        self._parsed: dict[_Key, dict[Parse, Any]] = {}
        self._past: dict[_Key, list[tuple[float, Json]]] = {}

    # The store, as a client that is served finds it. A parsed object is kept until somebody writes that object.

    def found(self, parse: Parse, kind: Resource, namespace: str, name: str) -> Any:
        """Returns the object as it is now, parsed; StatusError if there is none."""
        self.check_served(kind)
        parsed = self._kept(kind, namespace, name)
        if parsed is None:
            raise not_found(kind, name)
        return _parsed(parsed, parse)

    def found_in_cache(self, parse: Parse, kind: Resource, namespace: str, name: str) -> Any:
        """Returns the object as in a watch cache that lags far behind; no read of ours uses such a cache (rule 1)."""
        past = self._past.get((kind, namespace, name), ())
        before = [was for at, was in past if at <= self._time.now - CACHE_SECONDS]
        return parse(before[-1]) if before else self.found(parse, kind, namespace, name)

    def changed_at(self, kind: Resource, namespace: str, name: str) -> float:
        """When this machine was last written."""
        past = self._past.get((kind, namespace, name))
        return past[-1][0] if past else 0.0

    def past(self, kind: Resource, namespace: str, name: str) -> list[Json]:
        """This machine after each write."""
        return [was for _, was in self._past.get((kind, namespace, name), ())]

    def if_there(self, parse: Parse, kind: Resource, namespace: str, name: str) -> Any:
        """The same; None if there is no such object."""
        self.check_served(kind)
        parsed = self._kept(kind, namespace, name)
        return None if parsed is None else _parsed(parsed, parse)

    def renew(self, node: str) -> None:
        """As its kubelet renews its Lease."""
        self._renewed_before[node] = float(self.leases.get(node, "-inf"))
        self.leases[node] = f"{self._time.now:.3f}"

    def renewed_at(self, node: str, until: float) -> float:
        """When a kubelet had last renewed its Lease at that time, which is less than one period ago; -inf if never."""
        newest = float(self.leases.get(node, "-inf"))
        return newest if newest <= until else self._renewed_before.get(node, -math.inf)

    def exists(self, kind: Resource, namespace: str, name: str) -> bool:
        return self._is_served(kind) and self._kept(kind, namespace, name) is not None

    def create(self, kind: Resource, namespace: str, body: Json) -> Json:
        return self.store.create(kind, namespace, {"apiVersion": kind.api_version, "kind": kind.kind, **body})

    def check_served(self, kind: Resource) -> None:
        """StatusError if nothing is served under the path of this kind."""
        if not self._is_served(kind):
            raise no_such_path()

    def _is_served(self, kind: Resource) -> bool:
        return kind not in self._unserved and (self.serves_machines or kind is not self._machine_kind)

    def restore(self, saved: Saved) -> None:
        self._parsed.clear()
        self.store.restore(saved)

    def patch(self, kind: Resource, namespace: str, name: str, patch: Json, subresource: str = "") -> Json:
        self.check_served(kind)
        self._forget(kind, namespace, name)
        patched = self.store.patch(kind, namespace, name, patch, subresource)
        if kind is self._machine_kind:
            self._past.setdefault((kind, namespace, name), []).append((self._time.now, patched))
        return patched

    def update(self, kind: Resource, namespace: str, name: str, body: Json) -> Json:
        self._forget(kind, namespace, name)
        body = {"apiVersion": kind.api_version, "kind": kind.kind, **body}
        return self.store.update(kind, namespace, name, body)

    def delete(self, kind: Resource, namespace: str, name: str, options: DeleteOptions = _PLAINLY) -> Json:
        self._forget(kind, namespace, name)
        if kind is self._machine_kind:
            self.machine_deleted_at[name] = self._time.now
        return self.store.delete(kind, namespace, name, options)

    def _kept(self, kind: Resource, namespace: str, name: str) -> dict[Parse, Any] | None:
        """Returns what is kept of the object as it is now; None if there is none. Most looks find it or nothing: an
        exception for each object that is not there would take longer than all else."""
        key = (kind, namespace, name)
        parsed = self._parsed.get(key)
        if parsed is None and self.store.has(kind, namespace, name):
            parsed = self._parsed[key] = {as_it_is: self.store.get(kind, namespace, name)}
        return parsed

    def _forget(self, kind: Resource, namespace: str, name: str) -> None:
        self._parsed.pop((kind, namespace, name), None)

    # The servers.

    def _is_up(self, server: str) -> bool:
        return self.health[server] in _UP and server not in self.down

    def is_dead(self, server: str) -> bool:
        """Whether it refuses connections."""
        return self.health[server] is ServerHealth.DEAD or server in self.down

    def answers(self, server: str) -> bool:
        """Whether it can carry out anything now."""
        if not self._is_up(server):
            return False
        for other in SERVERS:
            if other != server and self._is_up(other) and not self._network.is_cut_between(server, other):
                return True
        return False

    def carry_out(self, server: str, serve: Serve, reply: Done) -> None:
        """At the server: sooner or later, or never."""
        self.requests += 1
        if self.is_dead(server):
            reply(Failed("connection refused", Written.NOT_DONE))
        elif self.health[server] is ServerHealth.BROWN:
            self._in_brown_out(server, serve, reply)
        elif self.answers(server):
            reply(_served(serve))
        # else: it waits for a quorum, and the asker for it

    def _in_brown_out(self, server: str, serve: Serve, reply: Done) -> None:
        dice = self._chance.random()
        if dice < 0.3:
            reply(Failed("503: too busy", Written.NOT_DONE))
        elif dice < 0.4 and self.answers(server):
            _served(serve)
            reply(Failed("500: timed out in etcd", Written.UNKNOWN))
        else:
            seconds = self._chance.random() * 4
            self._time.after(seconds, lambda: reply(_served(serve)) if self.answers(server) else None)


def as_it_is(api_object: object) -> Any:
    """The object that the API has: not to be changed."""
    return api_object


def _parsed(kept: dict[Parse, Any], parse: Parse) -> Any:
    if parse not in kept:
        kept[parse] = parse(kept[as_it_is])
    return kept[parse]


def _served(serve: Serve) -> Reply:
    try:
        return serve()
    except StatusError as error:
        missing = error.code == 404 and bool(error.details)
        written = Written.CONFLICT if missing or error.code in (409, 422) else Written.NOT_DONE
        return Failed(error.message, written, missing=missing, unserved=error.code == 404 and not missing)


class Client:
    """A process's way to the API: it stays with a server until that fails it."""

    def __init__(self, api: Api, network: Network, time: Time, host: str, process: Process, first: int) -> None:
        self.api, self.network, self.time = api, network, time
        self.host, self.process = host, process
        self._server = first % len(SERVERS)

    @property
    def server(self) -> str:
        return SERVERS[self._server]

    def turn_to_another(self) -> None:
        self._server = (self._server + 1) % len(SERVERS)

    def call(self, serve: Serve, done: Done, deadline_seconds: float) -> None:
        """One exchange: `done` is told once, by the deadline."""
        _Exchange(self, serve, done, deadline_seconds)


class _Exchange:
    def __init__(self, client: Client, serve: Serve, done: Done, deadline_seconds: float) -> None:
        self._client, self._serve, self._done = client, serve, done
        self._server, self._over = client.server, False
        client.network.send(client.host, self._server, self._arrive)
        client.time.after(deadline_seconds, self._time_out)

    def _arrive(self) -> None:
        api = self._client.api
        api.carry_out(self._server, self._refuse if self._client.host in api.refused else self._serve, self._reply)

    def _refuse(self) -> None:
        raise StatusError(401, "Unauthorized", "its certificate has ended")

    def _reply(self, reply: Reply) -> None:
        if self._client.server == self._server and self._client.api.is_dead(self._server):
            self._client.turn_to_another()
        self._client.network.send(self._server, self._client.host, partial(self._end, reply))

    def _time_out(self) -> None:
        if not self._over:
            self._client.turn_to_another()
            self._end(Failed("timed out", Written.UNKNOWN))

    def _end(self, reply: Reply) -> None:
        if not self._over:
            self._over = True
            self._client.process.do(partial(self._done, reply))
