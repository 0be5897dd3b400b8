"""Steps that have a BareMetalHost switched off, and on again."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.kube.resources import BARE_METAL_HOSTS
from pp_hostd.leader.remedies.power_cycle.bare_metal_host import HOST, PowerRequest, reboot_key
from pp_hostd.leader.steps.machines import check_wish
from pp_hostd.leader.steps.port import Port, conditional
from pp_hostd.model.keys import BOOTING


@frozen
class SwitchOff:
    """Have that version of a BareMetalHost, which reads on, switched off and kept off."""

    host: str
    uid: str
    resource_version: str
    request: PowerRequest

    async def run(self, port: Port) -> str:
        await check_wish(port, await port.machines.get(self.request.machine))
        return await _annotate(port, self, self.request.render(), None)


@frozen
class SwitchOn:
    """Take our power-off request back. `falls_back`: the host has to reset itself instead. `booting` stays on it until
    the host is back."""

    host: str
    uid: str
    resource_version: str
    falls_back: bool = False
    booting: PowerRequest | None = None

    async def run(self, port: Port) -> str:
        return await _annotate(port, self, None, None if self.booting is None else self.booting.render())


async def _annotate(port: Port, step: SwitchOff | SwitchOn, request: str | None, booting: str | None) -> str:
    namespace, _, name = step.host.partition("/")
    annotations = {"annotations": {reboot_key(port.settings.power.suffix): request, BOOTING: booting}}
    patch = conditional({"metadata": annotations}, step.uid, step.resource_version)
    return await port.write(
        lambda: port.api.patch(BARE_METAL_HOSTS, name, patch, namespace=namespace),
        HOST,
        step.host,
        step.resource_version,
    )
