"""A cluster in memory that the leader's real driver works on: every step takes effect as it would in an API.

tests/leader/virtual_host.py knows which workloads truly run on a host.
"""

from __future__ import annotations

import math
from collections.abc import Coroutine, Iterable
from dataclasses import replace
from datetime import datetime, timezone
from typing import Any, Callable, TypeVar

from pp_hostd.fencing.call import AgentCall, AgentReply
from pp_hostd.leader.driver import Driver
from pp_hostd.leader.node_memory import NextAction
from pp_hostd.leader.registry import REGISTRY, Registry
from pp_hostd.leader.steps.api import ServedKinds, ServedMachines
from pp_hostd.leader.steps.nodes import SetCondition
from pp_hostd.leader.steps.own_objects import WriteRoster
from pp_hostd.leader.steps.port import Exchange, Kind, LeaderStep, Pace, Port, StepEnded, StepNews, outcome_of
from pp_hostd.model.condemnation import Condemned, Draw, NotRequested
from pp_hostd.model.keys import CONTROL, ENROLLED, EXTERNAL_REMEDIATION
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.observed import NodeSeen, Observed, parse_node_seen
from pp_hostd.model.reachability import Finding
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Member
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written
from tests.leader.virtual_api import Json, VirtualApi
from tests.leader.virtual_steps_api import VirtualStepsApi

Result = TypeVar("Result")
Step = tuple[str, LeaderStep, float]
SINCE = datetime(2026, 3, 1, tzinfo=timezone.utc)
MOST_TURNS_AT_ONCE = 200


class VirtualCluster:
    """Senses and hands of the real driver. `done` is every step that took effect, and when; each takes so long. Upkeep
    of conditions is beside the point of most tests: it takes no time, and stands in `conditions_set` instead."""

    latency_seconds = 0.0
    wallclock_ahead_seconds: int | None = None
    """Of `now`. If None, the wall clock stands still, so that ids are small numbers."""
    acting_until_at = math.inf
    """The Lease is valid until then."""

    def __init__(
        self, machines: str = "openshift", settings: Settings | None = None, registry: Registry = REGISTRY
    ) -> None:
        self.registry = registry
        settings = settings or Settings()
        self.settings = replace(settings, api=replace(settings.api, machines=machines))
        self.api = VirtualApi(machines, registry, self.settings)
        self.now = 1000.0
        self.driver = self.a_term("leader-host")
        self.under_way: list[Step] = []
        self.done: list[tuple[float, LeaderStep]] = []
        self.conditions_set: list[tuple[float, LeaderStep]] = []
        self.pods: dict[str, int] = {}
        self.leases: dict[str, str] = {}
        self._news: list[StepNews] = []
        self._steps_api = VirtualStepsApi(self)
        self.refused = self._steps_api.refused

    def a_term(self, own_node: str, resigned_at: float = -math.inf) -> Driver:
        """A leader begins; what another one had under way, or was told, is lost."""
        self.under_way, self._news = [], []
        self.driver = Driver(
            self.settings,
            self,
            self,
            own_node=own_node,
            resigned_at=resigned_at,
            clock=lambda: self.now,
            draw=lambda: Draw(self.wallclock_seconds(), 0),
            registry=self.registry,
        )
        return self.driver

    def wallclock_seconds(self) -> int:
        return 0 if self.wallclock_ahead_seconds is None else int(self.now) + self.wallclock_ahead_seconds

    # The driver's senses and hands

    def observed(self) -> Observed:
        return self.api.observed()

    def take(self) -> list[StepNews]:
        taken, self._news = self._news, []
        return taken

    def nodes_revision(self) -> int:
        return self.api.revision

    def start(self, node: str, remedy: LeaderStep) -> None:
        self.under_way.append((node, remedy, self.now))
        if isinstance(remedy, SetCondition):
            self._carry_out(self.under_way.pop(), self.conditions_set)

    def write_roster(self, order: WriteRoster) -> None:
        at_once(outcome_of(order, self._port("")))
        self.driver.roster_ended()

    def show(self, next_actions: tuple[NextAction, ...]) -> None:
        pass

    # The hosts' part, which a subclass adds

    def answers(self, node: str, machine_key: str, peers: tuple[Member, ...], asked_at: float) -> Iterable[StepNews]:
        """Returns the peers' answers about that node."""
        raise NotImplementedError

    def frees(self, node: str) -> None:
        """The workloads of this node are about to be freed."""
        raise NotImplementedError

    def ends_pods(self, _node: str) -> bool:
        """Whether a kubelet there ends the pods that are deleted, which a subclass may have."""
        return False

    def live(self) -> None:
        """Time has passed."""
        raise NotImplementedError

    # Time

    def run(self, until: Callable[[], bool], seconds: float = 600.0) -> None:
        """Turn after turn until that is so: each step takes effect at once, and then the clock is set to the next."""
        assert self._run(until, self.now + seconds), f"not within {seconds:g} s: {self.driver.next_actions}"

    def spend(self, seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        """The same for a certain time, or until that is so."""
        self._run(until, self.now + seconds)

    def _run(self, until: Callable[[], bool], end: float) -> bool:
        turns = 0
        while not until():
            due = self.driver.turn()
            turns += 1
            assert turns < MOST_TURNS_AT_ONCE, f"it spins: {self.under_way or self.driver.next_actions}"
            if until():
                return True
            if self.under_way:
                self.pass_until(self.now + self.latency_seconds)
                self.carry_out()
            elif self._news:
                continue  # which wakes the leader
            elif self.now >= end:
                return False
            elif due > self.now:
                self.pass_until(min(due, end))
                turns = 0
        return True

    def pass_until(self, moment: float) -> None:
        self.now = moment
        self.live()

    def carry_out(self) -> None:
        """The step that has been under way for longest takes effect, and is told."""
        self._carry_out(self.under_way.pop(0), self.done)

    def _carry_out(self, under_way: Step, done: list[tuple[float, LeaderStep]]) -> None:
        node, step, began_at = under_way
        self._steps_api.now = began_at  # until its first exchange
        written, sentence = at_once(outcome_of(step, self._port(node)))
        if written is Written.DONE:
            done.append((self.now, step))
        self._news.append(StepEnded(node, step, written, self.now, sentence))

    def fail(self, written: Written, sentence: str = "the API does not answer") -> None:
        """The step that has been under way for longest fails, without any effect."""
        node, remedy, _ = self.under_way.pop(0)
        self._news.append(StepEnded(node, remedy, written, self.now, sentence))

    # The port of its steps

    def _port(self, key: str) -> Port:
        return Port(
            key=key,
            settings=self.settings,
            api=self._steps_api,
            machines=ServedMachines(self._steps_api, self.api.machines),
            served=ServedKinds(self._steps_api),
            watching=self,
            pace=Pace(math.inf),
            clock=lambda: self._steps_api.now,
            wallclock=lambda: SINCE,
            acting_until=lambda: self.acting_until_at,
            within=_at_once,
            sleep=_no_sleep,
            ask_peers=self._ask_peers,
            try_host=self._try_host,
            connects=self.connects,
            run_agent=self.run_agent,
            hand_over=_nobody_else,
            tell=self._news.append,
        )

    async def shows(self, _kind: Kind, _name: str, _version_before: str | None, _seconds: float, /) -> bool:
        return True

    async def _ask_peers(self, node: str, machine_key: str, _uid: str, peers: tuple[Member, ...]) -> None:
        self._news += self.answers(node, machine_key, peers, self._steps_api.now)

    async def _try_host(self, host: Member, others: tuple[Member, ...]) -> tuple[Finding, tuple[Finding, ...]]:
        return self.finding(host.name, ""), tuple(self.finding(host.name, other.name) for other in others)

    async def connects(self, _address: str, _port: int) -> bool:
        """Whether a device there takes a connection, which a subclass may have."""
        return False

    async def run_agent(self, _call: AgentCall) -> AgentReply:
        """The reply of a fence agent, which a subclass may have."""
        return AgentReply(None, "", "there is no such agent")

    def finding(self, _host: str, _by: str) -> Finding:
        """Returns whether the leader (if `by` is empty) or another host reaches this one."""
        return True

    # Reads and writes of others

    def machine(self, machine_key: str) -> Machine | None:
        found = self.api.get(self.api.machine_kind, machine_key)
        machine = None if found is None else parse_machine(found)
        assert not isinstance(machine, Unreadable), machine
        return machine

    def node(self, name: str) -> NodeSeen:
        seen = parse_node_seen(self.api.get("nodes", name), self.api.machines)
        assert not isinstance(seen, Unreadable), seen
        return seen

    def annotate_node(self, name: str, **annotations: str | None) -> None:
        """Keys are spelled with dots and slashes: use `**{key: value}`."""
        self.api.patch("nodes", name, {"metadata": {"annotations": annotations}})

    def annotate_machine(self, machine_key: str, **annotations: str | None) -> None:
        self.api.patch(self.api.machine_kind, machine_key, {"metadata": {"annotations": annotations}})

    def delete_node(self, name: str) -> None:
        """The kubelet's Lease is the Node's, and goes with it."""
        self.api.put("nodes", name, None)
        self.leases.pop(name, None)

    def request(self, machine_key: str) -> None:
        self.annotate_machine(machine_key, **{EXTERNAL_REMEDIATION: ""})

    def lift(self, machine_key: str) -> None:
        """As a person would, or `pp-leader absolve`: the id stays."""
        machine = self.machine(machine_key)
        assert machine is not None
        condemnation = machine.condemnation
        last_id = condemnation.id if isinstance(condemnation, Condemned) else getattr(condemnation, "last_id", 0)
        self.api.patch(self.api.machine_kind, machine_key, {"metadata": NotRequested(last_id).render()})

    def enrol(self, names: Iterable[str]) -> None:
        self.config_map(ENROLLED, dict.fromkeys(names, "{}"))

    def order(self, data: Json) -> None:
        self.config_map(CONTROL, data)

    def config_map(self, name: str, data: Json | None) -> None:
        body = None if data is None else {"metadata": {"name": name, "namespace": "pp-hostd"}, "data": data}
        self.api.put("config maps", name, body)


def at_once(work: Coroutine[Any, Any, Result]) -> Result:
    """Run what never waits."""
    try:
        work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    raise AssertionError("it waits, and nothing here takes time")


async def _at_once(_seconds: float, exchange: Exchange) -> Json:
    return await exchange()


async def _no_sleep(_seconds: float) -> None:
    pass


async def _nobody_else() -> None:
    """No other leader waits for the Lease."""
