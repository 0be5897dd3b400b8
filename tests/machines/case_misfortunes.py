"""Whatever befalls a host: it is either protected and up, or reset in the bound."""

from __future__ import annotations

import time
from typing import Callable

import pytest

from tests.machines.bed import Bed, Plan
from tests.machines.bound import Fate, protected_or_reset
from tests.machines.guest import Guest

APART = "systemd-run --quiet --collect --property=TasksMax=infinity"
"""In a unit of its own, which no limit of ours spares."""


def stop_the_agent(guest: Guest) -> None:
    guest.run("systemctl kill --signal=SIGSTOP pp-hostd")


def kill_the_agent_again_and_again(guest: Guest) -> None:
    guest.run(f"{APART} sh -c 'while :; do systemctl kill --signal=SIGKILL pp-hostd; sleep 1; done'")


def remove_the_kubeconfig(guest: Guest) -> None:
    guest.run("rm /etc/pp-hostd/kubeconfig")


def fill_the_disk(guest: Guest) -> None:
    guest.attempt("cat /dev/zero > /var/lib/filling", 60)
    guest.attempt("cat /dev/zero > /run/filling", 60)


def bomb_with_forks(guest: Guest) -> None:
    guest.run(f"{APART} sh -c 'bomb() {{ bomb | bomb & }}; bomb'")


def exhaust_the_memory(guest: Guest) -> None:
    guest.run(f"{APART} sh -c 'for i in 1 2 3 4; do tail /dev/zero & done; wait'")


def stall_the_disk(guest: Guest) -> None:
    guest.run("(sleep 1; echo 3 > /proc/sys/vm/drop_caches; sync) > /dev/null 2>&1 &")
    guest.stall_disk()


def panic_by_interrupt(guest: Guest) -> None:
    guest.run("echo 1 > /proc/sys/kernel/unknown_nmi_panic; echo 0 > /proc/sys/kernel/panic")
    guest.interrupt()


def crash_the_kernel(guest: Guest) -> None:
    guest.run("(sleep 1; echo c > /proc/sysrq-trigger) > /dev/null 2>&1 &")


def take_the_only_processor(guest: Guest) -> None:
    guest.run("echo -1 > /proc/sys/kernel/sched_rt_runtime_us")
    guest.run("(sleep 1; exec chrt --fifo 99 sh -c 'while :; do :; done') > /dev/null 2>&1 &")


CERTAIN = (stop_the_agent, panic_by_interrupt, crash_the_kernel, take_the_only_processor)
"""After these nobody feeds the watchdog any more."""
UNCERTAIN = (
    kill_the_agent_again_and_again,
    remove_the_kubeconfig,
    fill_the_disk,
    bomb_with_forks,
    exhaust_the_memory,
    stall_the_disk,
)


def begin(bed: Bed) -> Guest:
    (guest,) = bed.gather({"victim": Plan()}, absent=("other-1", "other-2"))
    bed.start_armed(guest)
    return guest


@pytest.mark.parametrize("misfortune", CERTAIN, ids=lambda each: each.__name__)
def test_a_host_whose_agent_feeds_no_more_is_reset_by_its_watchdog(
    bed: Bed, misfortune: Callable[[Guest], None]
) -> None:
    guest = begin(bed)
    since = time.time()
    misfortune(guest)
    assert protected_or_reset(bed, guest, since) is Fate.RESET
    assert guest.was_reset_by_watchdog()


@pytest.mark.parametrize("misfortune", UNCERTAIN, ids=lambda each: each.__name__)
def test_a_host_in_trouble_is_protected_and_up_or_reset_in_the_bound(
    bed: Bed, misfortune: Callable[[Guest], None]
) -> None:
    guest = begin(bed)
    since = time.time()
    misfortune(guest)
    print(f"{misfortune.__name__}: {protected_or_reset(bed, guest, since).value}")
