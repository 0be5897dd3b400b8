"""The differences between the architectures of guests: a guest has this machine's, and yet QEMU emulates it."""

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
