"""The programs of this machine that build and run guests: the one place that installs them."""

from __future__ import annotations

import os
import shutil
import subprocess

from pp_hostd.errors import UserError
from tests.machines.architecture import HERE

PACKAGES = {
    HERE.qemu: f"qemu-system-{'x86' if HERE.debian == 'amd64' else 'arm'}",
    "qemu-img": "qemu-utils",
    "mmdebstrap": "mmdebstrap",
    "busybox": "busybox-static",
    "mke2fs": "e2fsprogs",
    "cpio": "cpio",
    "depmod": "kmod",
    "rpmbuild": "rpm",
}
"""By program, the Debian package that brings it."""
INSTALL_SECONDS = 600


def install_tools() -> None:
    """Get what is missing; it takes root, as the guests' network does."""
    if os.geteuid() != 0:
        raise UserError("machines need root: they build images and lay network cables", "run it with sudo")
    missing = sorted({package for program, package in PACKAGES.items() if shutil.which(program) is None})
    if missing:
        print(f"machines: installing {' '.join(missing)}", flush=True)
        apt = ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300"]
        for command in ([*apt, "update"], [*apt, "install", "--no-install-recommends", *missing]):
            subprocess.run(command, check=True, timeout=INSTALL_SECONDS, stdout=subprocess.DEVNULL)
