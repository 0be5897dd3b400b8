"""The programs of this machine that play BMCs and talk to them. python -m tests.bmc.tools gets what is missing."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping

PACKAGES = {"ipmi_sim": "openipmi", "ipmitool": "ipmitool"}
INSTALL_SECONDS = 600


def install(packages: Mapping[str, str]) -> None:
    """Get those packages whose program is not there."""
    missing = sorted(package for program, package in packages.items() if shutil.which(program) is None)
    if missing:
        print(f"installing {' '.join(missing)} (root)", flush=True)
        apt = ["apt-get", "-qq", "-y", "-o", "DPkg::Lock::Timeout=300"]
        for command in ([*apt, "update"], [*apt, "install", "--no-install-recommends", *missing]):
            subprocess.run(command, check=True, timeout=INSTALL_SECONDS, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    install(PACKAGES)
