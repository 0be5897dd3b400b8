"""All that cases need, in the cache before they begin: tools, packages, snapshots. python -m tests.machines.prepare"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

from pp_hostd.errors import UserError
from tests.machines.debian import NEWEST, OLDEST
from tests.machines.package import package
from tests.machines.snapshot import snapshot
from tests.machines.tools import install_tools


def prepare() -> None:
    """Side by side, since much of it is waiting."""
    install_tools()
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda suite: snapshot(suite, package()), (NEWEST, OLDEST)))
    package(release=2)


def main() -> None:
    started = time.monotonic()
    try:
        prepare()
    except UserError as error:
        sys.exit(str(error))
    print(f"machines: prepared in {time.monotonic() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()
