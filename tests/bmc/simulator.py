"""A BMC that speaks IPMI: ipmi_sim, with `chassis.py` for wires."""

from __future__ import annotations

import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.bmc import chassis

USER, PASSWORD = "admin", "secret"
BMC = """name "bmc"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {port}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid a123456789abcdefa123456789abcdef
  endlan
  chassis_control "{wires}"
  user 2 true "{user}" "{password}" admin 10 none md2 md5 straight
"""
EMULATED = "mc_setbmc 0x20\nmc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02 persist_sdr\nmc_enable 0x20\n"


def lay_wires(wires: Path, host: Sequence[str]) -> int:
    """Makes the directory of a BMC for a host that this command is; returns the port that it will listen on."""
    wires.mkdir()
    (wires / "command").write_text("\n".join(host))
    set_wires(wires, "works")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    control = f"{sys.executable} -I {chassis.__file__} {wires}"
    (wires / "lan.conf").write_text(BMC.format(port=port, wires=control, user=USER, password=PASSWORD))
    (wires / "sim.emu").write_text(EMULATED)
    return port


def set_wires(wires: Path, mode: str) -> None:
    """`works`, `dead` (accepts everything, does nothing), or `one way` (off, and never on)."""
    (wires / "mode").write_text(mode)


def command_of_bmc(wires: Path) -> list[str]:
    return ["ipmi_sim", "-n", "-c", f"{wires}/lan.conf", "-f", f"{wires}/sim.emu", "-s", f"{wires}/state"]
