"""The gate between a boot and its workloads (rule 6): who holds the kubelet, and whether it was let go in this boot.

Two files in /run. `gate-held` says in which boot the kubelet was held from the start: the holder writes it, a process
that the kubelet's unit waits for, or the daemon where a taint is the gate. `gate-open` says in which boot the gate was
opened, and why: the daemon writes it, or a person's `pp-hostd gate open --offline`.
A holder locks `gate.lock`: the lock shows that the holder lives. Damage never opens the gate. After damage nobody may
state "gate closed", which is evidence that nothing was started (rule 11), unless a holder lives.
"""

from __future__ import annotations

import fcntl
import os

from pp_hostd.agent.record_file import Sentences, load_record, write
from pp_hostd.model.boot_commitments import Gate
from pp_hostd.model.record import MAX_RECORD_CHARACTERS, OPAQUE, Unreadable, document, read, render


class GateFiles:
    """The files through which the holder and the daemon inform each other."""

    def __init__(self, run_directory: str) -> None:
        self._held = os.path.join(run_directory, "gate-held")
        self._open = os.path.join(run_directory, "gate-open")
        self._lock = os.path.join(run_directory, "gate.lock")
        self._holding: int | None = None

    def state(self, boot: str) -> tuple[Gate, Sentences]:
        """How the gate stands in this boot, and what had to be set aside."""
        opened, open_troubles = load_record(self._open, MAX_RECORD_CHARACTERS, _parse_boot)
        held, held_troubles = load_record(self._held, MAX_RECORD_CHARACTERS, _parse_boot)
        troubles = open_troubles + held_troubles
        if opened == boot:  # once open in a boot, it stays open
            return Gate.OPEN, troubles
        closed = self._is_held_now()
        if not os.path.lexists(f"{self._open}.corrupt"):  # perhaps it was open: only who still holds can know
            closed = closed or held == boot
        return (Gate.CLOSED if closed else Gate.ABSENT), troubles

    def open(self, boot: str, reason: str) -> str:
        """Let the kubelet start. The sentence says why that failed."""
        return write(self._open, render({"boot": boot, "reason": reason}), durable=False)

    def is_open(self, boot: str) -> bool:
        opened, _ = load_record(self._open, MAX_RECORD_CHARACTERS, _parse_boot)
        return opened == boot

    def hold_by_taint(self, boot: str) -> str:
        """State that the leader's taint is in the kubelet's way, from the first run in this boot on."""
        return write(self._held, render({"boot": boot}), durable=False)

    def hold(self, boot: str) -> str:
        """State that the kubelet is held, for as long as this process lives. The sentence says why that failed."""
        try:
            if self._holding is None:
                self._holding = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
                fcntl.flock(self._holding, fcntl.LOCK_SH)
        except OSError as error:
            return f"{self._lock}: can't be locked ({error.strerror})"
        return write(self._held, render({"boot": boot}), durable=False)

    def _is_held_now(self) -> bool:
        try:
            descriptor = os.open(self._lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False


def _parse_boot(text: bytes) -> str | Unreadable:
    return read("the gate's record", _boot, text)


def _boot(text: bytes) -> str:
    return document(text, MAX_RECORD_CHARACTERS).text("boot", OPAQUE)
