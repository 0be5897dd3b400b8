"""The orders that a person may give the running daemon through its control socket, and the daemon's answers."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import datetime, timezone
from functools import partial
from typing import Any, Callable

from pp_hostd.agent.act.aside import aside
from pp_hostd.agent.act.reset import ordered_by
from pp_hostd.agent.driver import Driver
from pp_hostd.agent.senses import AgentSenses
from pp_hostd.agent.state import StateFiles
from pp_hostd.errors import UserError
from pp_hostd.model.boot_commitments import Gate
from pp_hostd.model.control import Maintenance, parse_control
from pp_hostd.model.keys import MAINTENANCE
from pp_hostd.model.moment import render_moment
from pp_hostd.model.promise import WatchdogKind
from pp_hostd.model.record import render
from pp_hostd.service.journal import Journal, Message, Priority

Json = dict[str, Any]
PATIENCE_SECONDS = 10.0
STEP_SECONDS = 0.05


class Orders:
    """`answer` carries out one command. Refusals are UserError, for the person who asked."""

    def __init__(
        self,
        senses: AgentSenses,
        driver: Driver,
        files: StateFiles,
        journal: Journal,
        report: Callable[[], Json],
        reset: Callable[[str, bool], None],
    ) -> None:
        """`reset(cause, watchdog_only)` begins a reset at the next judgement."""
        self._senses, self._driver, self._files, self._journal = senses, driver, files, journal
        self._report, self._reset = report, reset

    async def answer(self, command: str, arguments: Mapping[str, Any]) -> Json:
        if command == "status":
            return self._report()
        if command == "maintenance-on":
            return await self._maintenance_on(arguments)
        if command == "maintenance-off":
            return await self._maintenance_off(arguments)
        if command == "gate-open":
            return await self._gate_open(arguments)
        if command in ("test-reset", "test-watchdog"):
            return self._test_reset(arguments, command == "test-watchdog")
        raise UserError(f"this daemon knows no command {command!a}", "Is the command newer than the daemon?")

    async def _maintenance_on(self, arguments: Mapping[str, Any]) -> Json:
        when = render_moment(datetime.now(timezone.utc).replace(microsecond=0))
        wanted = {name: arguments.get(name) for name in ("who", "why", "until")}
        order = parse_control({MAINTENANCE: render({**wanted, "when": when})}).maintenance
        if not isinstance(order, Maintenance):
            raise UserError(f"this is not an order: {order}")
        if order.until_wallclock <= datetime.now(timezone.utc):
            raise UserError(f"{render_moment(order.until_wallclock)} is over already", "Name a time to come.")
        await self._keep(order)
        sentence = f"maintenance by {order.who} until {render_moment(order.until_wallclock)}: {order.why}"
        self._journal.say(Message.MAINTENANCE, sentence, Priority.NOTICE, who=order.who)
        await self._until(lambda: self._driver.commitments.watchdog is None and not self._driver.commitments.promises)
        if self._driver.commitments.watchdog is None:
            return {"sentence": f"{sentence}; the promise is withdrawn and the watchdog disarmed"}
        why = self._driver.waiting_for or self._driver.commitments.trouble
        return {"sentence": f"{sentence}; still armed: {why}", "done": False}

    async def _maintenance_off(self, arguments: Mapping[str, Any]) -> Json:
        if self._senses.maintenance is not None:
            await self._keep(None)
            who = str(arguments.get("who") or "somebody")[:200]
            self._journal.say(Message.MAINTENANCE, f"{who} ended the maintenance", Priority.NOTICE, who=who)
            sentence = "the maintenance is over; the host is armed again when it has proof"
        else:
            sentence = "there was no maintenance of this host alone"
        cluster = self._senses.host_context().maintenance
        if cluster is not None:
            until = render_moment(cluster.until_wallclock)
            sentence += f"; the cluster's, by {cluster.who}, goes on until {until}, or: pp-leader maintenance --off"
        return {"sentence": sentence}

    async def _keep(self, order: Maintenance | None) -> None:
        trouble = await aside(partial(self._files.save_maintenance, order))
        if trouble:
            raise UserError(f"the order could not be stored: {trouble}")
        self._senses.maintenance = order
        self._senses.wake()

    async def _gate_open(self, arguments: Mapping[str, Any]) -> Json:
        """Only once "gate closed" no longer stands on the Node: it is evidence that nothing was started (rule 11)."""
        gate = self._driver.commitments.gate
        if gate is not Gate.CLOSED:
            return {"sentence": f"there is nothing to open: the gate is {gate.value}"}
        self._senses.opened_by = str(arguments.get("who") or "somebody")[:200]
        self._senses.wake()
        await self._until(lambda: self._driver.commitments.gate is Gate.OPEN)
        self._senses.opened_by = ""
        if self._driver.commitments.gate is Gate.OPEN:
            return {"sentence": "the gate is open; this host is not protected before it is armed"}
        raise UserError(
            f"the gate stays closed: {self._driver.commitments.trouble or self._driver.waiting_for}",
            'The Node may still say "gate closed", and so its workloads may be started elsewhere at any time.',
        )

    def _test_reset(self, arguments: Mapping[str, Any], watchdog_only: bool) -> Json:
        """A person's order is no condemnation: it has no id, and nothing is committed on the Node (rule 7)."""
        decision, armed = self._driver.memory.decision, self._driver.commitments.watchdog
        if self._driver.settings.agent.mode == "dry-run":
            raise UserError("a dry run resets nothing", 'Set agent.mode = "enforce" and restart pp-hostd.')
        if decision is not None:
            raise UserError(f"this host is being reset already: {decision.cause}")
        if watchdog_only and (armed is None or armed.kind is WatchdogKind.SOFTWARE_ONLY):
            raise UserError("no watchdog is armed that could do it alone", "See: pp-hostd status")
        self._reset(ordered_by(str(arguments.get("who") or "somebody")[:200], watchdog_only), watchdog_only)
        how = (
            "its watchdog is no longer fed, and only the watchdog resets it" if watchdog_only else "resetting this host"
        )
        return {"sentence": f"{how}{'' if armed else '; no watchdog is armed, so software alone does it'}"}

    async def _until(self, done: Callable[[], bool]) -> None:
        for _ in range(int(PATIENCE_SECONDS / STEP_SECONDS)):
            if done():
                return
            await asyncio.sleep(STEP_SECONDS)
