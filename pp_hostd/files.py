"""Reading and writing files as a whole, without hanging, surprises or halves."""

from __future__ import annotations

import contextlib
import os
import stat

from pp_hostd.errors import UserError

KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a character device"),
    (stat.S_ISBLK, "a block device"),
)


class FileError(UserError):
    """A file that can't be read or written as a whole; the message begins with its path."""


def read_whole(path: str, limit_bytes: int) -> bytes:
    """The file's bytes. Looks before it opens: opening alone would arm a watchdog, or wait for a FIFO's other end."""
    try:
        _refuse_other_kinds(path, os.stat(path).st_mode)
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            _refuse_other_kinds(path, os.fstat(descriptor).st_mode)
            data = file.read(limit_bytes + 1)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: {_why(path, error)}") from None
    if len(data) > limit_bytes:
        raise FileError(f"{path}: is larger than {limit_bytes // 1024} KiB, the most that is read")
    return data


def handed_over(path: str) -> str:
    """Where systemd put a copy of this file for this process alone (LoadCredential=, of the same name); else itself."""
    directory = os.environ.get("CREDENTIALS_DIRECTORY", "")
    copy = os.path.join(directory, os.path.basename(path))
    try:
        return copy if directory and os.stat(copy).st_size > 1 else path  # a lone "-" says that there is none
    except OSError:
        return path


def write_whole(path: str, data: bytes, *, durable: bool = True, mode: int = 0o600) -> None:
    """Replace the file, readable by its owner alone unless `mode` says more: whoever reads it, also after a crash,
    finds the old or the new.

    Without `durable` a crash of the whole machine may lose the new one, and the disk is not waited for.
    """
    new = f"{path}.new"
    try:
        write_new(new, data, durable=durable, mode=mode)
        os.rename(new, path)
        if durable:
            _sync_directory(os.path.dirname(path) or ".")
    except (OSError, ValueError) as error:
        with contextlib.suppress(OSError, ValueError):
            os.unlink(new)  # half a file helps nobody, least of all on a disk that is full
        raise FileError(f"{path}: can't be written ({getattr(error, 'strerror', None) or error})") from None


def write_new(path: str, data: bytes, *, durable: bool = True, mode: int = 0o600) -> None:
    """Write a file that nobody reads before a rename gives it its name: a crash may leave half of it. OSError, or
    ValueError for an impossible path, if that fails."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        os.fchmod(descriptor, mode)  # one that a crash left may be anything
        _write_all(descriptor, data)
        if durable:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _sync_directory(path: str) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _refuse_other_kinds(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((name for is_kind, name in KINDS if is_kind(mode)), "not a regular file")
        raise FileError(f"{path}: is {kind}; a regular file is needed")


def _why(path: str, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        return "points to a file that does not exist" if os.path.islink(path) else "does not exist"
    if isinstance(error, PermissionError):
        return f"can't be read by user id {os.geteuid()} (permission denied)"
    return f"can't be read ({getattr(error, 'strerror', None) or error})"
