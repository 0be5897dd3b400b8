"""The embedded API as a program: `python -m pp_hostd.embedded`, for the demo and the tests.

It prints one line of JSON with its URL when it is ready. SIGTERM or Ctrl-C ends it; SIGUSR1 makes it forget the past.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import time
import uuid

from pp_hostd.embedded import access, server
from pp_hostd.embedded.api import Api
from pp_hostd.embedded.garbage import collect_garbage
from pp_hostd.embedded.server import serving
from pp_hostd.embedded.store import Store
from pp_hostd.errors import UserError

COLLECT_SECONDS = 0.1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m pp_hostd.embedded", description=__doc__)
    parser.add_argument("--cert", required=True, help="the server's certificate, PEM")
    parser.add_argument("--key", required=True, help="its private key, PEM")
    parser.add_argument("--client-ca", required=True, help="who signs the certificates of clients, PEM")
    parser.add_argument("--users", required=True, help="tokens and rules, JSON: see pp_hostd/embedded/access.py")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; 0, the default, picks a free one")
    parser.add_argument("--controllers", action="store_true", help="collect garbage as a controller-manager would")
    return parser.parse_args()


async def _run(arguments: argparse.Namespace) -> None:
    store = Store(time.time, lambda: str(uuid.uuid4()))
    api = Api(store, access.load(arguments.users))
    loop = asyncio.get_running_loop()
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loop.add_signal_handler(signal.SIGUSR1, store.compact)
    if arguments.controllers:
        _collect(loop, store, 0)
    context = server.tls_context(arguments.cert, arguments.key, arguments.client_ca)
    try:
        async with serving(api, context, arguments.port) as url:
            sys.stdout.write(json.dumps({"url": url}) + "\n")
            sys.stdout.flush()
            await ended.wait()
    except OSError as error:
        raise UserError(f"the API cannot be served: {error}", "Look at --port.") from None


def _collect(loop: asyncio.AbstractEventLoop, store: Store, seen: int) -> None:
    if store.revision != seen:
        collect_garbage(store)
    loop.call_later(COLLECT_SECONDS, _collect, loop, store, store.revision)


def main() -> None:
    """Serve until told to end."""
    try:
        asyncio.run(_run(_arguments()))
    except UserError as error:
        sys.exit(f"pp_hostd.embedded: {error}")


if __name__ == "__main__":
    main()
