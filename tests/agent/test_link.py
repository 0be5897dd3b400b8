"""The kernel's news of links and addresses are one call per burst; idle news are none, and lost news count."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from pyroute2 import AsyncIPRoute

from pp_hostd.agent.sense.link import SETTLE_SECONDS, LinkChanges
from tests.harness.isolated import isolated

OLD_ADDRESS = "192.0.2.200"
ADD_MANY = """
import sys
from pyroute2 import IPRoute
with IPRoute() as ip:
    for last in range(1, 100):
        ip.addr("add", index=int(sys.argv[1]), address=f"192.0.2.{last}", prefixlen=24)
"""


class Calls:
    """A stand-in for the agent, which would check once per call: it counts the calls."""

    def __init__(self) -> None:
        self.count = 0
        self._called = asyncio.Event()

    def __call__(self) -> None:
        self.count += 1
        self._called.set()

    async def next(self) -> None:
        """Until the next call; fails if none comes."""
        await asyncio.wait_for(self._called.wait(), 5)
        self._called.clear()

    async def settle(self) -> None:
        """Until nothing is on its way any more."""
        seen = -1
        while seen != self.count:
            seen = self.count
            await asyncio.sleep(5 * SETTLE_SECONDS)
        self._called.clear()


@dataclass(frozen=True)
class Pair:
    ip: Any
    near: int
    far: int
    changes: LinkChanges
    calls: Calls


@contextlib.asynccontextmanager
async def a_pair_of_links(**options: int) -> AsyncIterator[Pair]:
    """Two ends of a cable, both up and one with an address, before anyone listens."""
    async with AsyncIPRoute() as ip:
        await ip.link("add", ifname="near", kind="veth", peer="far")
        near, far = [await bring_up(ip, name) for name in ("near", "far")]
        await ip.addr("add", index=near, address=OLD_ADDRESS, prefixlen=24)
        for index in (near, far):
            await is_up(ip, index)
        calls = Calls()
        changes = LinkChanges(calls, **options)
        try:
            await calls.settle()
            yield Pair(ip, near, far, changes, calls)
        finally:
            changes.close()


async def bring_up(ip: Any, name: str) -> int:
    """Without IPv6, whose link-local address would come a second or two late, as news of its own."""
    with open(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6", "w") as file:  # noqa: ASYNC230
        file.write("1")
    (index,) = await ip.link_lookup(ifname=name)
    await ip.link("set", index=index, state="up")
    return int(index)


async def is_up(ip: Any, index: int) -> None:
    """The kernel takes a moment after the command."""
    for _ in range(500):
        (link,) = await ip.link("get", index=index)
        if link.get_attr("IFLA_OPERSTATE") == "UP":
            return
        await asyncio.sleep(0.01)
    raise TimeoutError(f"link {index} does not come up")


@isolated
async def test_a_cable_that_is_pulled_and_plugged_in_again_is_a_call_each() -> None:
    async with a_pair_of_links() as pair:
        for state in ("down", "up"):
            await pair.ip.link("set", index=pair.far, state=state)
            await pair.calls.next()
        await pair.calls.settle()
        assert pair.calls.count == 2


@isolated
async def test_an_address_that_comes_or_goes_is_a_call() -> None:
    async with a_pair_of_links() as pair:
        for count, (command, last) in enumerate((("add", 1), ("add", 2), ("del", 1), ("add", 1)), 1):
            await pair.ip.addr(command, index=pair.near, address=f"192.0.2.{last}", prefixlen=24)
            await pair.calls.next()
            await pair.calls.settle()
            assert pair.calls.count == count


@isolated
async def test_an_address_that_is_only_renewed_is_no_news() -> None:
    async with a_pair_of_links() as pair:
        lifetimes = {"preferred_lft": 100, "valid_lft": 200}
        await pair.ip.addr("replace", index=pair.near, address=OLD_ADDRESS, prefixlen=24, **lifetimes)
        await pair.calls.settle()
        assert pair.calls.count == 0


@isolated
async def test_a_link_that_changes_otherwise_is_no_news() -> None:
    async with a_pair_of_links() as pair:
        await pair.ip.link("set", index=pair.near, mtu=1400)
        await pair.ip.link("set", index=pair.near, ifalias="uplink")
        await pair.calls.settle()
        assert pair.calls.count == 0


@isolated
async def test_a_burst_of_changes_is_one_call() -> None:
    async with a_pair_of_links() as pair:
        for last in range(1, 20):
            await pair.ip.addr("add", index=pair.near, address=f"192.0.2.{last}", prefixlen=24)
        await pair.calls.settle()
        assert 1 <= pair.calls.count <= 5  # a slow machine may need longer than one pause for twenty


@isolated
async def test_news_that_were_lost_count_as_a_change_and_later_ones_still_arrive() -> None:
    async with a_pair_of_links(receive_buffer_bytes=1) as pair:
        before = pair.changes.overruns
        busy = [sys.executable, "-c", ADD_MANY, str(pair.near)]
        subprocess.run(busy, check=True)  # noqa: ASYNC221  (the event loop is to stand still meanwhile)
        await pair.calls.next()
        assert pair.changes.overruns == before + 1
        await pair.calls.settle()
        await pair.ip.link("set", index=pair.far, state="down")
        await pair.calls.next()
