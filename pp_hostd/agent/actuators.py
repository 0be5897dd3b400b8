"""The agent's actions: each is started and never waited for; the senses get its outcome."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Coroutine
from functools import partial
from typing import Any, Callable

from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.act.reset import SYNC_SECONDS, WATCHDOG_GRACE_SECONDS, DryReset, Reset
from pp_hostd.agent.act.watchdog import Watchdog, acquire
from pp_hostd.agent.act.watchdog_device import CARD_RESET, Trouble, Unusable
from pp_hostd.agent.driver import News
from pp_hostd.agent.figures import Inquiries
from pp_hostd.agent.saved_state import SavedState
from pp_hostd.agent.sense.boot import ending
from pp_hostd.agent.sense.cluster import ClusterAccess
from pp_hostd.agent.sense.peers import Round
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.shutdown import POWER_OFF_SECONDS
from pp_hostd.agent.state import StateFiles
from pp_hostd.model.boot_commitments import (
    BootCommitments,
    GateOpened,
    Look,
    StepFailed,
    StoreEnded,
    WatchdogArmed,
    WatchdogDisarmed,
)
from pp_hostd.model.evidence import Read
from pp_hostd.model.memory import Decision, Memory
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord, Armed, GateClosed
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Written
from pp_hostd.model.verdict import Verdict
from pp_hostd.peers.message import MachineReference, Question
from pp_hostd.peers.signing import Keyring
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.notify import Notify
from pp_hostd.timing import TWO_GAPS


class AgentHands:
    """`watchdog` is the one that is armed. `troubles` are what went wrong last, by what was tried. `watchdog_only`: a
    person wants to see whether the watchdog resets the host, so nothing else does, before it should have."""

    def __init__(
        self,
        settings: Settings,
        node: str,
        boot: str,
        senses: AgentSenses,
        cluster: ClusterAccess,
        keyring: Keyring,
        files: StateFiles,
        gate: GateFiles,
        reset: Reset | DryReset,
        notify: Notify,
        journal: Journal,
        show: Callable[[Verdict], None],
        last_boot: str,
        last_boot_told: bool,
        clock: Callable[[], float],
    ) -> None:
        self.settings, self.keyring = settings, keyring
        self.watchdog: Watchdog | None = None
        self.watchdog_only = False
        self.fed_last = False
        """Whether the watchdog runs out by itself from here on, while the host powers off."""
        self.no_way_out = ""
        """Why the watchdog can't be stopped before the next boot, once it has refused to; else empty."""
        self.troubles: dict[str, str] = {}
        self.last_boot, self._last_boot_told = last_boot, last_boot_told
        self._node, self._boot, self._clock = node, boot, clock
        self._senses, self._cluster, self._files, self._gate = senses, cluster, files, gate
        self._reset, self._notify, self._journal = reset, notify, journal
        self.show = show
        self.inquiries = Inquiries()
        self._decided: Decision | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def feed(self) -> None:
        if self.watchdog is not None:
            self.note("feeding the watchdog", self.watchdog.feed())

    def feed_last(self) -> None:
        """A device that does not take the timeout as promised gets its own back, and the promise is withdrawn."""
        if self.fed_last or self.watchdog is None:
            return
        before_seconds, self.fed_last = self.watchdog.timeout_seconds, True
        outcome = self.watchdog.set_timeout(POWER_OFF_SECONDS)
        if isinstance(outcome, Trouble) or self.watchdog.timeout_seconds != POWER_OFF_SECONDS:
            self.note(
                "lengthening the watchdog", outcome if isinstance(outcome, Trouble) else "it took another timeout"
            )
            self.watchdog.set_timeout(int(before_seconds))
            self.fed_last = self._senses.powering_off = False
        else:
            sentence = f"the host powers off: its watchdog resets it if it is not off {POWER_OFF_SECONDS} s from now"
            self._journal.say(Message.ARMED, sentence, Priority.NOTICE)
        self._senses.wake()

    def read(self) -> None:
        began_at = self._clock()
        self._start(self._read(), lambda why: Read(began_at, self._clock(), failure=why))

    def ask(self, peers: tuple[str, ...], uid: str) -> None:
        self._start(self._ask(peers, uid), None)

    def look(self) -> None:
        self._start(self._look(), lambda why: Look(self._clock(), self._clock(), failure=why))

    def store(self, record: AgentRecord, node: Node) -> None:
        version = node.resource_version
        lost = partial(StoreEnded, record, version, Written.UNKNOWN)
        self._start(self._store(record, node), lambda why: lost(self._clock(), sentence=why))

    def arm(self) -> None:
        self._start(self._arm(), lambda why: StepFailed(why, self._clock()))

    def disarm(self) -> None:
        outcome = None if self.watchdog is None else self.watchdog.disarm()
        if isinstance(outcome, Trouble):
            self.no_way_out = outcome.sentence if outcome.state is Unusable.NO_WAY_OUT else ""
            self._journal.say(Message.TROUBLE, outcome.sentence, Priority.ERROR)
            self._senses.tell(StepFailed(outcome.sentence, self._clock()))
            return
        self.watchdog = None
        self._notify.forget()
        self._journal.say(Message.DISARMED, "the watchdog is disarmed: this host is not protected", Priority.NOTICE)
        self._senses.tell(WatchdogDisarmed())

    def open_gate(self, reason: str) -> None:
        trouble = self._gate.open(self._boot, reason)
        self.note("opening the gate", trouble)
        if trouble:
            self._senses.tell(StepFailed(trouble, self._clock()))
            return
        self._journal.say(Message.GATE_OPENED, f"the gate is open: {reason}", Priority.NOTICE)
        self._senses.opened_by = ""
        self._senses.tell(GateOpened())

    def remember(self, memory: Memory, commitments: BootCommitments) -> None:
        self.inquiries.follow(memory)
        self.note("keeping state", self._files.save(SavedState(memory, commitments)))

    def reset(self, decision: Decision, commitments: BootCommitments) -> None:
        """Rule 8; once, however often it is ordered."""
        if self._decided == decision:
            return
        self._decided = decision
        record = ending(self._boot, decision.cause, decision.id).render()
        pause_seconds = SYNC_SECONDS
        if self.watchdog_only and self.watchdog is not None:
            self._reset.leave_to_watchdog(record)
            pause_seconds = self.watchdog.timeout_seconds + WATCHDOG_GRACE_SECONDS
        else:
            self._reset.begin(self.watchdog, record, partial(self._start_commit, decision, commitments))
        self._journal.say(Message.RESETTING, decision.cause, Priority.CRITICAL, id=decision.id)
        # Not by the event loop, which whatever went wrong on this host may hold up.
        signal.signal(signal.SIGALRM, lambda *_: self._finish_reset())
        signal.setitimer(signal.ITIMER_REAL, pause_seconds)

    def _finish_reset(self) -> None:
        self._journal.say(Message.RESETTING, self._reset.finish(), Priority.CRITICAL)

    def _start_commit(self, decision: Decision, commitments: BootCommitments) -> None:
        record = commitments.committed(decision)
        if record is not None:
            self._start(self._cluster.commit(record), None)

    async def _read(self) -> None:
        self._senses.tell(await self._cluster.read())

    async def _look(self) -> None:
        self._senses.tell(await self._cluster.look())

    async def _store(self, record: AgentRecord, node: Node) -> None:
        ended = await self._cluster.store(record, node)
        if ended.written is Written.DONE:
            self._tell_stored(record)
        self._senses.tell(ended)

    def _tell_stored(self, record: AgentRecord) -> None:
        if isinstance(record, Armed):
            bound = record.self_timeout_seconds + 2 * record.watchdog_timeout_seconds
            sentence = f"promised: without a proof this host is dead after {bound:g} s (roster {record.roster_version})"
            self._journal.say(Message.PROMISE_STORED, sentence, Priority.NOTICE)
        elif isinstance(record, GateClosed):
            sentence = "the Node says that in this boot the gate is closed and nothing was started"
            self._journal.say(Message.GATE_CLOSED, sentence, Priority.NOTICE)
        else:
            self._journal.say(Message.PROMISE_WITHDRAWN, "the promise is withdrawn", Priority.NOTICE)

    async def _ask(self, peers: tuple[str, ...], uid: str) -> None:
        rosters = self._senses.current_rosters
        question = Question(MachineReference.of(rosters.machine_key(self._node), uid), self._node)
        one_round = Round(self.settings, self.keyring, self._clock, self._senses.tell)
        await one_round.ask(rosters.members(peers), question)

    async def _arm(self) -> None:
        settings = self.settings.watchdog
        least_seconds = TWO_GAPS.seconds(self.settings)
        self.take_watchdog(await acquire(settings.device, settings.timeout_seconds, least_seconds))

    def take_watchdog(self, watchdog: Watchdog, *, adopted: bool = False) -> None:
        """It is armed from here on, and its descriptor is kept over our restart."""
        self.watchdog = watchdog
        descriptor = watchdog.fileno()
        if descriptor is not None and not adopted:
            self._notify.store(descriptor)
            self._say_last_boot(watchdog.boot_status() or 0)
        sentence = f"armed: {watchdog.identity}, {watchdog.timeout_seconds:g} s ({watchdog.kind.value})"
        self._journal.say(Message.ARMED, "; ".join((sentence, *watchdog.troubles)), Priority.NOTICE)
        self._senses.tell(WatchdogArmed(watchdog.kind, watchdog.timeout_seconds, watchdog.troubles))

    def _say_last_boot(self, boot_status: int) -> None:
        """The device alone knows it where the kernel shows no boot status elsewhere, and the last boot left no word."""
        if boot_status & CARD_RESET and not self._last_boot_told:
            self._last_boot_told = True
            self.last_boot = "the last boot ended because its watchdog was not fed in time; that boot left no reason"
            self._journal.say(Message.LAST_BOOT, self.last_boot, Priority.WARNING)

    def _start(self, work: Coroutine[Any, Any, None], lost: Callable[[str], News] | None) -> None:
        task = asyncio.create_task(self._watched(work, lost))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _watched(self, work: Coroutine[Any, Any, None], lost: Callable[[str], News] | None) -> None:
        """Whatever goes wrong in unforeseen ways is a failure like others: the judge hears of it, and goes on."""
        try:
            await work
        except Exception as error:
            why = f"unforeseen: {error!r}"
            self._journal.say(Message.TROUBLE, why, Priority.ERROR)
            if lost is not None:
                self._senses.tell(lost(why))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def note(self, what: str, outcome: object) -> None:
        """A trouble is said once, when it begins; `status` shows it for as long as it lasts."""
        sentence = outcome.sentence if isinstance(outcome, Trouble) else outcome if isinstance(outcome, str) else ""
        if sentence and self.troubles.get(what) != sentence:
            self._journal.say(Message.TROUBLE, f"{what}: {sentence}", Priority.WARNING)
        self.troubles[what] = sentence
