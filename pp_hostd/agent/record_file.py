"""Small files of records: written whole, or a sentence says why not; set aside when they can't be relied on."""

from __future__ import annotations

import os
from typing import Callable, TypeVar

from pp_hostd.files import FileError, read_whole, write_whole
from pp_hostd.model.record import Unreadable

Sentences = tuple[str, ...]
Record = TypeVar("Record")


def write(path: str, text: str, *, durable: bool = True) -> str:
    """Replace the file, and make its directory if need be; the sentence says why that failed."""
    try:
        directory = os.path.dirname(path)
        if not os.path.isdir(directory):  # makedirs alone would ask three times, at each proof
            os.makedirs(directory, 0o700, exist_ok=True)
        write_whole(path, text.encode(), durable=durable)
    except FileError as error:
        return str(error)
    except OSError as error:
        return f"{path}: can't be written ({error.strerror})"
    return ""


def set_aside(path: str, reason: str) -> str:
    """Rename what can't be relied on, over what was set aside before; the sentence is for the journal."""
    aside = f"{path}.corrupt"
    try:
        os.rename(path, aside)
    except OSError as error:
        return f"{reason}; the agent ignores it, and can't rename it ({error.strerror})"
    return f"{reason}; the agent ignores it, and has renamed it to {aside}"


def load_record(
    path: str, limit_bytes: int, parse: Callable[[bytes], Record | Unreadable | None]
) -> tuple[Record | None, Sentences]:
    """Returns the record, None if none. Sets a file aside that can't be relied on, and says so in a sentence."""
    if not os.path.lexists(path):
        return None, ()
    try:
        parsed = parse(read_whole(path, limit_bytes))
    except FileError as error:
        return None, (set_aside(path, str(error)),)
    if isinstance(parsed, Unreadable):
        return None, (set_aside(path, f"{path}: {parsed}"),)
    return parsed, ()
