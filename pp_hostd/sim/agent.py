"""An agent's process: the real driver and witness, with senses and hands that reach into the simulated world."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Callable

from pp_hostd.agent.binding import standing
from pp_hostd.agent.driver import Driver, News
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.saved_state import SavedState, parse_saved_state
from pp_hostd.agent.shutdown import POWER_OFF_SECONDS, WITHDRAW_SECONDS, is_kernel_to_end
from pp_hostd.agent.witness import REMEMBERED_SECONDS, ReadOutcome, Statement, Unread, Witness
from pp_hostd.embedded.history import Event
from pp_hostd.embedded.paging import Query
from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.model.answer import Answer
from pp_hostd.model.boot_commitments import (
    BootCommitments,
    GateOpened,
    Look,
    StoreEnded,
    WatchdogArmed,
    WatchdogDisarmed,
)
from pp_hostd.model.condemnation import Condemned, NotCondemned
from pp_hostd.model.evidence import HostContext, LinkChanged, Read, WatchedCondemned
from pp_hostd.model.keys import CONDEMNED, NAMESPACE, ROSTER
from pp_hostd.model.machine import Machine, parse_machine
from pp_hostd.model.memory import Decision, Memory
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord, Armed, Committed, WatchdogKind
from pp_hostd.model.record import Unreadable
from pp_hostd.model.roster import Electorate, Roster, parse_roster
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written
from pp_hostd.model.verdict import Verdict
from pp_hostd.sim.api import Client, Failed, Json, Objects, Reply
from pp_hostd.sim.feeding import Feeding
from pp_hostd.sim.host import Boot, Host
from pp_hostd.sim.question import Answered, AskPeer, Question, ask
from pp_hostd.sim.stream import Stream
from pp_hostd.sim.truth import A_MOMENT, Truth
from pp_hostd.timing import peer_read_seconds

SYNC_SECONDS = 0.5


class Agent:
    """Senses and hands of the driver. `ask_peer` carries a question to another host's agent."""

    def __init__(
        self,
        settings: Settings,
        host: Host,
        boot: Boot,
        client: Client,
        ask_peer: AskPeer,
        decided: Callable[[Decision, str], None],
        false_proof: Callable[[str], None],
        chance: random.Random,
        note: Callable[[str, str], None],
    ) -> None:
        self._host, self._boot, self._client, self._ask_peer, self._chance = host, boot, client, ask_peer, chance
        self._note, self._on_decided, self._on_false_proof = note, decided, false_proof
        self._time, self._process = client.time, client.process
        self._objects = Objects(client, host.name)
        self.clock = boot.clock
        self._rosters = Rosters(*boot.rosters)
        self._host_context = HostContext(
            host.name, self._electorate(), maintenance=host.maintenance, enrolled_before=host.enrolled
        )
        self._news: list[News] = []
        self._wakes = 0
        self._due = False
        self._decided: Decision | None = None
        self._missing_since: float | None = None
        self._remembered: SavedState | None = None
        self._shown = ""
        self.witness = Witness(f"{chance.getrandbits(64):x}")
        kept = self._recalled()
        self.truth = Truth(self.clock, kept.memory)
        watchdog_seconds = float(settings.watchdog.timeout_seconds)
        self.feeding = Feeding(client.time, client.process, host, boot, watchdog_seconds, self._wake)
        self.driver = Driver(
            settings,
            self,
            self,
            memory=kept.memory,
            commitments=kept.commitments,
            clock=self.clock,
            entropy=partial(chance.getrandbits, 64),
        )
        if boot.watchdog_seconds is not None:  # systemd kept the descriptor
            self._news.append(WatchdogArmed(WatchdogKind.HARDWARE, watchdog_seconds))
        of_condemned = Query(label_selector=CONDEMNED)
        Stream(client, client.api.cluster.kind, of_condemned, self._condemned_listed, self._condemned_changed)
        of_roster = Query(NAMESPACE, field_selector=f"metadata.name={ROSTER}")
        Stream(client, CONFIG_MAPS, of_roster, self._roster_listed, self._roster_changed)
        self._process.later(REMEMBERED_SECONDS, self._read_remembered_again)
        self.reload(settings)

    def reload(self, settings: Settings) -> None:
        """As after SIGHUP."""
        self.settings = self.driver.settings = settings
        self._boot.self_timeout_seconds = max(self._boot.self_timeout_seconds, settings.agent.self_timeout_seconds)
        self._wake()

    def _recalled(self) -> SavedState:
        boot = self._boot
        kept = parse_saved_state(boot.run, boot.id, boot.gate, self.clock()) if boot.run else None
        return (
            kept.taken_up()
            if isinstance(kept, SavedState)
            else SavedState(Memory(), BootCommitments(boot.id, boot.gate))
        )

    @property
    def machine_key(self) -> str:
        return self._client.api.cluster.machine_key(self._host.name)

    # Turns.

    def tell(self, news: News) -> None:
        if isinstance(news, Read) and news.machine not in (None, self._host_context.machine):
            self._host_context = replace(self._host_context, machine=news.machine)
        if isinstance(news, Read) and (news.missing or news.machine is not None):
            self.witness.own_missing = news.missing
        self._news.append(news)
        self._wake()

    def link_changed(self) -> None:
        self._process.do(lambda: self.tell(LinkChanged(self.clock())))

    def stop(self) -> None:
        """As systemd orders it."""
        self._host_context = replace(self._host_context, stopping=True)
        self._process.do(self._wake)

    def shut_down(self, *, powers_off: bool) -> None:
        """As systemd orders it when the system shuts down."""
        ordered_at = self.clock()
        self._host_context = replace(self._host_context, powering_off=powers_off)
        self.stop()
        at = self.clock.when(ordered_at + WITHDRAW_SECONDS)
        self._time.at(at, partial(self._process.do, partial(self._end_kernel, ordered_at)))

    def _end_kernel(self, ordered_at: float) -> None:
        if is_kernel_to_end(self.driver.commitments, ordered_at, self.clock()):
            self._note(self._host.name, "ends the kernel: its promise could not be withdrawn in time")
            self._host.end(self._boot, SYNC_SECONDS)

    def take_order(self) -> None:
        """The order for this host has changed."""
        self._host_context = replace(self._host_context, maintenance=self._host.maintenance)
        self._process.do(self._wake)

    def _wake(self) -> None:
        """Whatever comes at the same moment is judged together."""
        if not self._due:
            self._due = True
            self._process.later(0.0, self._turn)

    def _turn(self) -> None:
        self._due = False
        verdict = self.driver.turn()
        self._wakes += 1
        self._time.at(self.clock.when(verdict.wake_at), partial(self._process.do, partial(self._alarm, self._wakes)))
        self.truth.judged(self.driver.memory)
        if self._host_context.stopping and self.driver.unbound:
            self._process.kill()
            self._host.agent_ended(self._boot)

    def _alarm(self, wakes: int) -> None:
        if wakes == self._wakes:
            self._wake()

    # The driver's senses.

    def take(self) -> list[News]:
        taken, self._news = self._news, []
        return taken

    def host_context(self) -> HostContext:
        return self._host_context

    def _electorate(self) -> Electorate | None:
        newest = self._rosters.newest
        return None if newest is None else self._rosters.electorate(newest.version)

    def rosters(self) -> Mapping[int, tuple[str, ...]]:
        return self._rosters

    # The driver's hands.

    def feed(self) -> None:
        memory = self.driver.memory
        late_seconds = self.truth.too_late_seconds(memory)
        if late_seconds:
            self._on_false_proof(f"{self._host.name} feeds by a proof dated {late_seconds:.2f} s too late")
        lived = 0.0 if memory.proof is None else self.clock() - memory.proof.at
        if lived > self._boot.self_timeout_seconds + A_MOMENT:
            self._on_false_proof(f"{self._host.name} feeds {lived:.2f} s after its last proof")
        self.feeding.feed(lived, self._life_seconds)

    def _life_seconds(self) -> float:
        """As it is judged by."""
        driver = self.driver
        bound = standing(self.settings, self.host_context(), driver.commitments, driver.memory, self._rosters, "")
        return bound.self_timeout_seconds

    def feed_last(self) -> None:
        """Later, when the last descriptor is closed, the kernel itself feeds the watchdog once more."""
        self._host.arm(self._boot, POWER_OFF_SECONDS)
        self._time.after(self._chance.random() * POWER_OFF_SECONDS, partial(self._host.feed, self._boot))
        self._note(self._host.name, f"leaves its watchdog to run out in {POWER_OFF_SECONDS} s, and ends")
        self._process.kill()
        self._host.agent_ended(self._boot)

    def reset(self, decision: Decision, commitments: BootCommitments) -> None:
        if self._decided == decision:
            return
        self._decided = decision
        self._on_decided(decision, commitments.bound_uid)
        self._note(self._host.name, f"resets itself: {decision.cause}")
        if commitments.promises and decision.id is not None:
            self._commit(Committed(commitments.promises[0], decision.id))
        self._host.reset(self._boot, SYNC_SECONDS)

    def _commit(self, record: Committed) -> None:
        def looked(reply: Reply) -> None:
            if isinstance(reply, Node):
                self._objects.write(record, reply, lambda _: None, self._deadline_seconds)

        self._objects.look(looked, self._deadline_seconds)

    def read(self) -> None:
        began_at = self.clock()
        self._objects.read(
            self.machine_key, lambda reply: self.tell(self._own_read(began_at, reply)), self._deadline_seconds
        )

    def _own_read(self, began_at: float, reply: Reply) -> Read:
        if isinstance(reply, Machine) and reply.node == self._host.name:
            if isinstance(reply.condemnation, NotCondemned):
                self.truth.proven(began_at)
            replaced = reply.uid != self.driver.commitments.bound_uid
            self._missing_since = began_at if replaced else None  # rule 1: its own Machine is gone
            return Read(began_at, self.clock(), reply, machine_key=self.machine_key)
        if isinstance(reply, Failed):
            self._missing_since = began_at if reply.missing else None
            failure = "" if reply.missing else reply.sentence
            return Read(began_at, self.clock(), missing=reply.missing, failure=failure, machine_key=self.machine_key)
        return Read(began_at, self.clock(), failure="it is another node's machine, or unreadable")

    def ask(self, peers: tuple[str, ...], uid: str) -> None:
        self.truth.asks()
        for peer in peers:
            ask(self, self._ask_peer, peer, (self._host.name, self.machine_key, uid))

    @property
    def unproven_seconds(self) -> float:
        return self.truth.unproven_seconds(self.driver.memory)

    def look(self) -> None:
        began_at = self.clock()
        self._objects.look(lambda reply: self.tell(self._look(began_at, reply)), self._deadline_seconds)

    def _look(self, began_at: float, reply: Reply) -> Look:
        if isinstance(reply, Node):
            if self._missing_since is not None and not reply.tainted and reply.freeing is None:
                self.truth.proven(self._missing_since)
            return Look(began_at, self.clock(), reply)
        if isinstance(reply, bool):
            return Look(began_at, self.clock(), missing=True, backup=reply)
        return Look(began_at, self.clock(), failure=str(getattr(reply, "sentence", reply)))

    def store(self, record: AgentRecord, node: Node) -> None:
        def ended(reply: Reply) -> None:
            if isinstance(reply, Node) and isinstance(record, Armed):
                self._host.enrolled = True
                self._host_context = replace(self._host_context, enrolled_before=True)
            written = reply.written if isinstance(reply, Failed) else Written.DONE
            stored = reply if isinstance(reply, Node) else None
            sentence = reply.sentence if isinstance(reply, Failed) else ""
            self.tell(StoreEnded(record, node.resource_version, written, self.clock(), stored, sentence))

        self._objects.write(record, node, ended, self._deadline_seconds)

    def arm(self) -> None:
        seconds = float(self.settings.watchdog.timeout_seconds)
        self._host.arm(self._boot, seconds)
        self.tell(WatchdogArmed(WatchdogKind.HARDWARE, seconds))

    def disarm(self) -> None:
        self._host.disarm(self._boot)
        self.tell(WatchdogDisarmed())

    def open_gate(self, reason: str) -> None:  # noqa: ARG002
        self._host.open_gate(self._boot)
        self.tell(GateOpened())

    def remember(self, memory: Memory, commitments: BootCommitments) -> None:
        self._remembered = SavedState(memory, commitments)

    def show(self, verdict: Verdict) -> None:
        if verdict.sentence != self._shown:
            self._shown = verdict.sentence
            self._note(self._host.name, verdict.sentence)

    @property
    def _deadline_seconds(self) -> float:
        return self.settings.api.read_deadline_seconds

    # The watches.

    def _roster_listed(self, items: list[Json]) -> None:
        for item in items:
            self._take_roster(item)

    def _roster_changed(self, event: Event) -> None:
        if event.type != "DELETED":
            self._take_roster(event.object())

    def _take_roster(self, config_map: Json) -> None:
        roster, newest = parse_roster(config_map["data"][ROSTER]), self._rosters.newest
        if isinstance(roster, Roster) and (newest is None or roster.version > newest.version):
            promised = {promise.roster_version for promise in self.driver.commitments.promises}
            self._rosters = self._rosters.with_newest(roster, promised)
            self._boot.rosters = self._rosters.known()
            self._host_context = replace(self._host_context, electorate=self._electorate())
            self._wake()

    def _condemned_listed(self, items: list[Json]) -> None:
        for item in items:
            self._learn(item)
        self.witness.listed()

    def _condemned_changed(self, event: Event) -> None:
        if event.type != "DELETED":  # no news acquits
            self._learn(event.object())

    def _learn(self, found: Json) -> None:
        machine = parse_machine(found)
        if isinstance(machine, Unreadable) or not isinstance(machine.condemnation, Condemned):
            return
        at = self.clock()
        self.witness.learned(machine.machine_key, machine.uid, machine.condemnation.id, at)
        own = self._host_context.machine
        if own is not None and (machine.machine_key, machine.uid) == (own.machine_key, own.uid):
            self.tell(WatchedCondemned(machine.uid, machine.condemnation.id, at))

    # The peer port.

    def answer(self, question: Question, answered: Answered) -> None:
        """A read begun from here on, and then what the witness says."""
        asker, machine_key, uid = question
        me = self._host.name

        def said(found: Statement) -> None:
            answered(Answer(found.health, found.id, found.token, "", me, asker, machine_key, found.lifted_id))

        self._state(machine_key, uid, said)

    def _state(self, machine_key: str, uid: str, said: Callable[[Statement], None]) -> None:
        began_at = self.clock()

        def read(reply: Reply) -> None:
            outcome: ReadOutcome = Unread.FAILED
            if isinstance(reply, Machine) and not isinstance(reply.condemnation, Unreadable):
                outcome = reply
            elif isinstance(reply, Failed) and reply.missing:
                outcome = Unread.NOT_FOUND
            said(self.witness.answer(machine_key, uid, outcome, began_at=began_at, now=self.clock()))

        self._objects.read(machine_key, read, peer_read_seconds(self.settings))

    def _read_remembered_again(self) -> None:
        for machine_key, uid in self.witness.remembered:
            self._state(machine_key, uid, lambda _: None)
        self._process.later(REMEMBERED_SECONDS, self._read_remembered_again)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        self._process.later(seconds, action)

    def keep(self) -> None:
        """Write /run, as it would be read after a restart."""
        if self._remembered is not None:
            self._boot.run = self._remembered.render()
