"""The tools that these tests need, and a small Debian to install the packages in, made once and kept in the cache.

`python -m tests.packaging.root` gets all of it, with a word of what takes long.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from pp_hostd.errors import UserError
from tests.harness.cache import cache
from tests.packaging.ignition import build_translator

TOOLS = {
    "rpmbuild": "rpm",
    "rpmlint": "rpmlint",
    "systemd-nspawn": "systemd-container",
    "mmdebstrap": "mmdebstrap",
    "ignition-validate": "ignition",
    "man": "man-db",
    "unshare": "util-linux",
}
"""Programs, and the Debian packages that they are in."""
SUITE = "bookworm"
INSIDE = ("systemd", "systemd-sysv", "dbus", "python3", "rpm", "kmod", "openssl")


def root() -> Path:
    """The directory of the Debian, which must have been made: inside a test there is no time for it."""
    finished = _finished()
    if not finished.is_dir():
        raise UserError(f"there is no {finished}", "Run `make test-packages`, which makes it (minutes, once).")
    return finished


def get_tools() -> None:
    missing = sorted(package for program, package in TOOLS.items() if shutil.which(program) is None)
    if missing:
        print(f"packages: installing {', '.join(missing)}", flush=True)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", *missing]):
            subprocess.run(["apt-get", "--quiet=2", *command], env=environment, check=True, timeout=900)


def make_root() -> None:
    finished = _finished()
    if finished.is_dir():
        return
    print(f"packages: making {finished}, a Debian to install them in (minutes, once)", flush=True)
    with contextlib.ExitStack() as stack:
        unfinished = Path(tempfile.mkdtemp(prefix=f"{finished.name}.unfinished-", dir=finished.parent))
        stack.callback(shutil.rmtree, unfinished, ignore_errors=True)
        directory = unfinished / "root"
        command = ["mmdebstrap", "--quiet", "--variant=apt", f"--include={','.join(INSIDE)}", SUITE, str(directory)]
        subprocess.run(command, check=True, timeout=1800)
        directory.rename(finished)


def _finished() -> Path:
    key = hashlib.sha256(" ".join((SUITE, *INSIDE)).encode()).hexdigest()
    return cache() / f"container-{key[:16]}"


def main() -> None:
    if os.geteuid() != 0:
        sys.exit("make test-packages: containers take root. Try: sudo make test-packages")
    try:
        get_tools()
        make_root()
        build_translator()
    except (OSError, subprocess.SubprocessError, UserError) as error:
        sys.exit(f"make test-packages: {error}")


if __name__ == "__main__":
    main()
