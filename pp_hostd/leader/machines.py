"""Reads and writes of machines, in whichever version of their API the cluster serves."""

from __future__ import annotations

from pp_hostd.kube.client import ApiClient, Json
from pp_hostd.kube.resources import CLUSTERS, MACHINES, NODES
from pp_hostd.leader.served import Served
from pp_hostd.leader.write import Unwritten
from pp_hostd.model.machine_host import parse_machine_host
from pp_hostd.model.owners_wish import parse_cluster_pause, wish_of_cluster, wish_of_machine
from pp_hostd.model.record import Unreadable
from pp_hostd.model.written import Written


class ServedMachines(Served):
    """The machines of the cluster's kind; `setting` is api.machines."""

    def __init__(self, client: ApiClient, setting: str) -> None:
        super().__init__(client, MACHINES[setting])
        self.setting = setting
        self._clusters = Served(client, CLUSTERS)

    @property
    def are_nodes(self) -> bool:
        """Whether the Nodes themselves are the machines."""
        return self._versions[0] is NODES

    async def check_wish(self, machine: Json) -> None:
        """Unwritten if its owner wants nobody to remedy this machine; ApiError if its Cluster can't be read."""
        about = parse_machine_host(machine)
        if self.are_nodes or isinstance(about, Unreadable):
            return
        wish = wish_of_machine(f"{machine['metadata']['namespace']}/{machine['metadata']['name']}", about)
        if not wish and about.cluster and self.setting == "cluster-api":
            wish = wish_of_cluster(about.cluster, parse_cluster_pause(await self._clusters.get(about.cluster)))
        if wish:
            raise Unwritten(Written.NOT_DONE, wish)
