"""Every order of events around one Node: what stands there is kept at every moment, and in the end all gets done."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timezone

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from pp_hostd.agent.plan import LOOK_INTERVAL_SECONDS
from pp_hostd.model.boot_commitments import Gate
from pp_hostd.model.control import Maintenance
from pp_hostd.model.promise import Armed, GateKind, WatchdogKind, Withdrawn
from tests.agent.virtual_node import BOOT, Flight, VirtualApi, VirtualHost
from tests.harness.examples import tries

DAY = datetime(2024, 1, 1, tzinfo=timezone.utc)
ORDER = Maintenance("anna", DAY, "new disks", DAY)
OLD_PROMISE = Armed("boot-before", 22.0, 10.0, WatchdogKind.HARDWARE, GateKind.HOLD, "uid-of-host", 1)
WELL_SECONDS = 12.0


class AroundOneNode(RuleBasedStateMachine):
    """Each rule is one event; hypothesis looks for an order of them that breaks an assertion of the virtual host."""

    host: VirtualHost

    @initialize(gate=st.sampled_from(Gate), in_node=st.sampled_from([None, OLD_PROMISE]))
    def boot(self, gate: Gate, in_node: Armed | None) -> None:
        api = VirtualApi()
        api.change(agent=in_node)
        self.host = VirtualHost(gate=gate, api=api)

    @rule(seconds=st.sampled_from([0.1, 1.0, 5.0, 61.0]))
    def time_passes(self, seconds: float) -> None:
        self.host.advance(seconds)

    @rule(seconds=st.sampled_from([0.5, 3.0]))
    def all_is_well_for_a_while(self, seconds: float) -> None:
        self.host.run(seconds)

    def flight(self, number: int) -> Flight:
        return self.host.flights[number % len(self.host.flights)]

    @precondition(lambda self: self.host.flights)
    @rule(number=st.integers(0, 3))
    def the_api_answers(self, number: int) -> None:
        self.host.answer(self.flight(number))

    @precondition(lambda self: any(each.served is None for each in self.host.flights))
    @rule()
    def the_api_serves_and_the_answer_is_under_way(self) -> None:
        self.host.serve(next(each for each in self.host.flights if each.served is None))

    @precondition(lambda self: self.host.flights)
    @rule(number=st.integers(0, 3))
    def the_api_refuses(self, number: int) -> None:
        self.host.refuse(self.flight(number))

    @precondition(lambda self: self.host.flights)
    @rule(number=st.integers(0, 3))
    def an_exchange_is_lost(self, number: int) -> None:
        self.host.lose(self.flight(number))

    @precondition(lambda self: self.host.ghosts)
    @rule(number=st.integers(0, 3))
    def a_lost_write_lands_late(self, number: int) -> None:
        self.host.haunt(self.host.ghosts[number % len(self.host.ghosts)])

    @rule()
    def the_kubelet_touches_the_node(self) -> None:
        self.host.api.change()

    @precondition(lambda self: self.host.api.node is not None)
    @rule()
    def the_node_is_deleted(self) -> None:
        self.host.api.delete()

    @precondition(lambda self: self.host.api.node is None)
    @rule()
    def the_leader_recreates_the_node(self) -> None:
        self.host.api.recreate()

    @rule(freeing=st.sampled_from([None, 7]))
    def the_leader_marks_or_clears(self, freeing: int | None) -> None:
        self.host.api.change(freeing=freeing)

    @rule(timeout_seconds=st.sampled_from([22.0, 25.0, 30.0]))
    def the_configuration_changes(self, timeout_seconds: float) -> None:
        agent = replace(self.host.settings.agent, self_timeout_seconds=timeout_seconds)
        self.host.settings = self.host.driver.settings = replace(self.host.settings, agent=agent)
        self.host.check()

    @rule()
    def the_roster_changes(self) -> None:
        self.host.roster += 1
        self.host.check()

    @rule(order=st.sampled_from([None, ORDER]))
    def maintenance_is_ordered_or_over(self, order: Maintenance | None) -> None:
        self.host.maintenance = order

    @rule(stopping=st.booleans())
    def the_agent_is_stopped_or_started(self, stopping: bool) -> None:
        self.host.stopping = stopping

    @rule()
    def the_process_is_killed_and_restarted(self) -> None:
        self.host.restart()

    def teardown(self) -> None:
        """When all is well, the host is armed, promised and open; when it is stopped, withdrawn and disarmed."""
        if hasattr(self, "host"):
            self.all_gets_done()
            self.all_is_undone()

    def all_gets_done(self) -> None:
        host = self.host
        assert "reset" not in host.acts, "a host that its peers confirm is never reset"
        host.stopping, host.maintenance = False, None
        if host.api.node is None:
            host.api.recreate()
        host.api.change(freeing=None)
        host.run(LOOK_INTERVAL_SECONDS, every_seconds=1.0)  # until it sees that its promise may have vanished
        host.run(WELL_SECONDS)
        record = host.api.node.agent if host.api.node is not None else None
        assert isinstance(record, Armed) and record.boot == BOOT
        assert record.self_timeout_seconds == host.settings.agent.self_timeout_seconds
        assert record.roster_version == host.roster
        assert host.watchdog is not None and host.gate is not Gate.CLOSED

    def all_is_undone(self) -> None:
        self.host.stopping = True
        self.host.run(WELL_SECONDS)
        assert self.host.watchdog is None
        assert self.host.api.node is not None and self.host.api.node.agent == Withdrawn(BOOT)


TestAroundOneNode = AroundOneNode.TestCase
TestAroundOneNode.settings = tries(200, stateful_step_count=40)
