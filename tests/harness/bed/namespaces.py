"""The system calls that make a host out of a process, and the mounts that keep it off the real machine.

Root of a user namespace that was made by root still owns root's files: it could write /proc/sysrq-trigger, /sys and the
devices. So the hosts see none of them.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import traceback
from collections.abc import Collection
from pathlib import Path
from typing import Callable, NoReturn

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWPID, CLONE_NEWNET = 0x20000000, 0x40000000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC = 1, 32, 4096, 16384
MNT_DETACH = 2
PR_SET_PDEATHSIG = 1
DEVICES = ("null", "zero", "full", "random", "urandom", "fuse")
LIBC = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave namespaces for new ones; a new pid namespace takes in the next child, as its process 1."""
    _check(LIBC.unshare(flags), "unshare")


def set_hostname(name: str) -> None:
    _check(LIBC.sethostname(name.encode(), len(name.encode())), name)


def die_with_parent() -> None:
    _check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL), "prctl")


def or_exit(run: Callable[[], object]) -> NoReturn:
    """The life of a forked child: it never returns into its parent's code."""
    try:
        run()
    except BaseException:
        traceback.print_exc()
    sys.stderr.flush()
    os._exit(1)


def mount(kind: str, target: str, options: str = "") -> None:
    """Mount a file system of this kind."""
    _check(LIBC.mount(kind.encode(), target.encode(), kind.encode(), 0, options.encode()), target)


def bind(source: str, target: str) -> None:
    """Show `source`, with all that is mounted below it, at `target`."""
    _check(LIBC.mount(source.encode(), target.encode(), None, MS_BIND | MS_REC, None), target)


def make_read_only(target: str) -> None:
    """Whatever is mounted there; what is open for writing stays so."""
    bind(target, target)
    _check(LIBC.mount(None, target.encode(), None, MS_BIND | MS_REMOUNT | MS_RDONLY, None), target)


def keep_only(descriptors: Collection[int]) -> None:
    """Close what a forked child inherited, but for the standard three and these."""
    for descriptor in map(int, os.listdir("/proc/self/fd")):
        if descriptor > 2 and descriptor not in descriptors:
            with contextlib.suppress(OSError):  # the listing's own is closed already
                os.close(descriptor)


def hide_machine(directory: Path) -> None:
    """For the whole bed: empty /sys and /var/lib, no devices but the harmless, and an /etc with room for ours."""
    real_dev, real_etc = directory / "dev", directory / "etc"
    for real, shown in ((real_dev, "/dev"), (real_etc, "/etc")):
        real.mkdir()
        bind(shown, str(real))
        mount("tmpfs", shown)
    for name in DEVICES:
        Path("/dev", name).touch()
        bind(str(real_dev / name), f"/dev/{name}")
    Path("/dev/watchdog").touch()
    Path("/dev/fd").symlink_to("/proc/self/fd")
    _check(LIBC.umount2(str(real_dev).encode(), MNT_DETACH), str(real_dev))
    for real in real_etc.iterdir():
        Path("/etc", real.name).symlink_to(os.readlink(real) if real.is_symlink() else real)
    mount("tmpfs", "/sys")
    mount("tmpfs", "/var/lib")
    for path in ("/etc/pp-hostd", "/var/lib/pp-hostd"):
        os.mkdir(path)


def mount_proc(boot_id: Path, sysrq: Path) -> None:
    """A /proc for this pid namespace: with a boot id of its own, and no way to the machine's kernel."""
    mount("proc", "/proc")
    bind(str(boot_id), "/proc/sys/kernel/random/boot_id")
    if os.path.exists("/proc/sysrq-trigger"):  # not every kernel has it
        bind(str(sysrq), "/proc/sysrq-trigger")
    make_read_only("/proc/sys")


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), what)
