"""The agent's files: in /run what a restarted daemon of this boot must know, in /var/lib what the next boot must.

What is in /run is written without fsync: that is memory, and after a crash of the machine nobody may believe it anyway.
Saving never raises; it returns a sentence when it failed, and the old file then stands. A file that can't be relied on
is set aside as `<name>.corrupt`; of the state and of each roster there is a copy that counts then, and all else counts
as nothing known.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterable
from typing import Any

from pp_hostd.agent.record_file import Sentences, load_record, write
from pp_hostd.agent.saved_state import SavedState
from pp_hostd.agent.state_copies import StateCopies
from pp_hostd.files import FileError, read_whole
from pp_hostd.model.boot_commitments import Gate
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
        """What was kept in this boot, as a restarted process takes it up, and what had to be set aside."""
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


def _roster_names(version: int) -> tuple[str, str]:
    """In an outage a host that has lost its roster has no majority: so there is a copy."""
    return f"roster-{version}", f"roster-{version}.copy"


def _maintenance(text: bytes) -> Maintenance | Unreadable | None:
    return parse_control({MAINTENANCE: text}).maintenance
