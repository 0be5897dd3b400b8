"""The virtual host of the leader's tests on a BareMetalHost, with an operator that does what real ones are known to.

The operator looks every ten seconds: it switches by its BMC, and tells at its next look what that says.
"""

from __future__ import annotations

import enum
import math
from dataclasses import replace
from typing import Any

from pp_hostd.leader.driver import Driver
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import BareMetalHost, parse_bare_metal_host, reboot_key
from pp_hostd.model.keys import DETACHED_HOST, PAUSED_HOST
from pp_hostd.model.keys import HOST as HOST_ANNOTATION
from pp_hostd.model.promise import GateKind
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Leader, Power, Settings
from tests.leader.virtual_host import HOST, PEERS, World

HOST_NAME = "metal/x"
KEY = reboot_key(Power().suffix)
SETTINGS = Settings(power=Power(cycle=True), leader=Leader(max_unhealthy="100%", resets_per_hour="1000"))
LOOK_SECONDS = 10.0


class Bmc(enum.Enum):
    """How a host's BMC, or its operator, fares."""

    WORKS = "works"
    UNREACHABLE = "does not answer"
    LIES = "accepts everything and does nothing"
    ONE_WAY = "switches off, and never on"
    UNATTENDED = "the operator is down"


class PoweredWorld(World):
    """`powered` is the truth. Where the host is not enrolled, its kubelet starts by itself when it is on."""

    def __init__(self, settings: Settings = SETTINGS, gate: GateKind = GateKind.HOLD, *, enrolled: bool = True) -> None:
        self.powered, self.bmc, self._looked_at = True, Bmc.WORKS, 0.0
        self.enrolled, self.sick, self.switched_at = enrolled, False, 0.0
        super().__init__("openshift", settings, gate)
        status = {"poweredOn": True, "operationalStatus": "OK", "provisioning": {"state": "provisioned"}}
        metadata = {"name": "x", "namespace": "metal", "uid": "host-x", "annotations": {}}
        self.api.put("hosts", HOST_NAME, {"metadata": metadata, "spec": {"online": True}, "status": status})
        owner = {"kind": "MachineSet", "name": "workers", "controller": True}
        self.api.patch("machines", self.machine_key, {"metadata": {"ownerReferences": [owner]}})
        self.stands_on("baremetalhost:///metal/x/host-x")
        if not enrolled:
            self.enrol(PEERS)
            self.state(None)
        self.a_term("a")

    # Actions of people and others.

    def stands_on(self, provider: str | None, annotation: str | None = None) -> None:
        annotations = {"metadata": {"annotations": {HOST_ANNOTATION: annotation}}}
        self.api.patch("machines", self.machine_key, {**annotations, "spec": {"providerID": provider}})

    def change_host(self, **parts: Any) -> None:
        """Merge `metadata`, `spec` or `status` into the host."""
        self.api.patch("hosts", HOST_NAME, parts)

    def annotate_host(self, key: str, value: str | None) -> None:
        self.change_host(metadata={"annotations": {key: value}})

    @property
    def host(self) -> BareMetalHost:
        found = parse_bare_metal_host(self.api.get("hosts", HOST_NAME), self.settings.power.suffix)
        assert not isinstance(found, Unreadable), found
        return found

    def a_term(self, own_node: str, resigned_at: float = -math.inf) -> Driver:
        """With a watch of its own: what another leader has seen is lost."""
        self.api.new_leader()
        return super().a_term(own_node, resigned_at)

    def with_settings(self, **power: Any) -> None:
        """A leader begins with these."""
        self.settings = replace(self.settings, power=replace(self.settings.power, **power))
        self.a_term("a")

    # The host and its operator.

    def live(self) -> None:
        if self.now >= self._looked_at + LOOK_SECONDS and self.bmc is not Bmc.UNATTENDED:
            self._looked_at = self.now
            self._operator_looks()
        if self.powered and not self.running:
            self._starts()
        if self.powered and self.enrolled:
            super().live()

    def _operator_looks(self) -> None:
        found = self.api.get("hosts", HOST_NAME)
        hands_off = (PAUSED_HOST, DETACHED_HOST)
        if found is None or any(key in found["metadata"].get("annotations", {}) for key in hands_off):
            return
        error = self.bmc is Bmc.UNREACHABLE
        status: dict[str, Any] = {"operationalStatus": "error" if error else "OK"}
        status["errorType"] = "power management error" if error else None
        status["errorMessage"] = "no answer from 192.0.2.9" if error else None
        if not error:
            status["poweredOn"] = self.powered
        self.change_host(status=status)
        keys = [key for key in found["metadata"].get("annotations", {}) if key.startswith("reboot.metal3.io/")]
        if self.bmc in (Bmc.WORKS, Bmc.ONE_WAY) and keys and self.powered:
            self.switch(False)
        elif self.bmc is Bmc.WORKS and not keys and found["spec"]["online"] and not self.powered:
            self.switch(True)

    def switch(self, on: bool) -> None:
        self.powered, self.switched_at = on, self.now
        if not on:
            self.running, self.committed_at, self.boot = False, None, self.boot + 1

    def _starts(self) -> None:
        if self.enrolled:
            self.comes_back()
            self._becomes_ready()
            return
        self.kubelet_registers()
        self.running = True
        self._becomes_ready()

    def _becomes_ready(self) -> None:
        """A kubelet that has started says so, unless it is `sick`; it reports its boot in any case."""
        ready = {"type": "Ready", "status": "False" if self.sick else "True"}
        status = {"nodeInfo": {"bootID": f"boot-{self.boot}"}, "conditions": [ready]}
        if self.running and self.api.get("nodes", HOST) is not None:
            self.api.patch("nodes", HOST, {"status": status})

    def is_well(self) -> bool:
        """On, its Node there with all it ever had, and nothing of the leader's work left."""
        return self.powered and self.running and self.given_back() and self.host.request is None

    def a_power_cycle(self) -> None:
        """One is requested, and goes well."""
        self.request(self.machine_key)
        self.run(lambda: self.uncondemned() and self.is_well() and not self.driver.next_actions)


__all__ = ["HOST", "HOST_NAME", "KEY", "SETTINGS", "Bmc", "PoweredWorld"]
