"""The agent's state in two copies, so that a damaged one leaves another: the last judgement's, and the one before it.

The older copy gains nothing: its proof is older, and T counts from that proof (rules 2 and 6). What the host has bound
itself to (its promises, its watchdog, a decision to reset, ids) is the same in both: whenever that changes, both are
written.
"""

from __future__ import annotations

import contextlib
import os

from pp_hostd.agent.record_file import Sentences, load_record, write
from pp_hostd.agent.saved_state import MAX_CHARACTERS, SavedState, parse_saved_state
from pp_hostd.files import FileError, read_whole
from pp_hostd.model.boot_commitments import Gate
from pp_hostd.model.record import Unreadable


class StateCopies:
    """The file `state` and, beside it, `state.before`."""

    def __init__(self, path: str) -> None:
        self._path, self._before, self._next = path, f"{path}.before", f"{path}.next"
        self._saved, self._commitments = "", ""

    def save(self, kept: SavedState) -> str:
        """Keep this, unless it is what was kept last. Returns why that failed; empty if it did not."""
        text = kept.render()
        if text == self._saved:
            return ""
        commitments = kept.what_binds()
        bound_as_before = commitments == self._commitments
        trouble = self._follow(text) if bound_as_before else self._write_both(text)
        if trouble:
            self._overwrite_both(text.encode(), bound_as_before)
        self._saved, self._commitments = ("", "") if trouble else (text, commitments)
        return trouble

    def load(self, boot: str, gate: Gate, now: float) -> tuple[SavedState | None, Sentences]:
        """What was kept in this boot, and what had to be set aside."""

        def parse(text: bytes) -> SavedState | Unreadable | None:
            return parse_saved_state(text, boot, gate, now)

        kept, told = load_record(self._path, MAX_CHARACTERS, parse)
        if kept is not None:
            return kept, told
        before, before_told = load_record(self._before, MAX_CHARACTERS, parse)
        if before is not None and told:
            before_told = (*before_told, f"{self._before}: the copy of the judgement before counts instead")
        return before, told + before_told

    def peek(self, boot: str, now: float) -> SavedState | None:
        """What was kept in this boot. Sets nothing aside: `load` does, and says so."""
        for path in (self._path, self._before):
            with contextlib.suppress(FileError):
                kept = parse_saved_state(read_whole(path, MAX_CHARACTERS), boot, Gate.ABSENT, now)
                if isinstance(kept, SavedState):
                    return kept
        return None

    def _follow(self, text: str) -> str:
        """The last copy becomes the older one. In between, a crash leaves that one alone, and whole."""
        trouble = write(self._next, text, durable=False)
        if trouble:
            return trouble
        try:
            with contextlib.suppress(FileNotFoundError):
                os.rename(self._path, self._before)
            os.rename(self._next, self._path)
        except OSError as error:
            return f"{self._path}: can't be written ({error.strerror})"
        return ""

    def _write_both(self, text: str) -> str:
        trouble = write(self._path, text, durable=False)
        if not trouble and write(self._before, text, durable=False):
            self._drop_before()  # better no older copy than one that lacks a promise
        return trouble

    def _overwrite_both(self, data: bytes, bound_as_before: bool) -> None:
        """Where no new file finds room, the old ones have some: a proof that is not kept would be one too old at the
        next start, and a reset without need. One after the other, so that a crash leaves one of them whole."""
        if not _overwrite(self._before, data) and not bound_as_before:
            self._drop_before()
        _overwrite(self._path, data)

    def _drop_before(self) -> None:
        with contextlib.suppress(OSError):
            os.unlink(self._before)


def _overwrite(path: str, data: bytes) -> bool:
    """Returns whether the data found room in the file, and now is all that is in it."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        if len(data) > os.fstat(descriptor).st_blocks * 512:
            return False
        os.write(descriptor, data)
        os.ftruncate(descriptor, len(data))
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
