"""Whatever makes a host hang: nobody feeds its watchdog any more, and that resets it in the bound."""

from __future__ import annotations

import time
from typing import Callable

import pytest

from tests.machines.bed import Bed, Plan
from tests.machines.bound import Fate, protected_or_reset
from tests.machines.guest import Guest


def stop_the_agent(guest: Guest) -> None:
    guest.run("systemctl kill --signal=SIGSTOP pp-hostd")


def panic_by_interrupt(guest: Guest) -> None:
    guest.run("echo 1 > /proc/sys/kernel/unknown_nmi_panic; echo 0 > /proc/sys/kernel/panic")
    guest.interrupt()


def crash_the_kernel(guest: Guest) -> None:
    guest.run("(sleep 1; echo c > /proc/sysrq-trigger) > /dev/null 2>&1 &")


def take_the_only_processor(guest: Guest) -> None:
    guest.run("echo -1 > /proc/sys/kernel/sched_rt_runtime_us")
    guest.run("(sleep 1; exec chrt --fifo 99 sh -c 'while :; do :; done') > /dev/null 2>&1 &")


HANGS = (stop_the_agent, panic_by_interrupt, crash_the_kernel, take_the_only_processor)


@pytest.mark.parametrize("hang", HANGS, ids=lambda each: each.__name__)
def test_a_host_whose_agent_feeds_no_more_is_reset_by_its_watchdog(bed: Bed, hang: Callable[[Guest], None]) -> None:
    (guest,) = bed.gather({"hung": Plan()}, absent=("other-1", "other-2"))
    bed.start_armed(guest)
    since = time.time()
    hang(guest)
    assert protected_or_reset(bed, guest, since) is Fate.RESET
    assert guest.was_reset_by_watchdog()
