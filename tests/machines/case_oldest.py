"""The oldest Python and systemd that are supported: the same package arms there, and is reset there."""

from __future__ import annotations

import time

from tests.machines.bed import Bed, Plan
from tests.machines.bound import Fate, protected_or_reset
from tests.machines.debian import OLDEST

OTHERS = ("other-1", "other-2")


def test_a_host_with_python_3_9_is_armed_and_reset_by_its_watchdog(bed: Bed) -> None:
    (guest,) = bed.gather({"oldest": Plan(suite=OLDEST)}, OTHERS)
    assert "3.9." in guest.run("python3 --version")
    bed.start_armed(guest)
    since = time.time()
    guest.run("systemctl kill --signal=SIGSTOP pp-hostd")
    assert protected_or_reset(bed, guest, since) is Fate.RESET
    assert guest.was_reset_by_watchdog()
