"""A shutdown of the system is told from a stop of the unit by systemd's queue of jobs."""

from __future__ import annotations

import pytest

from pp_hostd.agent.sense.shutdown import Shutdown, ordered_shutdown


@pytest.mark.parametrize(
    ("jobs", "ordered"),
    [
        ("", None),
        ("No jobs running.\n", None),
        ("1234 poweroff.target stop waiting\n", None),
        ("1234 poweroff.target start waiting\n", Shutdown.POWER_OFF),
        ("1234 halt.target start waiting\n", Shutdown.POWER_OFF),
        ("  12 reboot.target start waiting\n", Shutdown.RESTART),
        ("   1 other.service stop running\n  12 kexec.target start waiting\n", Shutdown.RESTART),
    ],
)
def test_the_jobs_tell_whether_and_how_the_system_ends(jobs: str, ordered: Shutdown | None) -> None:
    assert ordered_shutdown(jobs) is ordered
