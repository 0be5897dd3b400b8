"""Real fence agents, and what plays BMCs for them. python -m tests.fencing.tools gets what is missing (apt: root)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from pp_hostd.errors import UserError
from tests.bmc.tools import PACKAGES, install
from tests.machines.debian import kept, run

AGENTS = {"fence_ipmilan": "fence-agents"}
REDFISH = "sushy-tools<3"


def redfish() -> Path:
    """The directory with the emulator's modules: none of ours, so they are not beside ours."""
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", REDFISH]
    content = [*pip, sys.implementation.cache_tag or ""]
    return kept("redfish", content, lambda new: run(*pip, "--target", new / "modules")) / "modules"


def main() -> None:
    try:
        install({**PACKAGES, **AGENTS})
        redfish()
    except (OSError, subprocess.SubprocessError, UserError) as error:
        sys.exit(f"make test-fencing: {error}")


if __name__ == "__main__":
    main()
