"""What the agent has sensed, one value for each finished exchange or piece of news. Times are boot time (rule 13)."""

from __future__ import annotations

from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.model.answer import Answer
from pp_hostd.model.machine import Machine


@frozen
class Read:
    """One finished linearizable read of the machine `subject`: found, `missing`, or failed for the reason in
    `failure`."""

    began_at: float
    ended_at: float
    machine: Machine | None = None
    missing: bool = False
    failure: str = ""
    subject: str = ""


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
