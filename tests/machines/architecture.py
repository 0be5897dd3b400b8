"""What differs between the processors that guests can have: it is the one of this machine, emulated all the same."""

from __future__ import annotations

import platform
from dataclasses import dataclass


@dataclass(frozen=True)
class Architecture:
    """`debian` is the name that its packages have."""

    debian: str
    qemu: str
    machine: tuple[str, ...]
    console: str


KNOWN = {
    "x86_64": Architecture("amd64", "qemu-system-x86_64", ("-machine", "pc", "-cpu", "max"), "ttyS0"),
    "aarch64": Architecture("arm64", "qemu-system-aarch64", ("-machine", "virt", "-cpu", "cortex-a57"), "ttyAMA0"),
}
HERE = KNOWN[platform.machine()]
