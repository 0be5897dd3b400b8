"""Getting hold of a watchdog: the device of the settings, else softdog, else software alone (rule 8)."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import subprocess
from collections.abc import Sequence
from typing import Union

from pp_hostd.agent.act import watchdog_device
from pp_hostd.agent.act.watchdog_device import (
    SOFTDOG_IDENTITY,
    Device,
    Done,
    Outcome,
    Trouble,
    Unusable,
    recognize,
    unfit,
)
from pp_hostd.frozen import frozen
from pp_hostd.model.promise import WatchdogKind

MODPROBE_SECONDS = 10.0
POLL_SECONDS = 0.02
INHERITED = "the watchdog from systemd's store"


@frozen
class Places:
    """Where the kernel shows its watchdogs, and what loads softdog."""

    sysfs: str = watchdog_device.SYSFS
    devices: str = "/dev"
    modprobe: Sequence[str] = ("modprobe", "softdog")


HOST = Places()


class SoftwareOnly:
    """No watchdog at all: only this program can reset the host, and a hung one can't."""

    kind = WatchdogKind.SOFTWARE_ONLY
    identity = "none"

    def __init__(self, timeout_seconds: float, troubles: tuple[str, ...]) -> None:
        self.timeout_seconds = timeout_seconds
        self.troubles = troubles

    def fileno(self) -> int | None:
        return None

    def feed(self) -> Outcome:
        return Done.DONE

    def set_timeout(self, seconds: int) -> Outcome:
        self.timeout_seconds = float(seconds)
        return Done.DONE

    def shorten(self) -> Outcome:
        return Done.DONE

    def time_left_seconds(self) -> int | None:
        return None

    def boot_status(self) -> int | None:
        return None

    def disarm(self) -> Outcome:
        return Done.DONE


Watchdog = Union[Device, SoftwareOnly]


async def acquire(device: str, timeout_seconds: int, least_seconds: float, places: Places = HOST) -> Watchdog:
    """The best watchdog that can be had, armed, with its real timeout, and in `troubles` why it is no better one.

    Opening one feeds it, so this is only for when a finished judgement would feed (rule 2). One that is unfit, and
    can't be stopped either, is what there is: left alone it would reset the host.
    """
    found = _open_fit(device, timeout_seconds, least_seconds)
    if not isinstance(found, Trouble):
        return found
    softdog = await _softdog(device, places)
    soft = softdog if isinstance(softdog, Trouble) else _open_fit(softdog, timeout_seconds, least_seconds)
    if isinstance(soft, Trouble):
        return SoftwareOnly(float(timeout_seconds), (found.sentence, soft.sentence))
    soft.troubles = (found.sentence, *soft.troubles)
    return soft


def adopt(descriptor: int) -> Device | Trouble:
    """The watchdog whose descriptor systemd kept over our restart: armed, and not fed by this (rule 2)."""
    return recognize(descriptor, INHERITED)


def _open_fit(path: str, timeout_seconds: int, least_seconds: float) -> Device | Trouble:
    device = _open(path)
    if isinstance(device, Trouble):
        return device
    trouble = unfit(device, timeout_seconds, least_seconds)
    if trouble is None:
        return device
    stopped = device.disarm()
    if stopped is Done.DONE:
        return trouble
    assert isinstance(stopped, Trouble)
    device.troubles = (trouble.sentence, f"{stopped.sentence}, so it is used as it is")
    return device


def _open(path: str) -> Device | Trouble:
    try:
        kind = watchdog_device.wrong_kind(path)
        if kind is not None:
            return Trouble(Unusable.NOT_A_WATCHDOG, f"{path} is not a watchdog ({kind})")
        return recognize(os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC), path)
    except OSError as error:
        return _why_not(path, error)


def _why_not(path: str, error: OSError) -> Trouble:
    if error.errno in (errno.ENOENT, errno.ENODEV, errno.ENXIO, errno.ENOTDIR):
        return Trouble(Unusable.NO_DEVICE, f"{path} does not exist or has no driver")
    if error.errno in (errno.EACCES, errno.EPERM):
        return Trouble(Unusable.NO_PERMISSION, f"{path} can't be opened by user id {os.geteuid()} (permission denied)")
    if error.errno == errno.EBUSY:
        holder = " and ".join(watchdog_device.holders(path)) or "another process"
        hint = "; for systemd, set RuntimeWatchdogSec=0" if holder.startswith("systemd ") else ""
        return Trouble(Unusable.BUSY, f"{path} is busy: {holder} holds it{hint}")
    return Trouble(Unusable.FAILED, f"{path} can't be opened ({error.strerror})")


async def _softdog(tried: str, places: Places) -> str | Trouble:
    """The device of softdog, which is loaded if need be: while nothing is armed, so a slow modprobe harms nobody."""
    name = watchdog_device.with_identity(SOFTDOG_IDENTITY, places.sysfs)
    # One that is loaded only now may well get the name that was tried: it was free, or there would be a device.
    if name is not None and watchdog_device.entry_of(tried, places.sysfs) == os.path.join(places.sysfs, name):
        return Trouble(Unusable.NO_DEVICE, f"there is no softdog but {tried}")
    said = ""
    if name is None:
        said = await _modprobe(places.modprobe)
        name = watchdog_device.with_identity(SOFTDOG_IDENTITY, places.sysfs)
    if name is None:
        return Trouble(
            Unusable.NO_DEVICE, f"softdog is not there ({said or 'modprobe loaded it, sysfs does not show it'})"
        )
    return os.path.join(places.devices, name)


async def _modprobe(command: Sequence[str]) -> str:
    """Why it failed; empty if none."""
    try:
        child = subprocess.Popen(  # noqa: ASYNC220  (asyncio's own would start a thread on Python 3.9 to 3.11)
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
    except OSError as error:
        return f"{command[0]} can't be run: {error.strerror}"
    for _ in range(int(MODPROBE_SECONDS / POLL_SECONDS)):
        if child.poll() is not None:
            break
        await asyncio.sleep(POLL_SECONDS)
    status = child.poll()
    child.kill()
    assert child.stderr is not None
    with child.stderr as pipe:
        os.set_blocking(pipe.fileno(), False)
        said = (pipe.read(512) or b"").decode("utf-8", "replace").strip()
    with contextlib.suppress(subprocess.TimeoutExpired):
        child.wait(0.1)
    if status == 0:
        return ""
    ended = f"did not end within {MODPROBE_SECONDS:g} s" if status is None else f"ended with status {status}"
    return said or f"{' '.join(command)} {ended}"
