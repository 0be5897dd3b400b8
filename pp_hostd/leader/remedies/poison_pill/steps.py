"""Steps of the poison pill alone: the condemnation, and the peers' acknowledgements of it."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.leader.steps.api import Json
from pp_hostd.leader.steps.machines import change_machine
from pp_hostd.leader.steps.port import OnlyReads, Port
from pp_hostd.model.condemnation import Condemned
from pp_hostd.model.roster import Member


@frozen
class Condemn:
    """The one write of rule 9: time, id, label."""

    machine_key: str
    uid: str
    resource_version: str
    id: int

    async def run(self, port: Port) -> str:
        patch: Json = {"metadata": Condemned(self.id, port.wallclock()).render()}
        return await change_machine(port, self.machine_key, patch, self.uid, self.resource_version)


@frozen
class AskPeers(OnlyReads):
    """Put the machine's own question to these peers (rule 10)."""

    machine_key: str
    uid: str
    peers: tuple[Member, ...]

    async def run(self, port: Port) -> str:
        await port.ask_peers(port.key, self.machine_key, self.uid, self.peers)
        return ""
