"""The ground that an agent stands on: what it knows beside its Node."""

from __future__ import annotations

from functools import cached_property

from pp_hostd.frozen import frozen
from pp_hostd.model.control import Maintenance
from pp_hostd.model.machine import Machine
from pp_hostd.model.roster import Electorate, Member


@frozen
class HostContext:
    """What the host knows beside its Node. `electorate` holds the nodes of the newest roster; without one,
    `roster_trouble` says why. `machine` is what its own last good read found. `opened_by` is who ordered, by hand, that
    the gate be opened. `powering_off`: the system shuts down to be off, and nobody else will feed the watchdog."""

    node: str
    electorate: Electorate | None = None
    roster_trouble: str = ""
    machine: Machine | None = None
    maintenance: Maintenance | None = None
    opened_by: str = ""
    stopping: bool = False
    powering_off: bool = False
    enrolled_before: bool = False

    @cached_property
    def member(self) -> Member | None:
        """The host itself, as the newest roster lists it."""
        return None if self.electorate is None else self.electorate.member(self.node)
