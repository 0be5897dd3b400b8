"""An agent's process: the real driver and witness, with senses and hands that reach into the simulated world."""

from __future__ import annotations

import random
from datetime import datetime, timezone
from functools import partial
from typing import Any, Callable

from pp_hostd.agent.act.reset import SYNC_SECONDS
from pp_hostd.agent.binding import standing
from pp_hostd.agent.driver import Driver
from pp_hostd.agent.fresh_reads import Cancel, Ended, FreshReads, read_remembered_again
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.saved_state import SavedState, parse_saved_state
from pp_hostd.agent.sense.api import MachineReader, OwnMachine, commit, read_node, store
from pp_hostd.agent.sense.peers import ask_each
from pp_hostd.agent.sense.watches import CondemnedWatch, RosterWatch
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.shutdown import POWER_OFF_SECONDS, WITHDRAW_SECONDS, is_kernel_to_end
from pp_hostd.agent.witness import Statement, Witness
from pp_hostd.embedded.history import Event
from pp_hostd.embedded.paging import Query
from pp_hostd.kube.resources import CONFIG_MAPS, Resource
from pp_hostd.kube.watch import Change, ChangeKind, Snapshot
from pp_hostd.model.boot_commitments import BootCommitments, GateOpened, WatchdogArmed, WatchdogDisarmed
from pp_hostd.model.keys import CONDEMNED, NAMESPACE, ROSTER
from pp_hostd.model.memory import Decision, Memory
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord, WatchdogKind
from pp_hostd.model.roster import Roster
from pp_hostd.model.settings import Settings
from pp_hostd.model.verdict import Verdict
from pp_hostd.peers.message import MachineReference, Question
from pp_hostd.sim.agent_port import AgentApi, AgentQuestions
from pp_hostd.sim.api import EPOCH, Client, Json
from pp_hostd.sim.exchange import Answered, AskPeer, Sleep, Started, Work, run
from pp_hostd.sim.feeding import Feeding
from pp_hostd.sim.host import Boot, Host
from pp_hostd.sim.stream import Stream
from pp_hostd.sim.truth import A_MOMENT, Truth
from pp_hostd.timing import peer_read_seconds


class Agent:
    """The hands of the driver, whose senses are the agent's own."""

    SENSES = AgentSenses

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
        self._host, self._boot, self._chance = host, boot, chance
        self._note, self._on_decided, self._on_false_proof = note, decided, false_proof
        self._time, self._process = client.time, client.process
        self._wakes = 0
        self._due = False
        self._decided: Decision | None = None
        self._remembered: SavedState | None = None
        self._shown = ""
        self.clock, self.settings = boot.clock, settings
        self.witness = Witness(f"{chance.getrandbits(64):x}")
        self.senses = self.SENSES(
            host.name, self.witness, Rosters(*boot.rosters), self.clock, self._wallclock, self._wake
        )
        self.senses.maintenance = host.maintenance
        kept = self._recalled()
        self.truth = Truth(self.clock, kept.memory)
        watchdog_seconds = float(settings.watchdog.timeout_seconds)
        self.feeding = Feeding(client.time, client.process, host, boot, watchdog_seconds, self._wake)
        self.driver = Driver(
            settings,
            self.senses,
            self,
            memory=kept.memory,
            commitments=kept.commitments,
            clock=self.clock,
            entropy=partial(chance.getrandbits, 64),
        )
        if boot.watchdog_seconds is not None:  # systemd kept the descriptor
            self.senses.tell(WatchdogArmed(WatchdogKind.HARDWARE, watchdog_seconds))
        read_seconds = settings.api.read_deadline_seconds
        self._api = AgentApi(client, read_seconds, self.truth, lambda: self.driver.commitments.bound_uid)
        self._questions = AgentQuestions(client, ask_peer, self.truth)
        self._reader = MachineReader(self._api, settings.api.machines, self.clock)
        self._own = OwnMachine(self._reader, host.name, read_seconds)
        self._reads = FreshReads(self._begin_read, self._later, self.witness, self.clock)
        condemned = CondemnedWatch(settings.api.machines, self.clock, self.senses)
        self._follow(client, client.api.cluster.kind, Query(label_selector=CONDEMNED), condemned)
        roster = RosterWatch(self.senses.current_rosters.newest, self._keep_roster)
        self._follow(client, CONFIG_MAPS, Query(NAMESPACE, field_selector=f"metadata.name={ROSTER}"), roster)
        self._run(read_remembered_again(self.witness, self._statement, partial(_sleep, client)))
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

    def _wallclock(self) -> datetime:
        return datetime.fromtimestamp(EPOCH + self._time.now + self._host.wallclock_off_seconds, timezone.utc)

    def _run(self, work: Work, ended: Callable[[Any], None] = lambda _: None) -> None:
        run(work, ended, lambda: self._process.alive)

    # Turns.

    def link_changed(self) -> None:
        self._process.do(self.senses.link_changed)

    def stop(self) -> None:
        """As systemd orders it."""
        self.senses.stopping = True
        self._process.do(self._wake)

    def shut_down(self, *, powers_off: bool) -> None:
        """As systemd orders it when the system shuts down."""
        ordered_at = self.clock()
        self.senses.powering_off = powers_off
        self.stop()
        at = self.clock.when(ordered_at + WITHDRAW_SECONDS)
        self._time.at(at, partial(self._process.do, partial(self._end_kernel, ordered_at)))

    def _end_kernel(self, ordered_at: float) -> None:
        if is_kernel_to_end(self.driver.commitments, ordered_at, self.clock()):
            self._note(self._host.name, "ends the kernel: its promise could not be withdrawn in time")
            self._host.end(self._boot, SYNC_SECONDS)

    def take_order(self) -> None:
        """The order for this host has changed."""
        self.senses.maintenance = self._host.maintenance
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
        if self.senses.stopping and self.driver.unbound:
            self._process.kill()
            self._host.agent_ended(self._boot)

    def _alarm(self, wakes: int) -> None:
        if wakes == self._wakes:
            self._wake()

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
        senses = self.senses
        bound = standing(self.settings, senses.host_context(), driver.commitments, driver.memory, senses.rosters(), "")
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
        record = commitments.committed(decision)
        if record is not None:
            self._run(commit(self._api, self._host.name, record, self.clock))
        self._host.reset(self._boot, SYNC_SECONDS)

    def read(self) -> None:
        self._run(self._own.read(), self.senses.tell)

    def ask(self, peers: tuple[str, ...], uid: str) -> None:
        self.truth.asks()
        rosters, me, over_at = self.senses.current_rosters, self._host.name, self.clock()
        over_at += self.settings.peers.round_seconds
        question = Question(MachineReference.of(rosters.machine_key(me), uid), me)
        for peer in rosters.members(peers):
            self._run(ask_each(self._questions.ask, (peer,), question, over_at, self.clock, self.senses.tell))

    @property
    def unproven_seconds(self) -> float:
        return self.truth.unproven_seconds(self.driver.memory)

    def look(self) -> None:
        self._run(read_node(self._api, self._host.name, self.clock), self.senses.tell)

    def store(self, record: AgentRecord, node: Node) -> None:
        self._run(store(self._api, node, record, self.clock), self.senses.tell)

    def arm(self) -> None:
        seconds = float(self.settings.watchdog.timeout_seconds)
        self._host.arm(self._boot, seconds)
        self.senses.tell(WatchdogArmed(WatchdogKind.HARDWARE, seconds))

    def disarm(self) -> None:
        self._host.disarm(self._boot)
        self.senses.tell(WatchdogDisarmed())

    def open_gate(self, reason: str) -> None:  # noqa: ARG002
        self._host.open_gate(self._boot)
        self.senses.tell(GateOpened())

    def remember(self, memory: Memory, commitments: BootCommitments) -> None:
        self._remembered = SavedState(memory, commitments)

    def show(self, verdict: Verdict) -> None:
        if verdict.sentence != self._shown:
            self._shown = verdict.sentence
            self._note(self._host.name, verdict.sentence)

    # The watches.

    def _follow(self, client: Client, kind: Resource, query: Query, watch: CondemnedWatch | RosterWatch) -> None:
        Stream(client, kind, query, partial(self._listed, watch), partial(self._changed, watch))

    def _listed(self, watch: CondemnedWatch | RosterWatch, items: list[Json]) -> None:
        watch.take(Snapshot(items, ""))

    def _changed(self, watch: CondemnedWatch | RosterWatch, event: Event) -> None:
        watch.take(Change(ChangeKind(event.type), event.object(), ""))

    def _keep_roster(self, roster: Roster) -> None:
        promised = {promise.roster_version for promise in self.driver.commitments.promises}
        rosters = self.senses.current_rosters.with_newest(roster, promised)
        self._boot.rosters = rosters.known()
        self.senses.take_rosters(rosters)

    # The peer port.

    def answer(self, question: Question, answered: Answered) -> None:
        def said(statement: Statement) -> None:
            answered(statement.answer(self._host.name, question.asked_by, question.about.machine_key))

        self._reads.ask(question.about, peer_read_seconds(self.settings), said)

    async def _statement(self, about: MachineReference) -> Statement:
        statement: Statement = await Started(partial(self._reads.ask, about, peer_read_seconds(self.settings)))
        return statement

    def _begin_read(self, about: MachineReference, seconds: float, ended: Ended) -> None:
        self._run(self._reader.read_for_peer(about, seconds), ended)

    def _later(self, seconds: float, action: Callable[[], None]) -> Cancel:
        self._process.later(seconds, action)
        return lambda: None

    def keep(self) -> None:
        """Write /run, as it would be read after a restart."""
        if self._remembered is not None:
            self._boot.run = self._remembered.render()


async def _sleep(client: Client, seconds: float) -> None:
    await Sleep(client, seconds)
