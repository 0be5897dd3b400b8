"""What a starting daemon recalls: of the last run in this boot, and of the boot before."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from pp_hostd import config
from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.act.watchdog_look import query
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.sense.boot import last_boot
from pp_hostd.agent.state import Sentences, StateFiles
from pp_hostd.errors import UserError
from pp_hostd.model.bond import Bond, Gate
from pp_hostd.model.control import Maintenance
from pp_hostd.model.memory import Memory
from pp_hostd.model.settings import Settings


@dataclass(frozen=True)
class Recalled:
    """`set_aside` tells which files could not be relied on; `last_boot` why the last boot ended, if that is known."""

    memory: Memory
    bond: Bond
    rosters: Rosters
    maintenance: Maintenance | None
    last_boot: str
    set_aside: Sentences


def recall(files: StateFiles, gate: GateFiles, settings: Settings, boot: str, now: float) -> Recalled:
    """Rule 6: a restarted daemon neither forgets nor gains time. To be called before a reset's record is opened."""
    state, gate_told = gate.state(settings.agent, boot)
    kept, kept_told = files.load(boot, state, now)
    rosters, rosters_told = files.load_rosters()
    maintenance, maintenance_told = files.load_maintenance()
    with contextlib.suppress(OSError):  # then it is told that the record can't be opened
        os.makedirs(files.var_directory, 0o700, exist_ok=True)
    last = last_boot(files.var_directory, boot, query(settings.watchdog.device).boot_status)
    last_told = (last.trouble,) if last.trouble else ()
    return Recalled(
        memory=Memory() if kept is None else kept.memory,
        bond=Bond(boot, state) if kept is None else kept.bond,
        rosters=Rosters(*rosters),
        maintenance=maintenance,
        last_boot=last.sentence or "",
        set_aside=(*gate_told, *kept_told, *rosters_told, *maintenance_told, *last_told),
    )


def last_settings(files: StateFiles, boot: str, now: float) -> Settings | None:
    """Those that this boot is bound under, if it is: a mistake in /etc must not leave an armed host unfed."""
    kept, _ = files.load(boot, Gate.ABSENT, now)
    if kept is None or (kept.bond.watchdog is None and not kept.bond.promises):
        return None
    with contextlib.suppress(UserError):
        return config.load(files.settings_path).settings
    return None
