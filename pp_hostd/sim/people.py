"""What people and their tools do to a simulated cluster: ask for a node, absolve it, enrol it, replace its machine."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Callable

from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.control import Pause
from pp_hostd.model.keys import CONTROL, ENROLLED, EXTERNAL_REMEDIATION, NAMESPACE, PAUSED
from pp_hostd.sim.api import Api, Json
from pp_hostd.sim.filled import EPOCH_TIME, machine_of, make_machine
from pp_hostd.sim.health_check import HealthCheck
from pp_hostd.sim.time import Time


class People:
    """They write to the API, which always answers them."""

    def __init__(
        self, api: Api, time: Time, note: Callable[[str, str], None], health_check: HealthCheck | None
    ) -> None:
        self._api, self._time, self._note, self.health_check = api, time, note, health_check
        self.put_back: Counter[str] = Counter()
        """How often the same condemnation was, which makes another one of it."""

    def request(self, name: str) -> None:
        if self.health_check is not None:
            self.health_check.request(name)
        elif isinstance(self._condemnation(name), NotRequested):
            self._patch(name, {"annotations": {EXTERNAL_REMEDIATION: ""}})
            self._note("MHC", f"asks for {name}")

    def lapse(self, name: str, seconds: float) -> None:
        """Somebody removes the condemnation, and puts the same one back."""
        condemnation = self._condemnation(name)
        if isinstance(condemnation, Condemned):
            self.absolve(name)
            self._time.after(seconds, partial(self._put_back, name, condemnation))

    def _put_back(self, name: str, condemnation: Condemned) -> None:
        self.put_back[name] += 1
        self._patch(name, condemnation.render())
        self._note("a person", f"puts the condemnation of {name} back")

    def absolve(self, name: str) -> None:
        if self.health_check is not None:
            self.health_check.withdraw(name)
            return
        condemnation = self._condemnation(name)
        if isinstance(condemnation, (Requested, Condemned)):
            last_id = condemnation.id if isinstance(condemnation, Condemned) else condemnation.last_id
            self._patch(name, NotRequested(last_id).render())
            self._note("a person", f"absolves {name}")

    def enrol(self, name: str) -> None:
        self._api.patch(CONFIG_MAPS, NAMESPACE, ENROLLED, {"data": {name: "{}"}})
        self._note("a person", f"enrols {name}")

    def unenrol(self, name: str) -> None:
        self._api.patch(CONFIG_MAPS, NAMESPACE, ENROLLED, {"data": {name: None}})
        self._note("a person", f"unenrols {name}")

    def replace_machine(self, name: str) -> bool:
        """Another one under the old name: it is told apart by its uid alone. False if there is none to replace."""
        exists = self._api.exists(*self._api.cluster.place(name))
        if exists:
            self._api.delete(*self._api.cluster.place(name))
            make_machine(self._api, name)
        return exists

    def pause(self, seconds: float) -> None:
        """By `pp-leader pause`, until so many seconds from now."""
        order = Pause("a person", EPOCH_TIME, "planned work").render()
        self._order({PAUSED: order})
        self._note("a person", "pauses the leader")
        self._time.after(seconds, partial(self._order, {PAUSED: None}))

    def _order(self, data: Json) -> None:
        if self._api.exists(CONFIG_MAPS, NAMESPACE, CONTROL):
            self._api.patch(CONFIG_MAPS, NAMESPACE, CONTROL, {"data": data})
        elif data[PAUSED] is not None:
            self._api.create(CONFIG_MAPS, NAMESPACE, {"metadata": {"name": CONTROL}, "data": data})

    def _condemnation(self, name: str) -> object:
        there = self._api.exists(*self._api.cluster.place(name))
        return machine_of(self._api, name).condemnation if there else None

    def _patch(self, name: str, metadata: Json) -> None:
        if self._api.exists(*self._api.cluster.place(name)):
            self._api.patch(*self._api.cluster.place(name), {"metadata": metadata})
