"""A whole cluster in virtual time: hosts with agents and kubelets, leaders on some of them, an API, a network."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import datetime, timezone
from functools import partial
from typing import Callable

from pp_hostd.kube.resources import CONFIG_MAPS, LEASES, NAMESPACES, NODES, OPENSHIFT_MACHINES
from pp_hostd.model.answer import Answer
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.keys import ENROLLED, EXTERNAL_REMEDIATION, NAMESPACE, ROSTER
from pp_hostd.model.lease import LEASE, given_up_spec, unheld_spec
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.memory import Decision
from pp_hostd.model.roster import Member, Roster
from pp_hostd.model.settings import Settings
from pp_hostd.sim.agent import MACHINES_IN, Agent, Answered, Question
from pp_hostd.sim.api import EPOCH, SERVERS, Api, Client
from pp_hostd.sim.host import Boot, Host
from pp_hostd.sim.leader import Leader
from pp_hostd.sim.network import Network
from pp_hostd.sim.process import Process
from pp_hostd.sim.steps import Freed
from pp_hostd.sim.time import Time

LEADERS = 3
KUBELET_SECONDS = 10.0
RESTART_SECONDS = 1.0
CALM_SECONDS = 10.0
EPOCH_TIME = datetime.fromtimestamp(EPOCH, timezone.utc)


class World:
    """`note` hears who does what; `freed` and `changed` are for whoever checks that all is right."""

    def __init__(self, settings: Settings, nodes: int, seed: int, note: Callable[[str, str], None]) -> None:
        self.settings = replace(settings, api=replace(settings.api, machines="openshift"))
        self.note = note
        self.chance = random.Random(seed)
        self.time = Time()
        self.network = Network(self.time, self.chance)
        self.api = Api(self.time, self.network, self.chance)
        self.on_freed: Callable[[str], None] = lambda _: None
        self.deletions = 0
        self.longest_isolation_seconds = 0.0
        """From the last true proof of a host that was armed to its end."""
        self.on_decided: Callable[[str, Decision, str], None] = lambda *_: None
        self.on_false_proof: Callable[[str], None] = lambda _: None
        self.replaced: dict[str, str] = {}
        """By node, the boot in which its machine was replaced."""
        self.on_fired: Callable[[str], None] = lambda _: None
        self.told: dict[str, str] = {}
        """What the leaders last said about each node."""
        self._disturbed_until: dict[str, float] = {}
        self._api_out_since: float | None = None
        self._network_quiet_since = 0.0
        self.names = [f"node-{number}" for number in range(1, nodes + 1)]
        self.hosts = {name: Host(name, self.time, self.chance, note, self._fired) for name in self.names}
        self.agents: dict[str, tuple[Process, Agent]] = {}
        self.leaders: dict[str, tuple[Process, Leader]] = {}
        self._processes = 0
        self._fill()
        for host in self.hosts.values():
            host.start = partial(self._start, host)

    def begin(self) -> None:
        for host in self.hosts.values():
            host.power_on()

    def _fill(self) -> None:
        for namespace in (NAMESPACE, MACHINES_IN):
            self.api.create(NAMESPACES, "", {"metadata": {"name": namespace}})
        members: list[Member] = []
        for number, name in enumerate(self.names):
            address = [{"type": "InternalIP", "address": f"10.0.{number // 250}.{number % 250 + 1}"}]
            annotations = {"machine.openshift.io/machine": f"{MACHINES_IN}/{name}"}
            metadata = {"name": name, "annotations": annotations, "labels": {"example.com/rack": str(number // 4)}}
            self.api.create(NODES, "", {"metadata": metadata, "status": {"addresses": address}})
            self.make_machine(name)
            members.append(
                Member(name, f"{MACHINES_IN}/{name}", address[0]["address"], self.machine(name).uid, 1, None)
            )
        body = {"metadata": {"name": ENROLLED}, "data": dict.fromkeys(self.names, "{}")}
        self.api.create(CONFIG_MAPS, NAMESPACE, body)
        # As on any day but the first: there is a roster, and a Lease that a leader has given up.
        roster = Roster.of(1, 1, members).render()
        self.api.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": ROSTER}, "data": {ROSTER: roster}})
        lease = {**unheld_spec(self.settings.leader.lease_seconds), **given_up_spec(EPOCH_TIME)}
        self.api.create(LEASES, NAMESPACE, {"metadata": {"name": LEASE}, "spec": lease})

    def make_machine(self, name: str) -> None:
        self.api.create(OPENSHIFT_MACHINES, MACHINES_IN, {"metadata": {"name": name}})
        reference = {"status": {"nodeRef": {"kind": "Node", "name": name}}}
        self.api.patch(OPENSHIFT_MACHINES, MACHINES_IN, name, reference, "status")

    # Processes.

    def _start(self, host: Host, boot: Boot) -> None:
        boot.on_end.append(partial(self._end, host.name, boot))
        self.start_agent(host)
        if host.name in self.names[:LEADERS]:
            self.start_leader(host)
        self._kubelet(host, boot)

    def _end(self, name: str, boot: Boot) -> None:
        _, agent = self.agents.get(name, (None, None))
        if agent is not None and boot.watchdog_seconds is not None and boot.kubelet_since is not None:
            self.longest_isolation_seconds = max(self.longest_isolation_seconds, agent.unproven_seconds)
        for processes in (self.agents, self.leaders):
            found = processes.pop(name, None)
            if found is not None:
                found[0].kill()

    def start_agent(self, host: Host) -> None:
        boot = host.boot
        if boot is None or host.name in self.agents:
            return
        client = self._client(host.name, boot)
        ask, decided = partial(self._ask, host.name), partial(self.on_decided, host.name)
        agent = Agent(self.settings, host, boot, client, ask, decided, self.on_false_proof, self.chance, self.note)
        self.agents[host.name] = (client.process, agent)

    def start_leader(self, host: Host) -> None:
        boot = host.boot
        if boot is None or host.name in self.leaders:
            return
        client = self._client(host.name, boot)
        identity = f"{host.name}_{self._processes}"
        ask = partial(self._ask, host.name)
        leader = Leader(self.settings, client, ask, identity, self._frees, self.told, self.note)
        self.leaders[host.name] = (client.process, leader)

    def kill_agent(self, name: str) -> None:
        """As `kill -9`; systemd starts it again."""
        process, agent = self.agents.pop(name, (None, None))
        if process is not None and agent is not None:
            agent.keep()
            process.kill()
            self.time.after(RESTART_SECONDS, partial(self.start_agent, self.hosts[name]))

    def kill_leader(self, name: str) -> None:
        process, _ = self.leaders.pop(name, (None, None))
        if process is not None:
            process.kill()
            self.time.after(RESTART_SECONDS, partial(self.start_leader, self.hosts[name]))

    def _client(self, name: str, boot: Boot) -> Client:
        self._processes += 1
        process = Process(self.time, boot.clock)
        return Client(self.api, self.network, self.time, name, process, self._processes)

    def _ask(self, source: str, peer: str, question: Question, answered: Answered) -> None:
        """One question over the network, and its answer."""

        def arrive() -> None:
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

    def _asker(self, source: str, question: Question) -> Process:
        own = question[1] == f"{MACHINES_IN}/{source}"
        return (self.agents if own else self.leaders)[source][0]

    def _kubelet(self, host: Host, boot: Boot) -> None:
        """It renews its Lease while it runs and has a way."""
        if host.boot is not boot:
            return
        server = SERVERS[0]
        if boot.kubelet_since is not None and self.api.answers(server) and not self._is_cut(host.name):
            self.api.leases[host.name] = f"{self.time.now:.3f}"
        self.time.after(KUBELET_SECONDS, partial(self._kubelet, host, boot))

    def leading(self) -> tuple[str, ...]:
        """The hosts of leaders that act."""
        return tuple(name for name, (_, leader) in self.leaders.items() if leader.candidacy.acting(leader.clock()))

    def _is_cut(self, name: str) -> bool:
        return any((name, server) in self.network.cut or (server, name) in self.network.cut for server in SERVERS)

    def _frees(self, node: str, write: Freed) -> None:
        self.deletions += write is not Freed.PODS
        self.on_freed(node)

    # What was wrong, for whoever judges whether a reset was needed.

    def disturbed(self, name: str, seconds: float) -> None:
        """Its agent can't do its work for so long."""
        until = self.time.now + seconds + self.settings.watchdog.timeout_seconds
        self._disturbed_until[name] = max(until, self._disturbed_until.get(name, 0.0))

    def is_disturbed(self, name: str) -> bool:
        host = self.hosts[name]
        return self.time.now <= self._disturbed_until.get(name, -1.0) or host.boot is None or host.decided

    def network_changed(self) -> None:
        self._network_quiet_since = self.time.now

    def api_changed(self) -> None:
        out = not any(map(self.api.answers, SERVERS))
        if not out:
            self._api_out_since = None
        elif self._api_out_since is None:
            self._api_out_since = self.time.now

    def mended(self) -> None:
        self.api_changed()
        self.network_changed()

    def links_changed(self, names: tuple[str, ...]) -> None:
        """Their kernels see it, sometimes."""
        for name in names:
            if name in self.agents and self.chance.random() < 0.5:
                self.agents[name][1].link_changed()

    def only_control_plane_failed(self, name: str) -> bool:
        """Whether nobody had the API, and nothing else was wrong, for longer than any proof lasts."""
        since, now = self._api_out_since, self.time.now
        settled = self.settings.agent.self_timeout_seconds + CALM_SECONDS
        if since is None or now - since < self.settings.agent.self_timeout_seconds or since < self._network_quiet_since:
            return False
        if since - self._network_quiet_since < settled or not isinstance(self.machine(name).condemnation, NotRequested):
            return False
        if any(self._disturbed_until.get(each, 0.0) > since - settled for each in self.names):
            return False
        return all(host.boot is not None and host.boot.since + settled < since for host in self.hosts.values())

    def agent_says(self, name: str) -> str:
        """Why it is not armed, if it says so."""
        _, agent = self.agents.get(name, (None, None))
        return "" if agent is None else agent.driver.waiting_for

    def _fired(self, name: str) -> None:
        self.on_fired(name)

    # What people and their tools do.

    def machine(self, name: str) -> Machine:
        found: Machine = self.api.found(parse_machine, OPENSHIFT_MACHINES, MACHINES_IN, name)
        return found

    def request(self, name: str) -> None:
        patch = {"metadata": {"annotations": {EXTERNAL_REMEDIATION: ""}}}
        if isinstance(self.machine(name).condemnation, NotRequested):
            self.api.patch(OPENSHIFT_MACHINES, MACHINES_IN, name, patch)
            self.note("MHC", f"asks for {name}")

    def lapse(self, name: str, seconds: float) -> None:
        """Somebody removes the condemnation, and puts the same one back."""
        condemnation = self.machine(name).condemnation
        if isinstance(condemnation, Condemned):
            self.absolve(name)
            back = {"metadata": condemnation.render()}
            self.time.after(seconds, partial(self.api.patch, OPENSHIFT_MACHINES, MACHINES_IN, name, back))
            self.note("a person", f"will put the condemnation of {name} back")

    def absolve(self, name: str) -> None:
        condemnation = self.machine(name).condemnation
        if isinstance(condemnation, (Requested, Condemned)):
            last_id = condemnation.id if isinstance(condemnation, Condemned) else condemnation.last_id
            lifted = {"metadata": NotRequested(last_id).render()}
            self.api.patch(OPENSHIFT_MACHINES, MACHINES_IN, name, lifted)
            self.note("a person", f"absolves {name}")
