"""The step by which the leader finds out for itself whether a suspected host is silent."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import CONFIG_MAPS, KUBELET_LEASES, LEASES
from pp_hostd.leader.steps.port import Noticed, OnlyReads, Port, if_there
from pp_hostd.model.keys import NAMESPACE, ROSTER
from pp_hostd.model.reachability import confirmed
from pp_hostd.model.roster import Member


@frozen
class Tried:
    """The outcome of TryHost: whether the host is silent beyond doubt, and what its kubelet's Lease said after that,
    which is compared, never read as a time."""

    node: str
    at: float
    silent: bool
    reached: bool
    """Whether the leader or another host has reached it."""
    lease: str
    heard: int
    """So many others have answered."""


@frozen
class TryHost(OnlyReads):
    """Try the host, have others try it, and look at its kubelet's Lease."""

    host: Member
    others: tuple[Member, ...]

    async def run(self, port: Port) -> str:
        before = await _lease(port, self.host.name)
        own, theirs = await port.try_host(self.host, self.others)
        after = await _lease(port, self.host.name)
        heard = sum(each is not None for each in theirs)
        silent = confirmed(own, theirs) and before == after
        reached = any((own, *theirs)) or before != after
        port.tell(Tried(port.key, port.clock(), silent, reached, after, heard))
        return ""


@frozen
class Warn(OnlyReads):
    """Have an Event say that too many hosts are silent at once."""

    sentence: str

    async def run(self, port: Port) -> str:
        about = CONFIG_MAPS, NAMESPACE, ROSTER, ""
        port.tell(Noticed(port.key, *about, "TooManySilent", self.sentence, warning=True))
        return ""


async def _lease(port: Port, node: str) -> str:
    found = await if_there(port.api.get(LEASES, node, namespace=KUBELET_LEASES))
    return str(((found or {}).get("spec") or {}).get("renewTime") or "")
