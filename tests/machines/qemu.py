"""QEMU's command line for a guest: the same devices always, or no snapshot would fit."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from tests.machines.architecture import HERE
from tests.machines.image import Image

MEMORY_MB = 512
COMMAND_LINE = f"console={HERE.console} norandmaps kpti=0 nokaslr mitigations=off no_timer_check quiet"
SNAPSHOT_TARGET = "systemd.unit=machines.target"
"""As far as a guest boots for a snapshot."""


def command(image: Image, directory: Path, hardware_address: str, tap: str, *, state: Path | None = None) -> list[str]:
    """A guest with its overlay, sockets and console's log in `directory`; it goes on from `state`, or boots."""
    append = COMMAND_LINE if state is not None else f"{COMMAND_LINE} {SNAPSHOT_TARGET}"
    return [
        *(HERE.qemu, "-accel", "tcg", *HERE.machine, "-m", str(MEMORY_MB), "-smp", "1"),
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *("-kernel", str(image.vmlinuz), "-initrd", str(image.initramfs), "-append", append),
        *("-drive", f"if=none,id=root,file={directory}/disk.qcow2,format=qcow2,cache=unsafe"),
        *("-device", "virtio-blk-pci,drive=root,id=disk"),
        *("-netdev", f"tap,id=net,ifname={tap},script=no,downscript=no"),
        *("-device", f"virtio-net-pci,netdev=net,id=card,mac={hardware_address},romfile="),
        *("-chardev", f"socket,id=shell,path={directory}/shell,server=on,wait=off"),
        *("-device", "virtio-serial-pci", "-device", "virtserialport,chardev=shell,nr=1"),
        *("-chardev", f"file,id=console,path={directory}/console.log,append=on", "-serial", "chardev:console"),
        *("-device", "i6300esb", "-action", "watchdog=reset"),
        *("-qmp", f"unix:{directory}/qmp,server=on,wait=off"),
        *(("-incoming", f"exec:cat {state}") if state is not None else ()),
    ]


def make_overlay(backing: Path, kind: str, overlay: Path) -> None:
    """A disk of which only the differences to `backing` are kept."""
    create = ["qemu-img", "create", "-q", "-f", "qcow2", "-F", kind, "-b", str(backing), str(overlay)]
    subprocess.run(create, check=True, timeout=60)


@cache
def version() -> str:
    """A snapshot fits the QEMU that made it."""
    said = subprocess.run([HERE.qemu, "--version"], check=True, capture_output=True, text=True, timeout=60).stdout
    return said.splitlines()[0]
