"""Real agents' other ends: a BMC that speaks IPMI, with a process for a host, and one that speaks Redfish."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bmc import chassis
from tests.bmc.simulator import PASSWORD, USER, command_of_bmc, lay_wires, set_wires
from tests.fencing.tools import redfish
from tests.harness.pki import LOOPBACK, CertificateAuthority
from tests.harness.supervise import Supervisor

HTPASSWD = f"{USER}:$2b$04$SRzUBQqLYs0BbwaQOoEMjedtirkBrMkhd2om50p6yCZ0i/fP/pNhu\n"
"""Of PASSWORD."""
CONFIG = "SUSHY_EMULATOR_AUTH_FILE = {auth!r}\nSUSHY_EMULATOR_STATE_DIR = {state!r}\n"


class Bmc:
    """`access` are the parameters by which an agent reaches it."""

    agent: str
    name: str
    access: dict[str, str]
    command: list[str]

    def __init__(self, supervisor: Supervisor) -> None:
        self._supervisor = supervisor

    def start(self) -> None:
        self._supervisor.run(self.name, self.command)

    def stop(self) -> None:
        self._supervisor.kill(self.name)


class Ipmi(Bmc):
    agent, name = "fence_ipmilan", "ipmi_sim"

    def __init__(self, supervisor: Supervisor, host: Sequence[str] = ("sleep", "infinity")) -> None:
        """`host` is the command that runs while its host is on."""
        super().__init__(supervisor)
        self._wires = supervisor.directory / "wires"
        port = lay_wires(self._wires, host)
        self.access = {"ip": "127.0.0.1", "ipport": str(port), "username": USER, "password": PASSWORD}
        self.access.update({"lanplus": "1", "cipher": "3"})
        self.command = command_of_bmc(self._wires)

    def host_pid(self) -> int:
        return chassis.pid_of(self._wires)

    def set_wires(self, mode: str) -> None:
        set_wires(self._wires, mode)

    def switch_off(self) -> None:
        """The host, by its plug."""
        chassis.switch_off(self._wires)


class Redfish(Bmc):
    """Its one system is off, and takes up to 11 seconds to follow an order."""

    agent, name = "fence_redfish", "sushy"

    def __init__(self, supervisor: Supervisor) -> None:
        super().__init__(supervisor)
        place = supervisor.directory
        port = _free_port()
        self.access = {"ip": "127.0.0.1", "ipport": str(port), "username": USER, "password": PASSWORD}
        self.access["ssl_insecure"] = "1"
        files = self._lay(place)
        python = ["/usr/bin/env", f"PYTHONPATH={redfish()}", sys.executable, "-m", "sushy_tools.emulator.main"]
        self.command = [*python, "--fake", "--interface", "127.0.0.1", "--port", str(port), *files]

    def _lay(self, place: Path) -> list[str]:
        issued = CertificateAuthority("redfish").issue("redfish", sans=LOOPBACK)
        (place / "redfish.crt").write_bytes(issued.cert_pem)
        (place / "redfish.key").write_bytes(issued.key_pem)
        (place / "htpasswd").write_text(HTPASSWD)
        (place / "config").write_text(CONFIG.format(auth=str(place / "htpasswd"), state=str(place / "state")))
        certificate = ["--ssl-certificate", str(place / "redfish.crt"), "--ssl-key", str(place / "redfish.key")]
        return [*certificate, "--config", str(place / "config")]


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port
