"""The agent's files: in /run what a restarted daemon of this boot must know, in /var/lib what the next boot must.

The agent writes to /run without fsync: /run is memory, and after a crash of the machine nobody may believe it anyway.
Saving never raises; it returns a sentence when it failed, and the old file then stands. A file that can't be relied on
is set aside as `<name>.corrupt`; of the state and of each roster there is a copy that counts then, and all else counts
as nothing known.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.act.watchdog_device import boot_status
from pp_hostd.agent.record_file import Sentences, load_record, write
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.saved_state import MAX_CHARACTERS, SavedState, parse_saved_state
from pp_hostd.agent.sense.boot import Ending, history, last_boot
from pp_hostd.errors import UserError
from pp_hostd.files import FileError, read_whole, write_new
from pp_hostd.frozen import frozen
from pp_hostd.model.boot_commitments import BootCommitments, Gate
from pp_hostd.model.control import Maintenance, parse_control
from pp_hostd.model.keys import MAINTENANCE
from pp_hostd.model.memory import Memory
from pp_hostd.model.record import MAX_CONFIG_MAP_CHARACTERS, MAX_RECORD_CHARACTERS, Unreadable, render
from pp_hostd.model.roster import Roster, parse_roster
from pp_hostd.model.settings import Settings, every_setting, value_of


class StateCopies:
    """The file `state` and, beside it, `state.before`."""

    def __init__(self, path: str) -> None:
        self._path, self._before, self._next = path, f"{path}.before", f"{path}.next"
        self._saved: tuple[object, ...] = ()
        self._binding: tuple[object, ...] = ()

    def save(self, kept: SavedState) -> str:
        """Keep this, unless it is what was kept last. Returns why that failed; empty if it did not."""
        lasting = kept.lasting
        if lasting == self._saved:
            return ""
        binding = kept.binding
        text, bound_as_before = kept.render(), binding == self._binding
        trouble = self._follow(text) if bound_as_before else self._write_both(text)
        if trouble:
            self._overwrite_both(text.encode(), bound_as_before)
        self._saved, self._binding = ((), ()) if trouble else (lasting, binding)
        return trouble

    def load(self, boot: str, gate: Gate, now: float) -> tuple[SavedState | None, Sentences]:
        """Returns the state kept in this boot, None if none, and sentences about files that had to be set aside."""

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
        """Returns the state kept in this boot; None if none. Sets nothing aside: `load` does, and says so."""
        for path in (self._path, self._before):
            with contextlib.suppress(FileError):
                kept = parse_saved_state(read_whole(path, MAX_CHARACTERS), boot, Gate.ABSENT, now)
                if isinstance(kept, SavedState):
                    return kept
        return None

    def _follow(self, text: str) -> str:
        """The last copy becomes the older one. In between, a crash leaves that one alone, and whole."""
        try:
            write_new(self._next, text.encode(), durable=False)
        except FileNotFoundError:  # the directory is gone, and with it the last copy
            return self._write_both(text)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(self._next)  # half a file takes the room that the old ones may need
            return f"{self._next}: can't be written ({error.strerror})"
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


RUN_DIRECTORY = "/run/pp-hostd"
VAR_DIRECTORY = "/var/lib/pp-hostd"
MAX_REPORT_BYTES = 1 << 20
_ROSTER = re.compile(r"roster-([1-9][0-9]{0,14})(\.copy)?")


class StateFiles:
    """Every file of the agent but the gate's and the history."""

    def __init__(self, run_directory: str = RUN_DIRECTORY, var_directory: str = VAR_DIRECTORY) -> None:
        self.run_directory = run_directory
        self.var_directory = var_directory
        self._state = StateCopies(self._run("state"))

    def save(self, kept: SavedState) -> str:
        """Keep this, unless it is what was kept last. Cheap: it is called at every judgement."""
        return self._state.save(kept)

    def load(self, boot: str, gate: Gate, now: float) -> tuple[SavedState | None, Sentences]:
        """Returns the state kept in this boot, as a restarted process takes it up, None if none, and sentences about
        files that had to be set aside."""
        kept, told = self._state.load(boot, gate, now)
        return (None if kept is None else kept.taken_up()), told

    def is_bound(self, boot: str, now: float) -> bool:
        """Whether this boot is bound, as far as is known. Sets nothing aside: `load` does, and tells."""
        kept = self._state.peek(boot, now)
        return kept is not None and kept.commitments.binds

    def save_rosters(self, rosters: Iterable[Roster]) -> str:
        """Keep these, and no others: the newest, and those older ones of which a version may be promised (rule 5)."""
        texts = {roster.version: roster.render() for roster in rosters}
        for version, text in texts.items():
            for name in _roster_names(version):
                trouble = write(self._run(name), text, durable=False)
                if trouble:
                    return trouble
        for names in map(_roster_names, set(self._roster_versions()).difference(texts)):
            for each in names:
                with contextlib.suppress(OSError):
                    os.unlink(self._run(each))
        return ""

    def load_rosters(self) -> tuple[tuple[Roster, ...], Sentences]:
        """The rosters kept, newest first."""
        rosters: list[Roster] = []
        sentences: Sentences = ()
        for version in sorted(self._roster_versions(), reverse=True):
            for name in _roster_names(version):
                roster, troubles = load_record(self._run(name), MAX_CONFIG_MAP_CHARACTERS, parse_roster)
                sentences += troubles
                if roster is not None:
                    rosters.append(roster)
                    break
        return tuple(rosters), sentences

    def _roster_versions(self) -> list[int]:
        try:
            names = os.listdir(self.run_directory)
        except OSError:
            return []
        return list({int(found[1]) for found in map(_ROSTER.fullmatch, names) if found})

    @property
    def settings_path(self) -> str:
        """The settings last in force, as a configuration file."""
        return self._run("settings.toml")

    def save_settings(self, settings: Settings) -> str:
        values = ((each.key, value_of(settings, each.key)) for each in every_setting())
        lines = (f"{key} = {json.dumps(value)}\n" for key, value in values)  # JSON's values are TOML's too
        return write(self.settings_path, "".join(lines), durable=False)

    def save_report(self, report: dict[str, Any]) -> str:
        """Keep the report for the commands that find no daemon."""
        return write(self._run("report"), render(report), durable=False)

    def last_report(self) -> dict[str, Any] | None:
        """The report saved last, perhaps by a daemon that is gone; None if there is none that can be read."""
        try:
            report = json.loads(read_whole(self._run("report"), MAX_REPORT_BYTES))
        except (FileError, ValueError, RecursionError):
            return None
        return report if isinstance(report, dict) else None

    def save_maintenance(self, order: Maintenance | None) -> str:
        """Keep the order over reboots; None ends it."""
        if order is not None:
            return write(self._var("maintenance"), order.render())
        try:
            os.unlink(self._var("maintenance"))
        except FileNotFoundError:
            return ""
        except OSError as error:
            return f"{self._var('maintenance')}: can't be removed ({error.strerror})"
        return ""

    def load_maintenance(self) -> tuple[Maintenance | None, Sentences]:
        """The order that stands, perhaps over. One that can't be read is no order: nobody disarms."""
        return load_record(self._var("maintenance"), MAX_RECORD_CHARACTERS, _maintenance)

    def _run(self, name: str) -> str:
        return os.path.join(self.run_directory, name)

    def _var(self, name: str) -> str:
        return os.path.join(self.var_directory, name)


def _roster_names(version: int) -> tuple[str, str]:
    """In an outage a host that has lost its roster has no majority: so there is a copy."""
    return f"roster-{version}", f"roster-{version}.copy"


def _maintenance(text: bytes) -> Maintenance | Unreadable | None:
    return parse_control({MAINTENANCE: text}).maintenance


@contextlib.contextmanager
def instance_lock(directory: str) -> Iterator[None]:
    """Two daemons would share a watchdog and a promise."""
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        descriptor = os.open(os.path.join(directory, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise UserError(f"{error.filename}: can't be made ({error.strerror})", "It runs as root, by systemd.") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise UserError("pp-hostd runs already on this host", "See: systemctl status pp-hostd") from None
    finally:
        os.close(descriptor)


@frozen
class Recalled:
    """`set_aside` tells which files could not be relied on; `last_boot` why the last boot ended, if that is known and
    was not told yet; `last_boot_told` whether it is, now or by an earlier run. `endings` are those of earlier boots
    that ended by a reset, the oldest first."""

    memory: Memory
    commitments: BootCommitments
    rosters: Rosters
    maintenance: Maintenance | None
    last_boot: str
    last_boot_told: bool
    set_aside: Sentences
    endings: Sequence[Ending] = ()


def recall(files: StateFiles, gate: GateFiles, settings: Settings, boot: str, now: float) -> Recalled:
    """Rule 6: a restarted daemon neither forgets nor gains time. To be called before a reset's record is opened."""
    state, gate_told = gate.state(boot)
    kept, kept_told = files.load(boot, state, now)
    if _relies_on_taint(settings) and kept is None and not (*gate_told, *kept_told) and state is Gate.ABSENT:
        # Only the first run in a boot knows that nothing was started in it by another setting.
        state, gate_told = Gate.CLOSED, tuple(filter(None, (gate.hold_by_taint(boot),)))
    rosters, rosters_told = files.load_rosters()
    maintenance, maintenance_told = files.load_maintenance()
    with contextlib.suppress(OSError):  # then it is told that the record can't be opened
        os.makedirs(files.var_directory, 0o700, exist_ok=True)
    last = last_boot(files.var_directory, boot, boot_status(settings.watchdog.device))
    last_told = (last.trouble,) if last.trouble else ()
    endings = history(files.var_directory)
    return Recalled(
        memory=Memory() if kept is None else kept.memory,
        commitments=BootCommitments(boot, state) if kept is None else kept.commitments,
        rosters=Rosters(*rosters),
        maintenance=maintenance,
        last_boot=last.sentence or "",
        last_boot_told=any(one.told_in == boot for one in endings),
        set_aside=(*gate_told, *kept_told, *rosters_told, *maintenance_told, *last_told),
        endings=endings,
    )


def _relies_on_taint(settings: Settings) -> bool:
    return settings.agent.gate == "taint" and settings.agent.mode == "enforce"
