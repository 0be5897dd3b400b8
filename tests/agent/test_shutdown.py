"""A shutdown of the system is told from a stop of the unit by systemd's queue of jobs, and always ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pp_hostd.agent.sense.boot import Shutdown, ordered_shutdown
from pp_hostd.agent.shutdown import WITHDRAW_SECONDS, is_kernel_to_end
from pp_hostd.model.boot_commitments import BootCommitments, Gate
from pp_hostd.model.promise import Withdrawn
from tests.agent.test_plan_promise import PROMISED

WITHDRAWN = replace(PROMISED, stored=Withdrawn(PROMISED.boot))
UNLOOKED = BootCommitments(PROMISED.boot, Gate.OPEN, PROMISED.watchdog)
"""A promise may stand that this run of the agent does not know of."""


@pytest.mark.parametrize(
    ("jobs", "ordered"),
    [
        ("", None),
        ("No jobs running.\n", None),
        ("1234 poweroff.target stop waiting\n", None),
        ("1234 poweroff.target start waiting\n", Shutdown.POWER_OFF),
        ("1234 halt.target start waiting\n", Shutdown.HALT),
        ("  12 reboot.target start waiting\n", Shutdown.RESTART),
        ("   1 other.service stop running\n  12 kexec.target start waiting\n", Shutdown.RESTART),
    ],
)
def test_the_jobs_tell_whether_and_how_the_system_ends(jobs: str, ordered: Shutdown | None) -> None:
    assert ordered_shutdown(jobs) is ordered


@pytest.mark.parametrize(("commitments", "ends"), [(PROMISED, True), (UNLOOKED, True), (WITHDRAWN, False)])
def test_the_agent_ends_the_kernel_once_a_promise_that_may_stand_could_not_be_withdrawn_in_time(
    commitments: BootCommitments, ends: bool
) -> None:
    assert not is_kernel_to_end(commitments, 100.0, 100.0 + WITHDRAW_SECONDS - 0.1)
    assert is_kernel_to_end(commitments, 100.0, 100.0 + WITHDRAW_SECONDS) is ends
