"""The agent's files: in /run what a restarted daemon of this boot must know, in /var/lib what the next boot must.

What is in /run is written without fsync: that is memory, and after a crash of the machine nobody may believe it anyway.
Saving never raises; it returns a sentence when it failed, and the old file then stands. A file that can't be relied on
is set aside as `<name>.corrupt` and counts as nothing known.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from typing import Any, Callable, TypeVar

from pp_hostd.agent.kept import MAX_CHARACTERS, Kept, parse_kept
from pp_hostd.files import FileError, read_whole, write_whole
from pp_hostd.model.bond import Gate
from pp_hostd.model.control import Maintenance, parse_control
from pp_hostd.model.keys import MAINTENANCE
from pp_hostd.model.record import (
    MAX_CONFIG_MAP_CHARACTERS,
    MAX_RECORD_CHARACTERS,
    Unreadable,
    render,
)
from pp_hostd.model.roster import Roster, parse_roster
from pp_hostd.model.settings import Settings, every_setting, value_of

RUN_DIRECTORY = "/run/pp-hostd"
VAR_DIRECTORY = "/var/lib/pp-hostd"
MAX_REPORT_BYTES = 1 << 20
_ROSTER = re.compile("roster-([1-9][0-9]{0,14})")

Sentences = tuple[str, ...]
Record = TypeVar("Record")


class StateFiles:
    """Every file of the agent but the gate's and the history."""

    def __init__(self, run_directory: str = RUN_DIRECTORY, var_directory: str = VAR_DIRECTORY) -> None:
        self.run_directory = run_directory
        self.var_directory = var_directory
        self._saved = ""

    def save(self, kept: Kept) -> str:
        """Keep this, unless it is what was kept last. Cheap: it is called at every judgement."""
        text = kept.render()
        trouble = "" if text == self._saved else write(self._run("state"), text, durable=False)
        if trouble:
            _overwrite(self._run("state"), text.encode())
        self._saved = "" if trouble else text
        return trouble

    def load(self, boot: str, gate: Gate, now: float) -> tuple[Kept | None, Sentences]:
        """What was kept in this boot, as a restarted process takes it up, and what had to be set aside."""
        kept, told = load_record(self._run("state"), MAX_CHARACTERS, lambda text: parse_kept(text, boot, gate, now))
        return (None if kept is None else kept.taken_up()), told

    def is_bound(self, boot: str, now: float) -> bool:
        """Whether this boot is bound, as far as is known. Sets nothing aside: `load` does, and tells."""
        try:
            kept = parse_kept(read_whole(self._run("state"), MAX_CHARACTERS), boot, Gate.ABSENT, now)
        except FileError:
            return False
        return isinstance(kept, Kept) and kept.bond.binds

    def save_rosters(self, rosters: Iterable[Roster]) -> str:
        """Keep these, and no others: the newest, and those older ones of which a version may be promised (rule 5)."""
        texts = {roster.version: roster.render() for roster in rosters}
        for version, text in texts.items():
            trouble = write(self._run(f"roster-{version}"), text, durable=False)
            if trouble:
                return trouble
        for old in set(self._roster_versions()).difference(texts):
            with contextlib.suppress(OSError):
                os.unlink(self._run(f"roster-{old}"))
        return ""

    def load_rosters(self) -> tuple[tuple[Roster, ...], Sentences]:
        """The rosters kept, newest first."""
        rosters: list[Roster] = []
        sentences: Sentences = ()
        for version in sorted(self._roster_versions(), reverse=True):
            roster, troubles = load_record(self._run(f"roster-{version}"), MAX_CONFIG_MAP_CHARACTERS, parse_roster)
            rosters += [] if roster is None else [roster]
            sentences += troubles
        return tuple(rosters), sentences

    def _roster_versions(self) -> list[int]:
        try:
            names = os.listdir(self.run_directory)
        except OSError:
            return []
        return [int(found[1]) for found in map(_ROSTER.fullmatch, names) if found]

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

    def enrol(self, node: str) -> str:
        """Remember on disk that this host has been in the cluster, so that the gate holds it from now on (rule 6)."""
        return "" if self.is_enrolled() else write(self._var("enrolled"), render({"node": node}))

    def is_enrolled(self) -> bool:
        """The file's presence counts, not what is in it: damaged, it still holds the kubelet."""
        return os.path.lexists(self._var("enrolled"))

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


def write(path: str, text: str, *, durable: bool = True) -> str:
    """Replace the file, and make its directory if need be; the sentence says why that failed."""
    try:
        os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
        write_whole(path, text.encode(), durable=durable)
    except FileError as error:
        return str(error)
    except OSError as error:
        return f"{path}: can't be written ({error.strerror})"
    return ""


def _overwrite(path: str, data: bytes) -> None:
    """Where no new file finds room, the old one has some: a proof that is not kept would be one too old at the next
    start, and a reset without need. A crash in between leaves garbage, which counts as nothing known."""
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            if len(data) <= os.fstat(descriptor).st_blocks * 512:
                os.write(descriptor, data)
                os.ftruncate(descriptor, len(data))
        finally:
            os.close(descriptor)


def set_aside(path: str, reason: str) -> str:
    """Rename what can't be relied on, over what was set aside before; the sentence is for the journal."""
    aside = f"{path}.corrupt"
    try:
        os.rename(path, aside)
    except OSError as error:
        return f"{reason}; it counts as nothing known, and can't be set aside ({error.strerror})"
    return f"{reason}; it counts as nothing known, and was set aside as {aside}"


def load_record(
    path: str, limit_bytes: int, parse: Callable[[bytes], Record | Unreadable | None]
) -> tuple[Record | None, Sentences]:
    """What is in the file; one that can't be relied on is set aside."""
    if not os.path.lexists(path):
        return None, ()
    try:
        parsed = parse(read_whole(path, limit_bytes))
    except FileError as error:
        return None, (set_aside(path, str(error)),)
    if isinstance(parsed, Unreadable):
        return None, (set_aside(path, f"{path}: {parsed}"),)
    return parsed, ()


def _maintenance(text: bytes) -> Maintenance | Unreadable | None:
    return parse_control({MAINTENANCE: text}).maintenance
