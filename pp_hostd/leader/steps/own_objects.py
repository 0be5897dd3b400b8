"""Steps on the leader's own objects: the ConfigMaps of budget and roster, and the Lease."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.leader.steps.port import Port
from pp_hostd.model.budget import Beginning, Budget
from pp_hostd.model.keys import BUDGET, ROSTER
from pp_hostd.model.roster import Roster


@frozen
class SpendBudget:
    """Count a remediation, before it begins: the last beginning of this budget. In place of the stored one of that
    version; None creates it."""

    budget: Budget
    resource_version: str | None

    @property
    def beginning(self) -> Beginning:
        return self.budget.beginnings[-1]

    async def run(self, port: Port) -> str:
        return await port.store(BUDGET, {BUDGET: self.budget.render()}, self.resource_version)


@frozen
class WriteRoster:
    """In place of the one of that version; None creates it."""

    roster: Roster
    resource_version: str | None

    async def run(self, port: Port) -> str:
        return await port.store(ROSTER, {ROSTER: self.roster.render()}, self.resource_version)


@frozen
class HandOver:
    """Give the Lease up: another leader must do this (rule 14)."""

    async def run(self, port: Port) -> str:
        await port.hand_over()
        return ""
