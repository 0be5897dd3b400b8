"""Everything that an agent has sensed, a value for each exchange or piece of news, and the context of its host."""

from __future__ import annotations

from dataclasses import field
from functools import cached_property
from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.model.answer import Answer
from pp_hostd.model.control import Maintenance
from pp_hostd.model.machine import Machine
from pp_hostd.model.roster import Electorate, Member


@frozen
class Read:
    """One finished linearizable read of the machine `machine_key`: found, `missing`, or failed for the reason in
    `failure`. `outcome` is the kind of failure, for counting; empty if there is none."""

    began_at: float
    ended_at: float
    machine: Machine | None = None
    missing: bool = False
    failure: str = ""
    machine_key: str = ""
    outcome: str = field(default="", compare=False)


@frozen
class PeerAnswered:
    """One finished question to a peer: its verified answer, or silence and what made it so."""

    peer: str
    began_at: float
    ended_at: float
    answer: Answer | None
    silence: str = ""


@frozen
class WatchedCondemned:
    """A watch says that this host's machine is condemned. There is no value for the opposite: rule 1."""

    uid: str
    id: int
    at: float


@frozen
class LinkChanged:
    """A network link or an address of this host has changed: worth a check at once."""

    at: float


Evidence = Union[Read, PeerAnswered, WatchedCondemned, LinkChanged]


@frozen
class HostContext:
    """The host's knowledge beside its Node. `electorate` holds the nodes of the newest roster; without one,
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

    @cached_property
    def member(self) -> Member | None:
        """The host itself, as the newest roster lists it."""
        return None if self.electorate is None else self.electorate.member(self.node)
