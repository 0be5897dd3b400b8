"""Watchdogs as files that answer the real ioctls: a small FUSE file system, spoken over /dev/fuse without a library.

Start it inside a user and mount namespace of your own (`unshare -Urm`, or tests.harness.isolated), as a process:

    python -m tests.harness.fuse_watchdog MOUNTPOINT RECORD [DEVICES [COMMAND]]

It mounts on the directory MOUNTPOINT, prints "ready" and serves until it is killed or unmounted. Only processes of its
user namespace, or of one below, can use the files. DEVICES is JSON, by file name the fields of `Behaviour` that differ
from its defaults; `{"watchdog": {}}` if left out. Every event is appended to RECORD as a line of JSON with the time
(`at`, CLOCK_BOOTTIME), the `device` and the `event`: open, settimeout, feed, magic, disabled, close, fired. A device
that was armed and not fed for its timeout records `fired` and then runs COMMAND in a shell, say `kill -9 123`.

Where FUSE differs from the kernel: the files are no character devices and have no entry in sysfs; KEEPALIVE needs a
buffer; and SETOPTIONS arrives without its value, so it is taken as the only one we use, DISABLECARD.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import select
import stat
import struct
import subprocess
import sys
from typing import Any, Callable

from tests.harness.watchdog_device import Behaviour, Device, Refused, now

LOOKUP, FORGET, GETATTR, SETATTR, OPEN, WRITE, STATFS, RELEASE = 1, 2, 3, 4, 14, 16, 17, 18
FLUSH, INIT, INTERRUPT, DESTROY, IOCTL, BATCH_FORGET = 25, 26, 36, 38, 39, 42
UNANSWERED = (FORGET, BATCH_FORGET, INTERRUPT)
IN_HEADER, OUT_HEADER = struct.Struct("<IIQQIIIHH"), struct.Struct("<IiQ")
INIT_OUT = struct.Struct("<IIIIHHIIHHIIH22x")
ATTRIBUTES = struct.Struct("<6Q10I")
MAX_WRITE_BYTES = 4096
FOPEN_DIRECT_IO, FOPEN_NONSEEKABLE = 1, 4
MS_NOSUID, MS_NODEV = 2, 4
ROOT_NODE = 1


class FileSystem:
    """A directory of devices: requests of the kernel in, answers out."""

    def __init__(self, devices: dict[str, Device]) -> None:
        self.devices = devices
        self._nodes = dict(enumerate(devices.values(), ROOT_NODE + 1))
        self._numbers = dict(zip(devices, self._nodes))

    def answer(self, opcode: int, node: int, pid: int, body: bytes) -> bytes:
        if opcode == INIT:
            major, minor, readahead = struct.unpack_from("<III", body)
            return INIT_OUT.pack(major, min(minor, 31), readahead, 0, 12, 9, MAX_WRITE_BYTES, 1, 1, 0, 0, 0, 0)
        if opcode == LOOKUP:
            return self._lookup(body.rstrip(b"\0").decode())
        if opcode in (GETATTR, SETATTR):
            return struct.pack("<QII", 1, 0, 0) + attributes(node)
        if opcode == STATFS:
            return bytes(80)
        if opcode == DESTROY:
            return b""
        if node in self._nodes:
            return self._on_device(self._nodes[node], opcode, pid, body)
        raise Refused(errno.ENOSYS)

    def _lookup(self, name: str) -> bytes:
        if name not in self._numbers:
            raise Refused(errno.ENOENT)
        node = self._numbers[name]
        return struct.pack("<QQQQII", node, 0, 1, 1, 0, 0) + attributes(node)

    def _on_device(self, device: Device, opcode: int, pid: int, body: bytes) -> bytes:
        if opcode == OPEN:
            device.open(pid)
            return struct.pack("<QII", 0, FOPEN_DIRECT_IO | FOPEN_NONSEEKABLE, 0)
        if opcode == WRITE:
            (size,) = struct.unpack_from("<I", body, 16)
            device.write(body[40 : 40 + size])
            return struct.pack("<II", size, 0)
        if opcode == IOCTL:
            command, _argument, in_bytes = struct.unpack_from("<IQI", body, 12)
            return struct.pack("<iIII", 0, 0, 0, 0) + device.ioctl(command, body[32 : 32 + in_bytes])
        if opcode == RELEASE:
            device.close()
        elif opcode != FLUSH:
            raise Refused(errno.ENOSYS)
        return b""


def attributes(node: int) -> bytes:
    mode = stat.S_IFDIR | 0o755 if node == ROOT_NODE else stat.S_IFREG | 0o666
    return ATTRIBUTES.pack(node, 0, 0, 0, 0, 0, 0, 0, 0, mode, 1, os.getuid(), os.getgid(), 0, 4096, 0)


def mount(mountpoint: str) -> int:
    """The descriptor of a new FUSE file system; the kernel wants it opened in the namespace that mounts."""
    fuse = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    options = f"fd={fuse},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"watchdogs", os.fsencode(mountpoint), b"fuse", MS_NOSUID | MS_NODEV, options.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"{mountpoint}: FUSE can't be mounted; is this a user and mount namespace?")
    return fuse


def serve(fuse: int, devices: dict[str, Device], when_fired: str) -> None:
    """Answer until unmounted. Deadlines go before requests that wait: what comes late is late, as with hardware."""
    file_system = FileSystem(devices)
    poll = select.poll()
    poll.register(fuse, select.POLLIN)
    while True:
        until_seconds = min(device.fires_at for device in devices.values()) - now()
        ready = poll.poll(max(0.0, until_seconds * 1000) if until_seconds != float("inf") else None)
        for device in devices.values():
            if now() >= device.fires_at:
                device.fire()
                if when_fired:
                    subprocess.Popen(["sh", "-c", when_fired])
        if ready and not answer_one(fuse, file_system):
            return


def answer_one(fuse: int, file_system: FileSystem) -> bool:
    """Read a request and answer it; False when the file system has gone."""
    try:
        request = os.read(fuse, 65536)
    except OSError as error:
        # The process that asked was killed before we read its request, which is gone with it; else we were unmounted.
        return error.errno in (errno.ENOENT, errno.EAGAIN)
    _, opcode, unique, node, _, _, pid, _, _ = IN_HEADER.unpack_from(request)
    if opcode in UNANSWERED:
        return True
    try:
        number, body = 0, file_system.answer(opcode, node, pid, request[IN_HEADER.size :])
    except Refused as refused:
        number, body = refused.number, b""
    with contextlib.suppress(FileNotFoundError):  # whoever asked was killed meanwhile
        os.write(fuse, OUT_HEADER.pack(OUT_HEADER.size + len(body), -number, unique) + body)
    return True


def recorder(path: str, device: str) -> Callable[..., None]:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def record(event: str, **details: Any) -> None:
        line = {"at": now(), "device": device, "event": event, **details}
        os.write(descriptor, json.dumps(line).encode() + b"\n")

    return record


def main(mountpoint: str, record: str, devices: str = '{"watchdog": {}}', when_fired: str = "") -> None:
    behaviours = {name: Behaviour(**fields) for name, fields in json.loads(devices).items()}
    fuse = mount(mountpoint)
    print("ready", flush=True)
    serve(fuse, {name: Device(how, recorder(record, name)) for name, how in behaviours.items()}, when_fired)


if __name__ == "__main__":
    main(*sys.argv[1:])
