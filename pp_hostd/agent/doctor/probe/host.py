"""Probes of the host: /proc and /sys, its links and addresses, and systemd through `systemctl show`."""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
from collections.abc import Sequence
from typing import Any

from pp_hostd.agent.commands.daemon_link import Down, report
from pp_hostd.agent.control_socket import NAME
from pp_hostd.agent.doctor.facts import DaemonFacts, KernelFacts, Link, NotKnown, Properties, Rival, SystemdFacts
from pp_hostd.agent.state import RUN_DIRECTORY
from pp_hostd.errors import UserError

CONNECT_SECONDS = 5.0
VIRTUAL_VENDORS = ("QEMU", "VMware, Inc.", "Xen", "innotek GmbH", "Red Hat")
"""Where the processor does not tell, as on ARM."""
MAX_BYTES = 65536
SYSRQ_TRIGGER = "sysrq-trigger"
RIVALS = {
    "sbd": "sbd",
    "watchdog": "watchdog",
    "watchdogd": "watchdogd",
    "wdmd": "wdmd",
    "self-node-remed": "self-node-remediation",
}
"""By the name of the process, of which the kernel keeps 15 characters."""
RIVAL_ARGUMENTS = {"self-node-remediation": "self-node-remediation", "poison-pill": "poison-pill"}
"""In containers programs have names that say little: these tell by their path or arguments."""


def daemon(proc: str = "/proc") -> DaemonFacts:
    pid = _daemon_pid()
    if not pid:
        return DaemonFacts()
    limits, status = _text(f"{proc}/{pid}/limits"), _text(f"{proc}/{pid}/status")
    limit = re.search(r"^Max locked memory +(\S+)", limits, re.MULTILINE)
    locked = re.search(r"^VmLck:\s+([0-9]+) kB", status, re.MULTILINE)
    try:
        said = report()
    except (Down, UserError) as error:
        return DaemonFacts(pid, NotKnown(str(error)))
    return DaemonFacts(pid, said, limit and limit[1], int(locked[1]) if locked else None)


def _daemon_pid() -> int:
    """Returns the pid of the process that listens on the control socket; 0 if none does."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(CONNECT_SECONDS)
        try:
            sock.connect(os.path.join(RUN_DIRECTORY, NAME))
        except PermissionError:
            raise UserError("only root may ask the daemon", "Run this as root.") from None
        except OSError:
            return 0
        return int(struct.unpack("3i", sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0])


def rivals(proc: str = "/proc") -> list[Rival]:
    pids = sorted(int(name) for name in os.listdir(proc) if name.isdecimal())
    return [Rival(program, pid) for pid in pids for program in [_rival(proc, pid)] if program]


def _rival(proc: str, pid: int) -> str:
    first, *_ = _text(f"{proc}/{pid}/cmdline").split("\0")
    if not first:  # a thread of the kernel's, which has a watchdogd of its own
        return ""
    by_name = RIVALS.get(_text(f"{proc}/{pid}/comm").strip(), "")
    return by_name or next((program for word, program in RIVAL_ARGUMENTS.items() if word in first), "")


def kernel(proc: str = "/proc", sys: str = "/sys") -> KernelFacts:
    loaded = _number(f"{sys}/kernel/kexec_crash_loaded")
    return KernelFacts(
        panic_seconds=_number(f"{proc}/sys/kernel/panic"),
        sysrq_mask=_number(f"{proc}/sys/kernel/sysrq"),
        sysrq_trigger=os.path.exists(f"{proc}/{SYSRQ_TRIGGER}"),
        crash_kernel_loaded=None if loaded is None else bool(loaded),
        hypervisor=_hypervisor(proc, sys),
    )


def _hypervisor(proc: str, sys: str) -> str:
    """Returns the vendor of this virtual machine, as the firmware names it; empty on bare metal. The processor says
    whether this is a virtual machine, or else the name of a known vendor does."""
    vendor = _text(f"{sys}/class/dmi/id/sys_vendor").strip()
    if re.search(r"^flags\s*:.*\bhypervisor\b", _text(f"{proc}/cpuinfo"), re.MULTILINE):
        return vendor or "unnamed"
    return vendor if vendor in VIRTUAL_VENDORS else ""


def _number(path: str) -> int | None:
    text = _text(path).strip()
    return int(text) if re.fullmatch("-?[0-9]{1,9}", text) else None


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return ""


UP, LOWER_UP = 0x1, 0x10000


def links() -> list[Link] | NotKnown:
    try:
        from pyroute2 import IPRoute
    except ImportError:
        return NotKnown("the Python package pyroute2 is not there", "Install the package pp-hostd-admin.")
    with IPRoute() as netlink:
        addresses = [(each["index"], _address(each)) for each in netlink.get_addr()]
        return [_link(each, addresses) for each in netlink.get_links()]


def _link(message: Any, addresses: list[tuple[int, str]]) -> Link:
    name, flags = str(message.get_attr("IFLA_IFNAME")), int(message["flags"])
    return Link(
        name=name,
        is_up=bool(flags & UP),
        has_carrier=bool(flags & LOWER_UP),
        is_hardware=name != "lo" and message.get_attr("IFLA_LINKINFO") is None,
        addresses=tuple(address for index, address in addresses if index == message["index"]),
    )


def _address(message: Any) -> str:
    return str(message.get_attr("IFA_LOCAL") or message.get_attr("IFA_ADDRESS"))


SYSTEMCTL_SECONDS = 5.0
OF_MANAGER = "--property=Version,RuntimeWatchdogUSec,RebootWatchdogUSec,WatchdogDevice"
OF_UNITS = (
    "--property=Id,LoadState,UnitFileState,ActiveState,Requires,After,FileDescriptorStoreMax,NFileDescriptorStore,"
    "LimitMEMLOCK"
)


def systemd(units: Sequence[str], command: str = "systemctl") -> SystemdFacts | NotKnown:
    try:
        (manager,) = _shown([command, "show", OF_MANAGER])
        found = _shown([command, "show", OF_UNITS, *units])
    except OSError as error:
        return NotKnown(f"{command} can't be run ({error.strerror})")
    except subprocess.TimeoutExpired:
        return NotKnown(f"{command} did not end within {SYSTEMCTL_SECONDS:g} s", "See: systemctl status")
    except subprocess.CalledProcessError as error:
        return NotKnown(f"{command}: {' '.join(str(error.stderr).split())[:200]}")
    # An alias is shown under its own unit's name, so they are told apart by their order.
    return SystemdFacts(manager, dict(zip(units, found)))


def _shown(command: Sequence[str]) -> list[Properties]:
    run = subprocess.run(command, capture_output=True, text=True, timeout=SYSTEMCTL_SECONDS, check=True)
    return parse_shown(run.stdout)


def parse_shown(text: str) -> list[Properties]:
    """Blocks of `NAME=value` lines, one block for each unit."""
    blocks = [block.splitlines() for block in text.strip("\n").split("\n\n")]
    return [dict(line.split("=", 1) for line in block if "=" in line) for block in blocks]
