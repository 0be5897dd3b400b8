"""Debian's own sender of kdump's messages is heard by the leader's listener."""

from __future__ import annotations

import asyncio
import subprocess

import pytest

from tests.agent.objects import until
from tests.leader.fence.kdump_site import Site

SENDER = "/usr/libexec/fence-agents/fence_kdump_send"
SEND_SECONDS = 60


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_what_a_crashed_host_sends_is_heard(address: str) -> None:
    async def case() -> None:
        site = Site()
        with site.listening() as listener:
            sends = [SENDER, f"--ipport={site.port}", "--count=2", "--interval=1", address]
            subprocess.run(sends, check=True, timeout=SEND_SECONDS)  # noqa: ASYNC221
            await until(lambda: listener.seen, "the sender is heard")
            await site.takes()
            assert listener.seen[address] == site.now
            assert listener.ignored == 1, "all that the sender sends is a message"

    asyncio.run(case())
