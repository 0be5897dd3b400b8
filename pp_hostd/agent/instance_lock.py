"""The lock that one process of this host holds at a time: whoever has it may take the watchdog."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator

from pp_hostd.errors import UserError


@contextlib.contextmanager
def instance_lock(directory: str) -> Iterator[None]:
    """Two daemons would share a watchdog and a promise."""
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        descriptor = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UserError(f"{error.filename}: can't be made ({error.strerror})", "It runs as root, by systemd.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UserError("pp-hostd runs already on this host", "See: systemctl status pp-hostd") from None
    finally:
        os.close(descriptor)
