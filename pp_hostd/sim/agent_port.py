"""The ports of a simulated agent: its reads, writes and questions are the agent's own, and work on the simulated world.

Both ports tell `Truth` when an exchange began that shows the host's machine not condemned.
"""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any, Callable

from pp_hostd.agent.sense.api import Json
from pp_hostd.frozen import frozen
from pp_hostd.kube.outcome import ApiError, is_missing
from pp_hostd.kube.resources import NODES, Resource
from pp_hostd.model.answer import Answer, Health
from pp_hostd.model.condemnation import NotCondemned
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.node import Node, parse_node
from pp_hostd.peers.client import Peer, Silence
from pp_hostd.peers.message import Question
from pp_hostd.sim.api import Client, Parse, Reply, as_it_is
from pp_hostd.sim.exchange import AskPeer, Awaited, Call, Resume
from pp_hostd.sim.truth import Truth


class AgentApi:
    """The exchanges with the API. `bound_uid` is the uid of the machine that the host has promised by."""

    def __init__(self, client: Client, deadline_seconds: float, truth: Truth, bound_uid: Callable[[], str]) -> None:
        self._client, self._deadline_seconds, self._truth, self._bound_uid = client, deadline_seconds, truth, bound_uid
        self._own = client.api.cluster.place(client.host)
        self._missing_since: float | None = None
        self._parsed: dict[Parse, tuple[Json, Any]] = {}

    async def get(
        self,
        resource: Resource,
        name: str,
        *,
        namespace: str | None = None,
        deadline_seconds: float | None = None,
        may_rest: bool = False,  # noqa: ARG002
        every_server: bool = False,
    ) -> Json:
        """Every server has the same objects, and a read that might rest makes a connection."""
        began_at = self._client.process.clock()
        own_machine = every_server and (resource, namespace or "", name) == self._own
        serve = partial(self._client.api.found, as_it_is, resource, namespace or "", name)
        seconds = self._deadline_seconds if deadline_seconds is None else deadline_seconds
        try:
            found: Json = await Call(self._client, serve, seconds)
        except ApiError as error:
            if own_machine:
                self._missing_since = began_at if is_missing(error) else None
            raise
        if own_machine:
            self._note_machine(self._parse(parse_machine, found), began_at)
        elif resource is NODES and name == self._client.host:
            self._note_node(self._parse(parse_node, found))
        return found

    async def patch(self, resource: Resource, name: str, patch: Json) -> Json:
        written: Json = await Call(
            self._client, partial(self._client.api.patch, resource, "", name, patch), self._deadline_seconds
        )
        return written

    def _parse(self, parse: Parse, found: Json) -> Any:
        last = self._parsed.get(parse)
        if last is None or last[0] is not found:
            last = self._parsed[parse] = (found, parse(found))
        return last[1]

    def _note_machine(self, machine: object, began_at: float) -> None:
        if isinstance(machine, Machine) and machine.node == self._client.host:
            if isinstance(machine.condemnation, NotCondemned):
                self._truth.proven(began_at)
            self._missing_since = began_at if machine.uid != self._bound_uid() else None  # rule 1: its own is gone

    def _note_node(self, node: object) -> None:
        if self._missing_since is not None and isinstance(node, Node) and not node.tainted and node.freeing is None:
            self._truth.proven(self._missing_since)


@frozen
class _Asked:
    """A question to a peer, answered once: by the peer, or by the end of its time."""

    client: Client
    ask_peer: AskPeer
    peer: str
    question: Question
    seconds: float

    def begin(self, resume: Resume) -> None:
        over = False

        def end(said: Answer | Silence) -> None:
            nonlocal over
            if not over:
                over = True
                resume(said)

        self.ask_peer(self.peer, self.question, end)
        self.client.process.later(self.seconds, lambda: end(Silence("silent")))

    def __await__(self) -> Generator[Awaited, Reply, Answer | Silence]:
        said: Answer | Silence = yield self
        return said


@frozen
class AgentQuestions:
    """The questions to peers."""

    client: Client
    ask_peer: AskPeer
    truth: Truth

    async def ask(self, peer: Peer, question: Question, deadline_seconds: float) -> Answer | Silence:
        began_at = self.client.process.clock()
        said = await _Asked(self.client, self.ask_peer, peer.name, question, deadline_seconds)
        if isinstance(said, Answer) and said.health is Health.HEALTHY:
            self.truth.proven(began_at)
        return said
