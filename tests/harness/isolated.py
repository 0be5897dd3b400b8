"""Running a test in namespaces of its own: root there, alone there, and nothing it does reaches the machine.

`@isolated` is for tests that need the rights of root, a network of their own, or a watchdog. The function runs as
process 1 of a new pid namespace, in new user, mount, network and pid namespaces with a fresh /proc; what it raises is
raised in the test run. So reboot(2) ends that process and nothing else.
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import gc
import inspect
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any, Callable

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x20000, 0x10000000, 0x20000000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000
PR_SET_PDEATHSIG = 1
SYSRQ = "/proc/sysrq-trigger"
LIBC = ctypes.CDLL(None, use_errno=True)
FAILED = 99


def isolated(test: Callable[..., Any]) -> Callable[..., None]:
    """Run the decorated test isolated; its parameters are those that pytest sees."""

    def run(**arguments: Any) -> None:
        status, trace = run_isolated(functools.partial(test, **arguments))
        assert status == 0, f"in its namespaces the test ended with {status}:\n{trace}"

    run.__signature__ = inspect.signature(test)  # type: ignore[attr-defined]
    run.__name__, run.__doc__ = test.__name__, test.__doc__
    return run


def run_isolated(function: Callable[[], Any]) -> tuple[int, str]:
    """How process 1 ended (0, a status, or minus a signal) and the traceback of what it raised, if it did."""
    reader, writer = os.pipe()
    uid, gid = os.getuid(), os.getgid()
    outer = os.fork()
    if outer == 0:
        _between(function, writer, uid, gid)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        trace = pipe.read()
    _, status = os.waitpid(outer, 0)
    exit_status = os.waitstatus_to_exitcode(status)
    return (exit_status - 256 if exit_status > 128 else exit_status), trace


def _between(function: Callable[[], Any], writer: int, uid: int, gid: int) -> None:
    """The process that makes the namespaces: it is not in the pid namespace itself, its child is."""
    _check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
    _check(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET))
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {uid} 1"), ("gid_map", f"0 {gid} 1")):
        Path(f"/proc/self/{name}").write_text(line)
    inner = os.fork()
    if inner == 0:
        _inside(function, writer)
    os.close(writer)
    _, status = os.waitpid(inner, 0)
    os._exit(os.waitstatus_to_exitcode(status) % 256)


def _inside(function: Callable[[], Any], writer: int) -> None:
    unraisable: list[Any] = []
    sys.unraisablehook = unraisable.append
    try:
        _check(LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        _check(LIBC.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None))
        _check(LIBC.mount(b"proc", b"/proc", b"proc", 0, None))
        if os.path.exists(SYSRQ):  # which works in any namespace, for all of the machine, if its root is mapped to ours
            _check(LIBC.mount(b"/dev/null", SYSRQ.encode(), None, MS_BIND, None))
        result = function()
        if inspect.iscoroutine(result):
            asyncio.run(result)
        gc.collect()
        assert not unraisable, unraisable
    except BaseException:
        os.write(writer, traceback.format_exc().encode())
        os._exit(FAILED)
    os._exit(0)


def _check(result: int) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
