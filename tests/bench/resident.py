"""A process that loads something, locks its memory, works, and reports what it weighs. Run by the memory bench."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import json
import os
import ssl
import sys

import h11

MCL_CURRENT, MCL_FUTURE = 1, 2
GETS = 1000


def lock_memory() -> None:
    library = ctypes.CDLL(None, use_errno=True)
    if library.mlockall(MCL_CURRENT | MCL_FUTURE) != 0:
        reason = os.strerror(ctypes.get_errno())
        sys.exit(f"mlockall was refused ({reason}): run as root, or raise the limit on locked memory (ulimit -l)")


def weigh() -> dict[str, int]:
    gc.collect()
    with open("/proc/self/status") as file:
        fields = dict(line.split(":", 1) for line in file)
    return {"resident_kb": int(fields["VmRSS"].split()[0]), "threads": int(fields["Threads"])}


async def bare() -> None:
    """asyncio, ssl, json and h11 are loaded, and have each been touched."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    h11.Connection(h11.CLIENT)


async def client(kubeconfig: str) -> None:
    """A thousand reads over TLS."""
    from pp_hostd import config  # noqa: F401  (a daemon has it loaded)
    from pp_hostd.kube import watch  # noqa: F401
    from pp_hostd.kube.client import ApiClient
    from pp_hostd.kube.kubeconfig import load
    from pp_hostd.kube.resources import NODES

    api = ApiClient(load(kubeconfig), deadline_seconds=10)
    for _ in range(GETS):
        await api.get(NODES, "bench")
    api.close()


if __name__ == "__main__":
    lock_memory()
    asyncio.run(client(sys.argv[2]) if sys.argv[1] == "client" else bare())
    print(json.dumps(weigh()))
