"""The parts of guests that Debian's packages bring: a root file system for each release, and a kernel."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Callable

from pp_hostd.errors import UserError
from tests.harness.cache import cache, lock, remove_unused, whole_or_not_at_all
from tests.machines.architecture import HERE

NEWEST, OLDEST = "bookworm", "bullseye"
"""Debian's names; the oldest has Python 3.9. All boot the kernel of the newest."""
PACKAGES = "systemd,systemd-sysv,dbus,python3,iproute2,kmod,procps,rpm,kexec-tools,openssl"
UNWANTED = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")
KERNEL = f"linux-image-{HERE.debian}"
STEP_SECONDS = 1800


def root_tar(suite: str) -> Path:
    """A small system, as a tar."""
    leave_out = [f"--dpkgopt=path-exclude={pattern}" for pattern in UNWANTED]
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=apt", f"--include={PACKAGES}", *leave_out, suite]
    return kept("debian", [*command, HERE.debian], lambda new: run(*command, new / "root.tar")) / "root.tar"


def kernel_tree() -> Path:
    """The kernel's package and what it needs, unpacked and not installed."""
    command = ["mmdebstrap", "--quiet", "--mode=root", "--variant=extract", f"--include={KERNEL}", NEWEST]
    return kept("kernel", command, lambda new: run(*command, new / "tree")) / "tree"


def kept(kind: str, content: list[str], build: Callable[[Path], object]) -> Path:
    """The directory of that content in the cache, filled by `build` if there is none yet."""
    key = hashlib.sha256("\0".join(content).encode()).hexdigest()[:16]
    finished = cache() / f"{kind}-{key}"
    if not finished.is_dir():
        with lock(f"machines: {finished.name}", f"lock-{finished.name}"):
            if not finished.is_dir():
                print(f"machines: making {finished.name}", flush=True)
                with whole_or_not_at_all(finished) as new:
                    build(new)
                remove_unused(kind)
    os.utime(finished)
    return finished


def run(*command: str | Path) -> str:
    """A step; what it said is told if it fails."""
    argv = [str(part) for part in command]
    try:
        ran = subprocess.run(argv, capture_output=True, text=True, timeout=STEP_SECONDS)
    except subprocess.TimeoutExpired:
        raise UserError(f"machines: `{' '.join(argv)}` took longer than {STEP_SECONDS} s") from None
    if ran.returncode != 0:
        raise UserError(f"machines: `{' '.join(argv)}` failed with {ran.returncode}:", ran.stderr[-2000:])
    return ran.stdout
