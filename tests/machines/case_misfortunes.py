"""Whatever befalls a host: it is either protected and up, or reset in the bound."""

from __future__ import annotations

import time
from typing import Callable

import pytest

from tests.machines.bed import Bed, Plan
from tests.machines.bound import protected_or_reset
from tests.machines.guest import Guest

APART = "systemd-run --quiet --collect --property=TasksMax=infinity"
"""In a unit of its own, which no limit of ours spares."""


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


MISFORTUNES = (
    kill_the_agent_again_and_again,
    remove_the_kubeconfig,
    fill_the_disk,
    bomb_with_forks,
    exhaust_the_memory,
    stall_the_disk,
)


@pytest.mark.parametrize("misfortune", MISFORTUNES, ids=lambda each: each.__name__)
def test_a_host_in_trouble_is_protected_and_up_or_reset_in_the_bound(
    bed: Bed, misfortune: Callable[[Guest], None]
) -> None:
    (guest,) = bed.gather({"victim": Plan()}, absent=("other-1", "other-2"))
    bed.start_armed(guest)
    since = time.time()
    misfortune(guest)
    print(f"{misfortune.__name__}: {protected_or_reset(bed, guest, since).value}")
