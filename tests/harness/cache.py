"""Where what takes long to build is kept from one run to the next; it gets there whole, and by one at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

UNUSED_DAYS = 30
"""A build that no run has used for so long is removed when the next one is made."""


def cache() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    cache = Path(os.environ.get("PP_HOSTD_CACHE") or Path(base) / "pp-hostd")
    cache.mkdir(parents=True, exist_ok=True)
    return cache


@contextlib.contextmanager
def lock(what: str, name: str = "lock") -> Iterator[None]:
    """Of those who build, one at a time."""
    with open(cache() / name, "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"{what}: another run is building it; waiting for that", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def whole_or_not_at_all(finished: Path) -> Iterator[Path]:
    """A new directory to fill, which becomes `finished` only when it is filled."""
    unfinished = Path(tempfile.mkdtemp(prefix=f"{finished.name}.unfinished-", dir=finished.parent))
    try:
        yield unfinished
    except BaseException:
        shutil.rmtree(unfinished)
        raise
    unfinished.rename(finished)


def remove_unused(kind: str) -> None:
    """Those whose directory begins so, and that nobody has used for long."""
    for directory in cache().glob(f"{kind}-*"):
        if time.time() - directory.stat().st_mtime > UNUSED_DAYS * 86400:
            shutil.rmtree(directory)
