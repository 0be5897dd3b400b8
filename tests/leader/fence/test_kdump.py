"""Messages of kdump: only real ones count, by the address that sent them, whatever else comes to that port."""

from __future__ import annotations

import asyncio
import socket
import struct
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.leader.kdump import (
    MAX_ADDRESSES,
    MOST_AT_ONCE,
    QUIET_SECONDS,
    REST_SECONDS,
    is_message,
    plain_address,
)
from tests.agent.objects import until
from tests.leader.fence.kdump_site import JUNK, MESSAGE, Site


def test_the_message_counts_in_either_byte_order() -> None:
    assert is_message(MESSAGE) and is_message(struct.pack(">II", 0x1B302A40, 1))


@given(st.binary(max_size=20))
def test_hardly_anything_is_a_message(datagram: bytes) -> None:
    assert is_message(datagram) is (datagram in (MESSAGE, struct.pack(">II", 0x1B302A40, 1)))


@given(st.integers(0, len(MESSAGE) - 1), st.integers(1, 255), st.binary(max_size=3))
def test_a_message_with_an_error_is_none(place: int, error: int, more: bytes) -> None:
    garbled = bytearray(MESSAGE)
    garbled[place] ^= error
    assert not is_message(bytes(garbled) + more)
    assert not is_message(MESSAGE[:place])
    assert is_message(MESSAGE + more) is (not more)


@given(st.ip_addresses(v=4), st.ip_addresses(v=6))
def test_an_address_is_known_by_one_name(old: IPv4Address, new: IPv6Address) -> None:
    assert plain_address(str(old)) == plain_address(f"::ffff:{old}") == str(old)
    assert plain_address(new.exploded) == plain_address(f"{new}%eth0") == str(new.ipv4_mapped or new)


def test_messages_are_heard_by_ipv4_and_ipv6_and_junk_is_counted() -> None:
    async def case() -> None:
        site = Site()
        with site.listening() as listener:
            assert listener.trouble == ""
            await site.takes()
            site.now = 1001.0
            await site.takes(source="::1")
            for datagram in (b"", JUNK, MESSAGE[:-1], MESSAGE + b"\0", MESSAGE * 1000):
                await site.takes(datagram, "127.0.0.9")
            assert listener.seen == {"127.0.0.1": 1000.0, "::1": 1001.0}
            assert site.news == [1000.0, 1001.0]
            assert listener.ignored == 2 + 2 * 5

    asyncio.run(case())


def test_an_address_is_news_once_and_again_after_a_silence() -> None:
    async def case() -> None:
        site = Site()
        with site.listening() as listener:
            for since in (0.0, 0.0, QUIET_SECONDS - 1, QUIET_SECONDS, QUIET_SECONDS + 9):
                site.now += since
                await site.takes()
                assert listener.seen == {"127.0.0.1": site.now}
            assert site.news == [1000.0, 1000.0 + 2 * QUIET_SECONDS - 1, 1000.0 + 3 * QUIET_SECONDS + 8]

    asyncio.run(case())


def source(number: int) -> str:
    return f"127.1.{number // 250}.{number % 250 + 1}"


def test_of_too_many_addresses_the_one_that_was_silent_for_longest_is_forgotten() -> None:
    async def case() -> None:
        site = Site()
        with site.listening() as listener:
            for number in (*range(MAX_ADDRESSES), 0, MAX_ADDRESSES, MAX_ADDRESSES + 1):
                await site.takes(source=source(number))
            assert len(listener.seen) == MAX_ADDRESSES
            gone = {source(number) for number in range(MAX_ADDRESSES + 2)} - set(listener.seen)
            assert gone == {source(1), source(2)}

    asyncio.run(case())


def test_a_flood_of_addresses_is_read_in_parts_with_rests_between_and_one_call_for_each_part() -> None:
    async def case() -> None:
        site, loop = Site(), asyncio.get_running_loop()
        with site.listening() as listener:
            for number in range(MOST_AT_ONCE + 50):
                site.send(source=source(number))
            began_at = loop.time()
            await until(lambda: len(listener.seen) == MOST_AT_ONCE + 50, "all of it is read")
            assert loop.time() - began_at >= REST_SECONDS
            assert len(site.news) == 2

    asyncio.run(case())


def test_junk_is_no_news_however_much_there_is() -> None:
    async def case() -> None:
        site = Site()
        with site.listening() as listener:
            site.send(JUNK, times=MOST_AT_ONCE + 50)
            await until(lambda: listener.ignored == MOST_AT_ONCE + 50, "all of it is read")
            assert not site.news and not listener.seen

    asyncio.run(case())


def test_what_was_seen_is_forgotten_when_listening_ends_and_nothing_is_heard_until_it_begins_again() -> None:
    async def case() -> None:
        site = Site()
        with site.listening() as listener:
            await site.takes()
        assert not listener.seen
        site.send()
        with site.listening():
            await site.takes(source="127.0.0.2")
            assert list(listener.seen) == ["127.0.0.2"]

    asyncio.run(case())


def test_listening_can_end_in_the_middle_of_a_flood() -> None:
    async def case() -> None:
        site, loop, raised = Site(), asyncio.get_running_loop(), list[object]()
        loop.set_exception_handler(lambda _, context: raised.append(context))
        with site.listening() as listener:
            site.send(JUNK, times=MOST_AT_ONCE + 50)
            await until(lambda: listener.ignored == MOST_AT_ONCE, "it rests")
        with site.listening():
            await asyncio.sleep(REST_SECONDS)  # which ends after the rest that was cut short
            await site.takes()
            assert listener.ignored == MOST_AT_ONCE + 1
        assert not raised

    asyncio.run(case())


@pytest.mark.parametrize("wanted", [True, False])
def test_to_be_set_twice_changes_nothing(wanted: bool) -> None:
    async def case() -> None:
        site = Site()
        with site.listening() as listener:
            await site.takes()
            listener.set_listening(True)
            assert listener.seen and not listener.trouble
        listener.set_listening(wanted)
        assert not listener.seen and not listener.trouble
        listener.set_listening(False)

    asyncio.run(case())


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_a_port_that_is_taken_is_told_and_tried_again(family: int) -> None:
    async def case() -> None:
        site = Site()
        with socket.socket(family, socket.SOCK_DGRAM) as other, site.listening() as listener:
            listener.set_listening(False)
            other.bind(("", site.port))
            listener.set_listening(True)
            assert listener.trouble == (
                f"can't listen for messages of kdump on UDP port {site.port}: Address already in use. "
                f"To see who has the port: ss -lunp 'sport = :{site.port}'"
            )
            other.close()
            listener.set_listening(True)
            assert not listener.trouble
            await site.takes()
            assert listener.seen

    asyncio.run(case())


def test_a_listener_that_is_not_wanted_has_no_trouble() -> None:
    async def case() -> None:
        site = Site()
        with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as other:
            other.bind(("", site.port))
            with site.listening() as listener:
                assert listener.trouble
            assert not listener.trouble

    asyncio.run(case())
