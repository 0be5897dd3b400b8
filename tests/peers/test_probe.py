"""A probe over real sockets: a kernel that takes or refuses a connection is there, and only silence is silence."""

from __future__ import annotations

import errno
import socket
import time

import pytest

from pp_hostd.model.reachability import SILENT_AFTER_SECONDS
from pp_hostd.peers import probe as module
from pp_hostd.peers.probe import Contact, Probed, probe, reach
from tests.peers.talk import peer_port, refusing_port, silent_port

LOOPBACK = "127.0.0.1"


async def test_a_host_that_takes_the_connection_is_reached() -> None:
    async with peer_port() as port:
        assert await probe(LOOPBACK, port.number, 5) == Probed(Contact.REACHED)
        assert await reach(LOOPBACK, port.number) == Probed(Contact.REACHED)


async def test_a_host_that_refuses_the_connection_is_reached_too() -> None:
    with refusing_port() as number:
        refused = await probe(LOOPBACK, number, 5)
        assert refused == Probed(Contact.REFUSED, "connection refused") == await reach(LOOPBACK, number)
    assert refused.finding is True


async def test_a_host_that_does_neither_is_silent_by_the_deadline() -> None:
    with silent_port() as number:
        began_at = time.monotonic()
        silent = await probe(LOOPBACK, number, 0.2)
        assert 0.2 <= time.monotonic() - began_at < 5
    assert silent == Probed(Contact.SILENT, "nobody answered in time")
    assert silent.finding is False


async def test_a_host_is_silent_only_after_all_attempts() -> None:
    with silent_port() as number:
        began_at = time.monotonic()
        assert (await reach(LOOPBACK, number)).contact is Contact.SILENT
        assert SILENT_AFTER_SECONDS - 0.01 <= time.monotonic() - began_at < SILENT_AFTER_SECONDS + 5


async def test_one_attempt_that_gets_through_is_enough() -> None:
    """The first packet is dropped, and there is room again before the next."""
    with socket.socket() as listener:
        listener.bind((LOOPBACK, 0))
        listener.listen(0)
        number = listener.getsockname()[1]
        fillings = [socket.socket() for _ in range(4)]
        for each in fillings:
            each.setblocking(False)
            each.connect_ex((LOOPBACK, number))
        assert (await probe(LOOPBACK, number, 0.05)).contact is Contact.SILENT
        listener.listen(64)
        assert (await reach(LOOPBACK, number)).contact is Contact.REACHED
        for each in fillings:
            each.close()


@pytest.mark.parametrize(
    ("number", "contact", "finding"),
    [
        (errno.ECONNREFUSED, Contact.REFUSED, True),
        (errno.ECONNRESET, Contact.REFUSED, True),
        (errno.EHOSTUNREACH, Contact.SILENT, False),
        (errno.ENETUNREACH, Contact.SILENT, False),
        (errno.ETIMEDOUT, Contact.SILENT, False),
        (errno.EMFILE, Contact.UNTRIED, None),
        (errno.EADDRNOTAVAIL, Contact.UNTRIED, None),
        (errno.EPERM, Contact.UNTRIED, None),
    ],
)
def test_a_fault_of_this_host_says_nothing_about_the_other(number: int, contact: Contact, finding: bool | None) -> None:
    probed = module._failed(OSError(number, "so it ended"))
    assert (probed.contact, probed.finding) == (contact, finding)


async def test_a_name_is_never_looked_up() -> None:
    assert await probe("localhost", 80) == Probed(Contact.UNTRIED, "'localhost' is not an address")
