"""Thousands of exchanges that all go wrong, and what they leave behind: a process of its own, measured from inside.

Arguments: a kubeconfig, how many laps, of how many exchanges each, and the URLs that they go to in turn.
Prints one JSON line: the figures after each lap.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import itertools
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from pp_hostd.kube.client import ApiClient
from pp_hostd.kube.kubeconfig import endpoint, load
from pp_hostd.kube.outcome import ApiError
from pp_hostd.kube.resources import NODES

AT_A_TIME = 200
DEADLINE_SECONDS = 0.3


async def one_after_the_other(turns: Iterator[ApiClient], outcomes: Counter[str]) -> None:
    for client in turns:
        try:
            await client.patch(NODES, "worker", {})
            outcomes["ok"] += 1
        except ApiError as error:
            outcomes[error.outcome.name] += 1


class Mallinfo(ctypes.Structure):
    """As glibc's malloc.h has it."""

    NAMES = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")
    _fields_ = tuple((name, ctypes.c_int) for name in NAMES)


def malloc_bytes() -> int:
    """Memory in use. Pages that malloc keeps for later do not count; a process's size counts them, and goes up and
    down."""
    mallinfo = ctypes.CDLL(None).mallinfo
    mallinfo.restype = Mallinfo
    found = mallinfo()
    return int(found.uordblks + found.hblkhd)


async def figures_after(clients: list[ApiClient], exchanges: int) -> dict[str, object]:
    outcomes: Counter[str] = Counter()
    turns = itertools.islice(itertools.cycle(clients), exchanges)
    await asyncio.gather(*(one_after_the_other(turns, outcomes) for _ in range(AT_A_TIME)))
    for client in clients:
        client.close()
    gc.collect()
    return {
        "malloc_bytes": malloc_bytes(),
        "python_blocks": sys.getallocatedblocks(),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": len(os.listdir("/proc/self/task")),
        "tasks": len(asyncio.all_tasks()),
        "outcomes": outcomes,
    }


async def main(path: str, laps: str, exchanges: str, *urls: str) -> None:
    kubeconfig = load(path)
    servers = {url: replace(kubeconfig, endpoints=(endpoint(url, "the test"),)) for url in urls}
    clients = {url: ApiClient(server, deadline_seconds=DEADLINE_SECONDS) for url, server in servers.items()}
    turns = [clients[url] for url in urls]
    print(json.dumps([await figures_after(turns, int(exchanges)) for _ in range(int(laps))]))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
