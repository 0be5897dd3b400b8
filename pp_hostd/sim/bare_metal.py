"""The operator of BareMetalHosts, and the BMCs by which it reads the hosts' power and switches them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import partial
from typing import Callable

from pp_hostd.embedded.status import StatusError
from pp_hostd.kube.resources import BARE_METAL_HOSTS
from pp_hostd.model.keys import PAUSED_HOST, REBOOT
from pp_hostd.sim.api import SERVERS, Api, Json, as_it_is
from pp_hostd.sim.cluster import MACHINES_IN
from pp_hostd.sim.host import Host
from pp_hostd.sim.schedule import Trouble
from pp_hostd.sim.time import Time

LOOK_SECONDS = 5.0
"""On average, from one look at a host to the next."""
REPORT_SECONDS = 1.0
"""At most, from a reading to the write of it."""
NO_ERROR = {"operationalStatus": "OK", "errorType": None, "errorMessage": None}
ERROR = {"operationalStatus": "error", "errorType": "power management error", "errorMessage": "no answer"}


def make_host(api: Api, name: str) -> None:
    """A BareMetalHost that is on."""
    api.create(BARE_METAL_HOSTS, MACHINES_IN, {"metadata": {"name": name}, "spec": {"online": True}})
    status = {**NO_ERROR, "poweredOn": True, "provisioning": {"state": "provisioned"}}
    api.patch(BARE_METAL_HOSTS, MACHINES_IN, name, {"status": status}, "status")


class Operator:
    """It looks at each host time and again, and writes what it has read onto the version that it began with."""

    def __init__(
        self,
        api: Api,
        time: Time,
        chance: random.Random,
        hosts: Mapping[str, Host],
        note: Callable[[str, str], None],
    ) -> None:
        self._api, self._time, self._chance, self._hosts, self._note = api, time, chance, hosts, note
        self._away = False
        self._mute: set[str] = set()
        """Hosts whose BMC does not answer."""
        self.acts: Mapping[str, Callable[[Trouble], None]] = {
            "BMC does not answer": self._silence,
            "the operator is away": self._leave,
            "a BareMetalHost is paused": self._pause,
        }
        self.on_switched_off: Callable[[str, str], None] = lambda *_: None
        """Hears of each host, and of the requests for it."""
        for name in hosts:
            self._look_again(name)

    # Troubles.

    def heal(self) -> None:
        self._away = False
        self._mute.clear()
        for name in self._hosts:
            self._unpause(name)

    def _silence(self, trouble: Trouble) -> None:
        self._mute.update(trouble.who)
        self._time.after(trouble.seconds, partial(self._mute.difference_update, trouble.who))

    def _leave(self, trouble: Trouble) -> None:
        self._away = True
        self._time.after(trouble.seconds, partial(setattr, self, "_away", False))

    def _pause(self, trouble: Trouble) -> None:
        """A person pauses the host. If it is bad enough, the person also powers it on by hand meanwhile."""
        name = trouble.who[0]
        self._annotate(name, PAUSED_HOST, "")
        if trouble.part >= 0.5:
            self._time.after(trouble.seconds * (trouble.part - 0.5), partial(self._power_on_by_hand, name))
        self._time.after(trouble.seconds, partial(self._unpause, name))

    def _power_on_by_hand(self, name: str) -> None:
        if not self._hosts[name].powered:
            self._note("a person", f"powers {name} on by hand")
            self._hosts[name].switch_on()

    def _unpause(self, name: str) -> None:
        found = self._found(name)
        if found is not None and PAUSED_HOST in found["metadata"].get("annotations", {}):
            self._annotate(name, PAUSED_HOST, None)

    def _annotate(self, name: str, key: str, value: str | None) -> None:
        self._api.patch(BARE_METAL_HOSTS, MACHINES_IN, name, {"metadata": {"annotations": {key: value}}})

    # Its work.

    def _look_again(self, name: str) -> None:
        self._time.after(LOOK_SECONDS * (0.5 + self._chance.random()), partial(self._look, name))

    def _look(self, name: str) -> None:
        self._look_again(name)
        found, host = self._found(name), self._hosts[name]
        if self._away or found is None or not any(map(self._api.answers, SERVERS)):
            return
        annotations = found["metadata"].get("annotations", {})
        if PAUSED_HOST in annotations:
            return
        self._report(name, found, ERROR if name in self._mute else {**NO_ERROR, "poweredOn": host.powered})
        if name not in self._mute:
            self._switch(host, " ".join(value for key, value in annotations.items() if key.startswith(REBOOT)))

    def _report(self, name: str, found: Json, read: Json) -> None:
        if {key: found["status"].get(key) for key in read} != read:
            patch = {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "status": read}
            self._time.after(REPORT_SECONDS * self._chance.random(), partial(self._write, name, patch))

    def _write(self, name: str, patch: Json) -> None:
        try:
            self._api.patch(BARE_METAL_HOSTS, MACHINES_IN, name, patch, "status")
        except StatusError:
            return  # somebody has written it meanwhile: it looks again
        self._note("operator", f"{name}: {patch['status']}")

    def _switch(self, host: Host, requests: str) -> None:
        if requests and host.powered:
            self._note("operator", f"switches {host.name} off")
            host.switch_off()
            self.on_switched_off(host.name, requests)
        elif not requests and not host.powered:
            self._note("operator", f"switches {host.name} on")
            host.switch_on()

    def _found(self, name: str) -> Json | None:
        found: Json | None = self._api.if_there(as_it_is, BARE_METAL_HOSTS, MACHINES_IN, name)
        return found
