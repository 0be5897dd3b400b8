"""The agent as a process: puts senses, judge and hands together, obeys signals and commands, and runs until told.

Single-threaded: whatever waits does so in the event loop, and the loop's turns are what feeds the watchdog (rule 2).
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import time
from collections.abc import Coroutine, Iterator
from datetime import datetime, timezone
from functools import partial
from itertools import chain
from typing import Any

from pp_hostd.agent.act import process
from pp_hostd.agent.act.aside import aside
from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.act.process import start_again
from pp_hostd.agent.act.reset import DryReset, Reset
from pp_hostd.agent.act.watchdog import SoftwareOnly, adopt
from pp_hostd.agent.act.watchdog_device import Trouble
from pp_hostd.agent.actuators import AgentHands
from pp_hostd.agent.control_socket import ControlSocket
from pp_hostd.agent.driver import Driver
from pp_hostd.agent.effective_settings import EffectiveSettings, at_start, reloaded
from pp_hostd.agent.figures import Figures
from pp_hostd.agent.orders import Orders
from pp_hostd.agent.peer_server import KnockServer, PeerServer
from pp_hostd.agent.plan import Reopening, next_reopening
from pp_hostd.agent.prober import Prober
from pp_hostd.agent.report import Extras, Report, report
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.sense.boot import RECORD, Shutdown, boot_id, ordered_shutdown, runtime_watchdog, shutdown_jobs
from pp_hostd.agent.sense.cluster import ClusterAccess
from pp_hostd.agent.sense.control_plane import with_gate_in_force
from pp_hostd.agent.sense.link import LinkChanges
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.shutdown import WITHDRAW_SECONDS, is_kernel_to_end
from pp_hostd.agent.state import StateFiles, instance_lock, recall
from pp_hostd.agent.verdict_report import History, VerdictReport
from pp_hostd.agent.witness import Witness
from pp_hostd.errors import UserError
from pp_hostd.frozen import replace
from pp_hostd.model.boot_commitments import Gate, GateHeld, GateOpened, WatchdogArmed, WatchdogDisarmed
from pp_hostd.model.memory import Decision
from pp_hostd.model.promise import WatchdogKind
from pp_hostd.model.roster import Member
from pp_hostd.model.verdict import Verdict
from pp_hostd.service.http_port import HttpPort
from pp_hostd.service.journal import Journal, Message, Priority
from pp_hostd.service.listening import serve
from pp_hostd.service.metric import Metric
from pp_hostd.service.metrics_server import MetricsServer
from pp_hostd.service.notify import WATCHDOG, Notify, inherited_descriptors
from pp_hostd.timing import judgement_gap_seconds, peer_read_seconds

EXTEND_SECONDS = 30.0
SHUTDOWN_LOOK_SECONDS = 1.0
LONGEST_WATCHDOG_SECONDS = 120
PAUSE_SECONDS = 5.0

clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME)


def run(config_path: str) -> int:
    """The command `pp-hostd run`."""
    files = StateFiles()
    with instance_lock(files.run_directory):
        try:
            effective_settings = at_start(config_path, files, boot_id(), clock())
        except UserError as error:
            _pause(str(error))
            raise
        return asyncio.run(_run(config_path, effective_settings, files))


async def _run(config_path: str, effective_settings: EffectiveSettings, files: StateFiles) -> int:
    return await Daemon(config_path, effective_settings, files).run()


def _pause(sentence: str) -> None:
    """Nothing is armed, and the mistake takes a person to mend: systemd need not start us again at once."""
    if os.environ.get("NOTIFY_SOCKET"):
        notify = Notify(clock)
        notify.judged(sentence)
        notify.close()
        time.sleep(PAUSE_SECONDS)


class Daemon:
    """All parts of one agent, and how they hear of each other."""

    def __init__(self, config_path: str, effective_settings: EffectiveSettings, files: StateFiles) -> None:
        self._config_path, self._files = config_path, files
        settings, keyring, self._not_in_force = (
            effective_settings.settings,
            effective_settings.keyring,
            effective_settings.trouble,
        )
        self._journal, self._notify = Journal(), Notify(clock)
        hardened = process.lock_memory(), process.raise_priority(), process.shield_from_oom(), process.allow_sockets()
        self._troubles = [*filter(None, hardened)]
        self._leaving = False
        self._said = ""
        boot, node = boot_id(), settings.agent.node_name
        gate = self._gate = GateFiles(files.run_directory)
        recalled = recall(files, gate, settings, boot, clock())
        self._set_aside = recalled.set_aside
        self._witness = Witness(os.urandom(16).hex())
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._next_turn: asyncio.Handle | None = None
        self._is_woken = False
        self.senses = AgentSenses(node, self._witness, recalled.rosters, clock, _wallclock, self._wake)
        self.senses.maintenance = recalled.maintenance
        self._cluster = ClusterAccess(
            settings,
            node,
            self.senses,
            clock,
            self._keep_rosters,
            self._promised,
            files.var_directory,
            self._journal,
        )
        history, gap_seconds = History(files.run_directory), judgement_gap_seconds(settings)
        self._verdict_report = VerdictReport(
            self._journal, self._notify, history, self._save_report, clock, gap_seconds
        )
        enforce = settings.agent.mode == "enforce"
        self._reset = reset = Reset(os.path.join(files.var_directory, RECORD)) if enforce else DryReset()
        self._shutting_down: asyncio.Task[None] | None = None
        self._troubles += reset.troubles
        self._actuators = AgentHands(
            settings=settings,
            node=node,
            boot=boot,
            senses=self.senses,
            cluster=self._cluster,
            keyring=keyring,
            files=files,
            gate=gate,
            reset=reset,
            notify=self._notify,
            journal=self._journal,
            show=self._verdict_report.show,
            last_boot=recalled.last_boot,
            last_boot_told=recalled.last_boot_told,
            clock=clock,
        )
        self.driver = Driver(
            settings,
            self.senses,
            self._actuators,
            memory=recalled.memory,
            commitments=recalled.commitments,
            clock=clock,
            entropy=_entropy,
        )
        self._figures = Figures(self.driver, self.senses, recalled.endings)
        read, read_seconds = self._cluster.read_for_peer, peer_read_seconds(settings)
        self._peers = PeerServer(node, keyring, self._witness, read, clock, read_seconds, settings.api.machines)
        post = self._cluster.post_suspicion
        self._prober = Prober(node, self.senses, self.driver, post, clock, self._complain)

    async def run(self) -> int:
        """Until a signal ends it: 0 when it left no promise behind, or a successor to keep it."""
        self._begin()
        loop = asyncio.get_running_loop()
        for number, action in (
            (signal.SIGTERM, self._stop),
            (signal.SIGINT, self._stop),
            (signal.SIGHUP, self._reload),
            (signal.SIGUSR1, self._hand_over),
        ):
            loop.add_signal_handler(number, action)
        links = LinkChanges(self.senses.link_changed)
        listeners = [asyncio.create_task(each) for each in self._listeners()]
        try:
            await self._judge_until_done()
        finally:
            links.close()
            if self._shutting_down is not None:
                listeners.append(self._shutting_down)
            for task in listeners:
                task.cancel()
            await asyncio.gather(*listeners, return_exceptions=True)
            await self._prober.close()
            await self._actuators.close()
            await self._cluster.close()
            self._journal.close()
            self._notify.close()
        return 0

    async def _judge_until_done(self) -> None:
        self._notify.ready()
        gc.freeze()  # what is loaded stays, and need not be looked through whenever garbage is collected
        self._take_turn()
        try:
            await self._ended
        finally:
            self._drop_next_turn()

    def _take_turn(self) -> None:
        """A callback, and no task: an agent takes one every two seconds as long as it lives, and a task would take
        another turn of the loop to be woken."""
        if self._ended.done():
            return
        self._drop_next_turn()
        try:
            wake_at = None if self._leaving else self._turn()
        except Exception as error:
            self._ended.set_exception(error)
            return
        if wake_at is None:
            self._ended.set_result(None)
        elif not self._is_woken:
            self._next_turn = asyncio.get_running_loop().call_later(max(0.0, wake_at - clock()), self._take_turn)

    def _turn(self) -> float | None:
        """Returns when to take the next one; None if this was the last."""
        self._look_at_gate()
        verdict = self.driver.turn()
        wake_at = self._prober.turn(verdict.wake_at)
        if self.senses.stopping:
            if self.driver.unbound or self._actuators.fed_last:
                return None
            self._say_why_not_stopped()
        return wake_at

    def _drop_next_turn(self) -> None:
        self._is_woken = False
        if self._next_turn is not None:
            self._next_turn.cancel()
            self._next_turn = None

    def _wake(self) -> None:
        """Not at once: whatever else is ready now is judged together."""
        if not self._is_woken:
            self._drop_next_turn()
            self._is_woken = True
            self._next_turn = asyncio.get_running_loop().call_soon(self._take_turn)

    def _look_at_gate(self) -> None:
        """The unit that holds the kubelet starts beside this one, perhaps after it; it or a person may open it."""
        commitments = self.driver.commitments
        if commitments.gate is Gate.OPEN:
            return
        state, _ = self._gate.state(commitments.boot)
        if commitments.gate is Gate.ABSENT and state is Gate.CLOSED:
            self.senses.tell(GateHeld())
        elif state is Gate.OPEN and self.driver.idle:  # else perhaps it has just been opened here
            settings, hindered_by = with_gate_in_force(self.driver.settings)
            self.driver.settings = self._actuators.settings = settings
            told = "the gate was opened, and not by this agent; the agent first withdraws the record on its Node"
            self._journal.say(Message.GATE_OPENED, "; ".join(filter(None, (told, hindered_by))), Priority.WARNING)
            self.senses.tell(GateOpened())

    def _say_why_not_stopped(self) -> None:
        """Rule 5: what can't be withdrawn is kept, so the watchdog is fed on for as long as there is proof."""
        self._notify.extend_timeout(EXTEND_SECONDS)
        if self.driver.waiting_for not in ("", self._said):
            self._said = self.driver.waiting_for
            bound = "still armed and feeding" if self.driver.commitments.watchdog is not None else "not stopped yet"
            self._journal.say(Message.TROUBLE, f"{bound}: {self._said}", Priority.WARNING)

    def _begin(self) -> None:
        """Tell what the last boot and the last run left, and take the watchdog over, armed as it is."""
        if self._not_in_force:
            self._journal.say(Message.CONFIG_REFUSED, self._not_in_force, Priority.CRITICAL)
        self._actuators.note("keeping the settings", self._files.save_settings(self.driver.settings))
        for sentence in self._set_aside:
            self._journal.say(Message.STATE_SET_ASIDE, sentence, Priority.WARNING)
        for sentence in self._troubles:
            self._journal.say(Message.TROUBLE, sentence, Priority.WARNING)
        if self._actuators.last_boot:
            self._journal.say(Message.LAST_BOOT, self._actuators.last_boot, Priority.WARNING)
        kept = self.driver.commitments.watchdog
        for name, descriptor in inherited_descriptors():
            adopted = adopt(descriptor) if name == WATCHDOG else None
            if adopted is not None and not isinstance(adopted, Trouble):
                self._actuators.take_watchdog(adopted, adopted=True)
        if self._actuators.watchdog is None and kept is not None:
            self._reopen(kept)

    def _reopen(self, kept: WatchdogArmed) -> None:
        """This boot is armed, and nobody kept the descriptor."""
        reopening = next_reopening(self.driver.settings, self.driver.commitments, self.driver.memory, clock())
        if kept.kind is WatchdogKind.SOFTWARE_ONLY:
            self._actuators.take_watchdog(SoftwareOnly(kept.timeout_seconds, kept.troubles))
        elif reopening is Reopening.FORGET:
            self.senses.tell(WatchdogDisarmed())
        elif reopening is Reopening.OPEN:
            self._actuators.arm()

    def _keep_rosters(self, rosters: Rosters) -> None:
        self._actuators.note("keeping the roster", self._files.save_rosters(rosters.known()))

    def _promised(self) -> set[int]:
        return {promise.roster_version for promise in self.driver.commitments.promises}

    def _stop(self) -> None:
        self._notify.stopping()
        if self._shutting_down is None:
            self._shutting_down = asyncio.create_task(self._follow_shutdown(clock()))

    async def _follow_shutdown(self, stopped_at: float) -> None:
        """A shutdown of the system always ends, whether or not the promise can be kept or withdrawn (rule 8)."""
        try:
            ordered = ordered_shutdown(await aside(shutdown_jobs))
            # systemd itself would take up a watchdog that the agent leaves, if it were set up to feed one.
            if ordered is Shutdown.POWER_OFF and (await aside(runtime_watchdog)).strip() == "0":
                self.senses.powering_off = True
        finally:
            self.senses.stopping = True
            self.senses.wake()
        while ordered is None:  # the unit alone is stopped
            if self._actuators.no_way_out and await self._goes_on():
                return
            await asyncio.sleep(SHUTDOWN_LOOK_SECONDS)
            ordered = ordered_shutdown(await aside(shutdown_jobs))
        self._reset.powers_off = ordered is not Shutdown.RESTART
        self._reset.sync()
        await asyncio.sleep(max(0.0, stopped_at + WITHDRAW_SECONDS - clock()))
        if is_kernel_to_end(self.driver.commitments, stopped_at, clock()):
            tried = f"within {WITHDRAW_SECONDS:g} s of the order to {ordered.value}"
            why = f"its promise could neither be prolonged nor withdrawn {tried}"
            self._reset_by_order(why, watchdog_only=False)
        elif (
            self._actuators.watchdog is not None
        ):  # nowayout: nobody relies on it, and the rest of the shutdown takes time
            self._actuators.note(
                "lengthening the watchdog", self._actuators.watchdog.set_timeout(LONGEST_WATCHDOG_SECONDS)
            )
            self._hand_over()

    async def _goes_on(self) -> bool:
        """A watchdog that can't be stopped would reset the host soon after the agent's end, so the next run goes on."""
        said = (
            f"this host can't be disarmed before its next boot, and the agent goes on: {self._actuators.no_way_out}. "
        )
        said += "To run without the agent: systemctl disable pp-hostd, then systemctl reboot"
        trouble = await aside(start_again)
        said += f". This run can't end: systemd does not start the next one ({trouble})" if trouble else ""
        self._actuators.note("stopping the agent", said)
        if not trouble:
            self._hand_over()
        return not trouble

    def _hand_over(self) -> None:
        """Leave everything armed to a successor, who finds the watchdog in systemd's store and the rest in /run."""
        self._leaving = True
        self.senses.wake()

    def _reset_by_order(self, cause: str, watchdog_only: bool) -> None:
        """A person's decision is carried out like a judgement's, which is as final."""
        self._actuators.watchdog_only = watchdog_only
        self.driver.memory = replace(self.driver.memory, inquiry=None, decision=Decision(clock(), cause, None))
        self.senses.wake()

    def _reload(self) -> None:
        self._notify.reloading()
        try:
            effective_settings = reloaded(self.driver.settings, self._config_path)
        except UserError as error:
            self._journal.say(Message.CONFIG_REFUSED, f"the old settings stay in force: {error}", Priority.ERROR)
        else:
            self.driver.settings = self._actuators.settings = effective_settings.settings
            self._actuators.keyring = self._peers.keyring = effective_settings.keyring
            self._not_in_force = effective_settings.trouble
            self._verdict_report.judgement_gap_seconds = judgement_gap_seconds(effective_settings.settings)
            self._actuators.note("keeping the settings", self._files.save_settings(effective_settings.settings))
            sentence = "; ".join(filter(None, ("the settings were read again", effective_settings.trouble)))
            self._journal.say(Message.CONFIG_RELOADED, sentence, Priority.NOTICE)
        self._notify.ready()
        self.senses.wake()

    def _listeners(self) -> Iterator[Coroutine[Any, Any, None]]:
        peers, agent = self.driver.settings.peers, self.driver.settings.agent
        knocks = KnockServer(agent.node_name, self._peers, self._member, peers.port, clock, time.time)
        yield self._peers.read_remembered_again()
        port = self._peer_port = HttpPort(knocks.respond)
        yield serve("the peer port", partial(port.listen, peers.address, peers.port), port.close, self._complain)
        if agent.metrics_port:
            metrics = HttpPort(MetricsServer(self._metrics, self._verdict_report.health).respond)
            listen = partial(metrics.listen, agent.metrics_address, agent.metrics_port)
            yield serve("the metrics port", listen, metrics.close, self._complain)
        orders = Orders(self.senses, self.driver, self._files, self._journal, self._report, self._reset_by_order)
        control = ControlSocket(self._files.run_directory, orders.answer)
        yield serve("the control socket", control.listen, control.close, self._complain)

    def _member(self, name: str) -> Member | None:
        return self.senses.current_rosters.newest_member(name)

    def _complain(self, sentence: str) -> None:
        self._journal.say(Message.TROUBLE, sentence, Priority.ERROR)

    def _metrics(self) -> Iterator[Metric]:
        judged = self._figures, self._verdict_report, self._actuators.inquiries
        own = (part.metrics() for part in (*judged, self._cluster, self._peers, self._prober))
        return chain(self._peer_port.metrics("pp_hostd_peer"), *own)

    def _save_report(self, verdict: Verdict) -> None:
        self._files.save_report(self._report(verdict))

    def _report(self, verdict: Verdict | None = None) -> Report:
        driver, verdict = self.driver, verdict or self._verdict_report.verdict
        if verdict is None:
            raise UserError("the daemon has just started, and has not judged yet", "Ask again in a moment.")
        parts = self._cluster.troubles(), self._actuators.troubles.values(), [self._prober.trouble]
        found = (self._not_in_force, *self._troubles, *chain.from_iterable(parts))
        extras = Extras(
            waiting_for=driver.waiting_for,
            answers=tuple(self.senses.answers),
            troubles=tuple(dict.fromkeys(filter(None, found))),
            last_boot=self._actuators.last_boot,
            certificate_ends=self._cluster.certificate_ends,
            suspects=self._prober.suspects,
        )
        return report(
            driver.settings, self.senses.host_context(), driver.commitments, driver.memory, verdict, extras, clock()
        )


def _wallclock() -> datetime:
    return datetime.now(timezone.utc)


def _entropy() -> int:
    return int.from_bytes(os.urandom(8), "big")
