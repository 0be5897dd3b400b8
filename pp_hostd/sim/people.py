"""What people and their tools do to a simulated cluster: ask for a node, absolve it, enrol it, replace its machine."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import Callable

from pp_hostd.kube.resources import CONFIG_MAPS
from pp_hostd.model.condemnation import Condemned, NotRequested, Requested
from pp_hostd.model.keys import ENROLLED, EXTERNAL_REMEDIATION, NAMESPACE
from pp_hostd.sim.api import Api, Json
from pp_hostd.sim.filled import machine_of, make_machine
from pp_hostd.sim.time import Time


class People:
    """They write to the API, which always answers them."""

    def __init__(self, api: Api, time: Time, note: Callable[[str, str], None]) -> None:
        self._api, self._time, self._note = api, time, note
        self.put_back: Counter[str] = Counter()
        """How often the same condemnation was, which makes another one of it."""

    def request(self, name: str) -> None:
        if isinstance(self._condemnation(name), NotRequested):
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

    def replace_machine(self, name: str) -> None:
        """Another one under the old name: it is told apart by its uid alone."""
        if self._api.exists(*self._api.cluster.place(name)):
            self._api.delete(*self._api.cluster.place(name))
            make_machine(self._api, name)

    def _condemnation(self, name: str) -> object:
        there = self._api.exists(*self._api.cluster.place(name))
        return machine_of(self._api, name).condemnation if there else None

    def _patch(self, name: str, metadata: Json) -> None:
        if self._api.exists(*self._api.cluster.place(name)):
            self._api.patch(*self._api.cluster.place(name), {"metadata": metadata})
