"""A watch: a list, and then every change in order, late while the way is cut, and begun again when it breaks."""

from __future__ import annotations

from typing import Any, Callable

from pp_hostd.embedded.history import Event, Subscription
from pp_hostd.embedded.paging import Query
from pp_hostd.embedded.status import StatusError
from pp_hostd.kube.resources import Resource
from pp_hostd.sim.api import Client, Failed, Json, Reply

DEADLINE_SECONDS = 5.0
DELAY_SECONDS = 0.005
AGAIN_SECONDS = 1.0
SILENCE_SECONDS = 90.0


class Stream:
    """`listed` takes what there is, `changed` each event after that, for as long as it is `wanted`."""

    def __init__(
        self,
        client: Client,
        kind: Resource,
        query: Query,
        listed: Callable[[list[Json]], None],
        changed: Callable[[Event], None],
        wanted: Callable[[], bool] = lambda: True,
    ) -> None:
        self._client, self._kind, self._query, self._wanted = client, kind, query, wanted
        self._listed, self._changed = listed, changed
        self._server = ""
        self._subscription: Subscription | None = None
        self._waiting_since: float | None = None
        self._begin()

    def _begin(self) -> None:
        if not self._wanted():
            return
        self._server = self._client.server
        self._client.call(self._subscribe, self._take_list, DEADLINE_SECONDS)

    def _subscribe(self) -> tuple[list[Json], Subscription]:
        store = self._client.api.store
        self._client.api.check_served(self._kind)
        found: Any = store.list(self._kind, self._query)
        version = found["metadata"]["resourceVersion"]
        query = Query(
            self._query.namespace, self._query.label_selector, self._query.field_selector, resource_version=version
        )
        return found["items"], store.watch(self._kind, self._wake, query)

    def _take_list(self, reply: Reply) -> None:
        if isinstance(reply, Failed):
            self._client.process.later(AGAIN_SECONDS, self._begin)
            return
        items, self._subscription = reply
        if not self._wanted():
            self._close()
            return
        self._listed(items)
        self._wake()  # of what came between

    def _wake(self) -> None:
        if not (self._client.process.alive and self._wanted()):
            self._close()
        elif self._waiting_since is None:
            self._waiting_since = self._client.time.now
            self._try()

    def _try(self) -> None:
        """TCP sends again and again what is lost on the way."""
        client, waited = self._client, self._client.time.now - (self._waiting_since or 0.0)
        if client.api.is_dead(self._server) or waited > SILENCE_SECONDS:
            self._break()
        elif not client.process.alive:
            self._close()
        elif client.api.answers(self._server) and (self._server, client.host) not in client.network.cut:
            self._waiting_since = None
            client.time.after(DELAY_SECONDS + client.api.lag_seconds, lambda: client.process.do(self._pump))
        else:
            client.time.after(AGAIN_SECONDS, self._try)

    def _pump(self) -> None:
        if self._subscription is None or not self._wanted():
            return
        try:
            events = self._subscription.take()
        except StatusError:
            self._break()
            return
        for event in events:
            self._changed(event)

    def _break(self) -> None:
        self._close()
        self._client.process.later(AGAIN_SECONDS, self._begin)

    def _close(self) -> None:
        self._waiting_since = None
        if self._subscription is not None:
            self._subscription.close()
            self._subscription = None
