"""What systemd tells about itself and about units, through `systemctl show`."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from pp_hostd.agent.doctor.facts import NotKnown, Properties, SystemdFacts

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
