"""Health checks of our own on bad days: what others report of Nodes, and what agents suspect, truly or not.

Kubernetes' controller for Nodes reports which kubelets are silent. Agents suspect whom they can't reach; and now and
then somebody suspects a host that is well, which may cost a look and nothing else.
"""

from __future__ import annotations

import random
from datetime import datetime, timezone
from typing import Callable

from pp_hostd.agent.probing import targets
from pp_hostd.kube.resources import NODE_HEALTH_CHECKS, NODES
from pp_hostd.model.keys import SUSPECTS
from pp_hostd.model.moment import render_moment
from pp_hostd.model.suspicion import Suspicion
from pp_hostd.sim.api import EPOCH, SERVERS, Api, Json, as_it_is
from pp_hostd.sim.host import has_a_way
from pp_hostd.sim.network import Network
from pp_hostd.sim.time import Time

SILENT_SECONDS = 40.0
"""A kubelet that has not renewed its Lease for so long is silent to Kubernetes."""
LOOK_SECONDS = 5.0
PROBE_SECONDS = 3.0
LIES = 0.02
"""So often in a round of probes somebody suspects a host without a reason."""
STARTUP_SECONDS = 120
SPEC: Json = {
    "selector": {},
    "unhealthyConditions": [{"type": "Ready", "status": "Unknown", "timeout": "20s"}],
    "unreachableSeconds": 2,
    "maxUnhealthy": "100%",
    "nodeStartupTimeout": f"{STARTUP_SECONDS}s",
}


class NodeController:
    """Kubernetes' own: it calls a Node Unknown whose kubelet is silent."""

    def __init__(self, api: Api, time: Time, names: list[str]) -> None:
        self._api, self._time, self._names = api, time, names
        time.after(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        if any(map(self._api.answers, SERVERS)):
            for name in self._names:
                renewed_at = float(self._api.leases.get(name, "0"))
                if self._time.now - renewed_at > SILENT_SECONDS:
                    self._set_unknown(name)
        self._time.after(LOOK_SECONDS, self._look)

    def _set_unknown(self, name: str) -> None:
        node = self._api.if_there(as_it_is, NODES, "", name)
        conditions = [] if node is None else node.get("status", {}).get("conditions") or []
        ready = next((each for each in conditions if each["type"] == "Ready"), None)
        if ready is not None and ready["status"] != "Unknown":
            moment = render_moment(datetime.fromtimestamp(int(EPOCH + self._time.now), timezone.utc))
            unknown = {
                "type": "Ready",
                "status": "Unknown",
                "reason": "NodeStatusUnknown",
                "lastTransitionTime": moment,
            }
            kept = [each for each in conditions if each is not ready]
            self._api.patch(NODES, "", name, {"status": {"conditions": [*kept, unknown]}}, "status")


class Reports:
    """`reaches` tells whether one host gets an answer from the kernel of another."""

    def __init__(
        self,
        api: Api,
        network: Network,
        time: Time,
        chance: random.Random,
        names: list[str],
        reaches: Callable[[str, str], bool],
    ) -> None:
        self._network = network
        self._api, self._time, self._chance, self._names, self._reaches = api, time, chance, names, reaches
        self._targets = {name: targets(names, name) for name in names}
        api.create(NODE_HEALTH_CHECKS, "", {"metadata": {"name": "all"}, "spec": SPEC})
        time.after(PROBE_SECONDS, self._probe)

    def _probe(self) -> None:
        """Each host that can reach the API says whom it can't reach."""
        if any(map(self._api.answers, SERVERS)):
            for name in filter(self._is_heard, self._names):
                found = [target for target in self._targets[name] if not self._reaches(name, target)]
                if self._chance.random() < LIES:
                    found.append(self._chance.choice(self._names))
                self._suspect(name, Suspicion.of(found))
        self._time.after(PROBE_SECONDS, self._probe)

    def _is_heard(self, name: str) -> bool:
        return self._reaches(name, name) and self._is_connected(name)

    def _is_connected(self, name: str) -> bool:
        return has_a_way(self._api, self._network, name)

    def _suspect(self, name: str, suspicion: Suspicion | None) -> None:
        node = self._api.if_there(as_it_is, NODES, "", name)
        said = None if suspicion is None else suspicion.render()
        if node is not None and (node["metadata"].get("annotations") or {}).get(SUSPECTS) != said:
            self._api.patch(NODES, "", name, {"metadata": {"annotations": {SUSPECTS: said}}})
