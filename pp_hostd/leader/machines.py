"""Reads and writes of machines, in whichever version of their API the cluster serves."""

from __future__ import annotations

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.resources import MACHINES, NODES
from pp_hostd.leader.served import Served


class ServedMachines(Served):
    """The machines of the cluster's kind; `setting` is api.machines."""

    def __init__(self, client: ApiClient, setting: str) -> None:
        super().__init__(client, MACHINES[setting])
        self.setting = setting

    @property
    def are_nodes(self) -> bool:
        """Whether the Nodes themselves are the machines."""
        return self._versions[0] is NODES
