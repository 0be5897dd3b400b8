"""A whole cluster in virtual time: hosts with agents and kubelets, leaders on some of them, an API, a network."""

from __future__ import annotations

import math
import random
from functools import partial
from typing import Callable

from pp_hostd.fencing.call import AgentCall, AgentReply
from pp_hostd.frozen import replace
from pp_hostd.kube.resources import NODES
from pp_hostd.model.answer import Answer
from pp_hostd.model.machine import Machine
from pp_hostd.model.memory import Decision
from pp_hostd.model.node import Node, parse_node
from pp_hostd.model.promise import GateKind
from pp_hostd.model.settings import Settings
from pp_hostd.peers.message import Question
from pp_hostd.sim.agent import Agent
from pp_hostd.sim.api import SERVERS, Api, Client
from pp_hostd.sim.bare_metal import Operator
from pp_hostd.sim.cluster import PLAIN, Cluster
from pp_hostd.sim.disturbance import Disturbances
from pp_hostd.sim.exchange import Answered
from pp_hostd.sim.fence_devices import Devices
from pp_hostd.sim.fence_methods import fill_fences, has_storage
from pp_hostd.sim.fences import Fences
from pp_hostd.sim.filled import fill, machine_of, register
from pp_hostd.sim.health import NodeController, Reports
from pp_hostd.sim.host import Boot, Host, Kubelet
from pp_hostd.sim.leader import Leader
from pp_hostd.sim.leader_port import Freed, claim_of
from pp_hostd.sim.network import Network
from pp_hostd.sim.people import HealthCheck, People
from pp_hostd.sim.time import Process, Time

LEADERS = 3
RESTART_SECONDS = 1.0


class World:
    """`note` hears who does what; `freed` and `changed` are for whoever checks that all is right."""

    def __init__(
        self,
        settings: Settings,
        nodes: int,
        seed: int,
        note: Callable[[str, str], None],
        cluster: Cluster = PLAIN,
    ) -> None:
        self.settings = cluster.settings(settings)
        self.note = note
        self.chance = random.Random(seed)
        self.time = Time()
        self.network = Network(self.time, self.chance)
        self.api = Api(self.time, self.network, self.chance, cluster)
        self.on_freed: Callable[[str, Freed], None] = lambda *_: None
        self.on_leader_sends: Callable[[str], None] = lambda _: None
        self.deletions = 0
        self.longest_isolation_seconds = 0.0
        """From the last true proof of a host that was armed to its end."""
        self.on_decided: Callable[[str, Decision, str], None] = lambda *_: None
        self.on_false_proof: Callable[[str], None] = lambda _: None
        self.on_fired: Callable[[str], None] = lambda _: None
        self.on_stuck: Callable[[str], None] = lambda _: None
        self.on_restored: Callable[[], None] = lambda: None
        self.on_started: Callable[[str], None] = lambda _: None
        self.when_freed: dict[str, Callable[[], None]] = {}
        """By node: what happens once, when the freeing of its workloads begins."""
        self.when_started: dict[str, Callable[[], None]] = {}
        """By node: what happens once, when next its host starts workloads."""
        self.lies: dict[str, Callable[[Question], Answer]] = {}
        """By node: what somebody with the peer key answers in place of its agent."""
        self.told: dict[str, str] = {}
        """By node: the last sentence of the leaders about it."""
        self.names = [f"node-{number}" for number in range(1, nodes + 1)]
        self.hosts = {name: Host(name, self.time, self.chance, note, self._fired) for name in self.names}
        self.agents: dict[str, tuple[Process, Agent]] = {}
        self.leaders: dict[str, tuple[Process, Leader]] = {}
        self._processes = 0
        self._leaders_are_stopped = False
        self._settings_of = {name: cluster.settings(settings, name) for name in self.names}
        dice = random.Random(f"health check {seed}")
        checks = HealthCheck(self.api, self.time, dice, note) if cluster.requested_by else None
        self.people = People(self.api, self.time, note, checks)
        watchdog_seconds = settings.watchdog.timeout_seconds
        self.disturbances = Disturbances(self.time, self.network, self.api, self.hosts, watchdog_seconds)
        fill(self.api, self.names, settings.leader.lease_seconds)
        if cluster.health_checks or cluster.fenced:
            NodeController(self.api, self.time, self.names)
        dice = random.Random(f"reports {seed}")
        if cluster.health_checks:
            Reports(self.api, self.network, self.time, dice, self.names, self._reaches)
        for number, (name, host) in enumerate(self.hosts.items()):
            if name in cluster.agentless:
                host.register = partial(register, self.api, name, number)
            host.held = cluster.gate(name) is GateKind.HOLD
            host.start, host.started = partial(self._start, host), partial(self._started, name)
            host.kubelet_runs = partial(self._start_servers, name)
            host.sends_dump_message = partial(self._tell_of_dump, name)
        dice = random.Random(f"operator {seed}")
        self.operator = Operator(self.api, self.time, dice, self.hosts, note) if cluster.power_cycles else None
        dice = random.Random(f"fences {seed}")
        self.devices = Devices(self.time, dice, self.hosts, note) if cluster.fenced else None
        self.fences = Fences(self.api, self.time, dice, self.hosts, note) if cluster.fenced else None
        self._stored = {name for name, methods in zip(self.names, cluster.fenced) if has_storage(methods)}
        if cluster.fenced:
            fill_fences(self.api, self.names)
        self.api.down = {server for name in cluster.api_on for server in self._servers_on(name)}

    def begin(self) -> None:
        for host in self.hosts.values():
            host.power_on()

    # Processes.

    def _start(self, host: Host, boot: Boot) -> None:
        boot.on_end.append(partial(self._end, host.name, boot))
        self.start_agent(host)
        if host.name in self.names[:LEADERS]:
            self.start_leader(host)
        Kubelet(self.api, self.network, self.time, host, boot, held=host.held)

    def _started(self, name: str) -> None:
        """Its kubelet writes about each pod that it starts."""
        for pods in (name, *([claim_of(name)] if name in self._stored else [])):
            self.api.pods[pods] = self.time.now
        self.on_started(name)
        self.when_started.pop(name, lambda: None)()

    def _servers_on(self, name: str) -> tuple[str, ...]:
        """Of one host that runs the API all of them, of several each a part."""
        hosts = self.api.cluster.api_on
        return tuple(each for number, each in enumerate(SERVERS) if hosts and hosts[number % len(hosts)] == name)

    def _start_servers(self, name: str) -> None:
        """They are static pods."""
        servers = self.api.down.intersection(self._servers_on(name))
        if servers:
            self.note(name, f"starts {', '.join(sorted(servers))}")
            self.api.down -= servers
            self.disturbances.api_changed()

    def _end(self, name: str, boot: Boot) -> None:
        self.api.down.update(self._servers_on(name))
        self.disturbances.api_changed()
        _, agent = self.agents.get(name, (None, None))
        if agent is not None and boot.watchdog_seconds is not None and boot.kubelet_since is not None:
            # As if its T and W had been those of everybody.
            longer_seconds = boot.self_timeout_seconds - self.settings.agent.self_timeout_seconds
            longer_seconds += 2 * max(0.0, boot.watchdog_seconds - self.settings.watchdog.timeout_seconds)
            isolation_seconds = agent.unproven_seconds - longer_seconds
            self.longest_isolation_seconds = max(self.longest_isolation_seconds, isolation_seconds)
        for processes in (self.agents, self.leaders):
            found = processes.pop(name, None)
            if found is not None:
                found[0].kill()

    def start_agent(self, host: Host) -> None:
        boot = host.boot
        if boot is None or boot.rest_seconds is not None or host.name in self.agents:
            return
        if host.name in self.api.cluster.agentless:
            return
        if self.time.now < host.agent_not_before:
            self.time.at(host.agent_not_before, partial(self.start_agent, host))
            return
        client = self._client(host.name, boot)
        ask, decided, settings = partial(self._ask, host.name), partial(self.on_decided, host.name), self._settings_of
        agent = Agent(
            settings[host.name], host, boot, client, ask, decided, self.on_false_proof, self.chance, self.note
        )
        self.agents[host.name] = (client.process, agent)

    def start_leader(self, host: Host) -> None:
        boot = host.boot
        if boot is None or host.name in self.leaders or self._leaders_are_stopped:
            return
        client = self._client(host.name, boot)
        identity = f"{host.name}_{self._processes}"
        ask = partial(self._ask, host.name)
        leader = Leader(
            self.settings,
            host,
            client,
            ask,
            self._reaches,
            self._run_agent,
            identity,
            self.frees,
            lambda: self.on_leader_sends(identity),
            self.told,
            self.note,
        )
        self.leaders[host.name] = (client.process, leader)

    def _run_agent(
        self, node: str, call: AgentCall, lives: Callable[[], bool], ended: Callable[[AgentReply], None]
    ) -> None:
        assert self.devices is not None, call
        self.devices.run(node, call, lives, ended)

    def _tell_of_dump(self, name: str) -> None:
        """The kernel that saves it tells every host that may have a leader."""
        node = self.api.if_there(parse_node, NODES, "", name)
        address = node.address if isinstance(node, Node) else None

        def arrive(at: str) -> None:
            process, leader = self.leaders.get(at, (None, None))
            if process is not None and leader is not None and address:
                process.do(partial(leader.heard_dump, address))

        for each in self.names[:LEADERS]:
            self.network.send(name, each, partial(arrive, each))

    def kill_agent(self, name: str) -> None:
        """As `kill -9`; systemd starts it again, but for a shutdown."""
        host, (process, agent) = self.hosts[name], self.agents.pop(name, (None, None))
        if process is not None and agent is not None and host.boot is not None:
            agent.keep()
            process.kill()
            host.agent_ended(host.boot)
            self.time.after(RESTART_SECONDS, partial(self.start_agent, host))

    def shut_down(self, name: str, stuck_seconds: float, *, powers_off: bool, rest_seconds: float) -> None:
        """As systemd does it: everything is told to stop, and the host ends so long after its agent."""
        host = self.hosts[name]
        boot, (process, agent) = host.boot, self.agents.get(name, (None, None))
        if boot is None or boot.rest_seconds is not None:
            return
        boot.rest_seconds = rest_seconds
        if process is not None and agent is not None and process.alive:
            agent.shut_down(powers_off=powers_off)
        else:
            host.agent_ended(boot)
        self.time.after(stuck_seconds, partial(self._look_at_shutdown, host, boot))

    def _look_at_shutdown(self, host: Host, boot: Boot) -> None:
        """A host that no watchdog guards may hang for ever; an agent that hangs is killed by systemd."""
        process, _ = self.agents.get(host.name, (None, None))
        if host.boot is not boot or (boot.watchdog_seconds is None and boot.rest_seconds == math.inf):
            return
        if process is not None and process.hangs:
            self.kill_agent(host.name)
        else:
            self.on_stuck(host.name)

    def promise_otherwise(self, name: str, self_timeout_seconds: float, *, restart: bool) -> None:
        """Its agent gets another T: by an upgrade that restarts it, or as it runs."""
        before = self._settings_of[name]
        after = replace(before, agent=replace(before.agent, self_timeout_seconds=self_timeout_seconds))
        self._settings_of[name] = after
        process, agent = self.agents.get(name, (None, None))
        if restart:
            self.kill_agent(name)
        elif process is not None and agent is not None:
            process.do(partial(agent.reload, after))

    def kill_leader(self, name: str) -> None:
        process, _ = self.leaders.pop(name, (None, None))
        if process is not None:
            process.kill()
            self.time.after(RESTART_SECONDS, partial(self.start_leader, self.hosts[name]))

    def stop_leaders(self) -> None:
        """As a person does it, on every host."""
        self._leaders_are_stopped = True
        for process, _ in self.leaders.values():
            process.kill()
        self.leaders.clear()
        self.note("a person", "stops the leaders")

    def start_leaders(self) -> None:
        self._leaders_are_stopped = False
        self.note("a person", "starts the leaders")
        for name in self.names[:LEADERS]:
            self.start_leader(self.hosts[name])

    def _client(self, name: str, boot: Boot) -> Client:
        self._processes += 1
        process = Process(self.time, boot.clock)
        return Client(self.api, self.network, self.time, name, process, self._processes)

    def _ask(self, source: str, peer: str, question: Question, answered: Answered) -> None:
        """One question over the network, and its answer."""

        def arrive() -> None:
            if peer in self.lies:
                reply(self.lies[peer](question))
                return
            process, agent = self.agents.get(peer, (None, None))
            if process is not None and agent is not None:
                process.do(lambda: agent.answer(question, reply))

        def reply(answer: Answer) -> None:
            self.network.send(peer, source, lambda: deliver(answer))

        def deliver(answer: Answer) -> None:
            if asker.alive:
                asker.do(lambda: answered(answer))

        asker = self._asker(source, question)
        self.network.send(source, peer, arrive)

    def _reaches(self, source: str, target: str) -> bool:
        """A kernel answers, whatever its agent does."""
        powered = self.hosts[source].boot is not None and self.hosts[target].boot is not None
        return powered and not self.network.is_cut_between(source, target)

    def _asker(self, source: str, question: Question) -> Process:
        own = question.about.machine_key == self.api.cluster.machine_key(source)
        return (self.agents if own else self.leaders)[source][0]

    def leading(self) -> tuple[str, ...]:
        """The hosts of leaders that act."""
        return tuple(name for name, (_, leader) in self.leaders.items() if leader.candidacy.acting(leader.clock()))

    def frees(self, node: str, write: Freed) -> None:
        self.deletions += write in (Freed.DELETED, Freed.MARKED)
        self.on_freed(node, write)
        boot = self.hosts[node].boot if node in self.hosts else None
        if boot is not None and write is Freed.STORED:
            boot.storage_freed = boot.kubelet_since is not None
        self.when_freed.pop(node, lambda: None)()

    def links_changed(self, names: tuple[str, ...]) -> None:
        """Their kernels see it, sometimes."""
        for name in names:
            if name in self.agents and self.chance.random() < 0.5:
                self.agents[name][1].link_changed()

    def machine(self, name: str) -> Machine:
        return machine_of(self.api, name)

    def agent_says(self, name: str) -> str:
        """Why it is not armed, if it says so."""
        _, agent = self.agents.get(name, (None, None))
        return "" if agent is None else agent.driver.waiting_for

    def _fired(self, name: str) -> None:
        self.on_fired(name)
