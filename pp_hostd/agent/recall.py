"""What a starting daemon recalls: of the last run in this boot, and of the boot before."""

from __future__ import annotations

import contextlib
import os

from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.act.watchdog_look import boot_status
from pp_hostd.agent.record_file import Sentences
from pp_hostd.agent.rosters import Rosters
from pp_hostd.agent.sense.boot import history, last_boot
from pp_hostd.agent.state import StateFiles
from pp_hostd.frozen import frozen
from pp_hostd.model.boot_commitments import BootCommitments, Gate
from pp_hostd.model.control import Maintenance
from pp_hostd.model.memory import Memory
from pp_hostd.model.settings import Settings


@frozen
class Recalled:
    """`set_aside` tells which files could not be relied on; `last_boot` why the last boot ended, if that is known and
    was not told yet; `last_boot_told` whether it is, now or by an earlier run."""

    memory: Memory
    commitments: BootCommitments
    rosters: Rosters
    maintenance: Maintenance | None
    last_boot: str
    last_boot_told: bool
    set_aside: Sentences


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
    return Recalled(
        memory=Memory() if kept is None else kept.memory,
        commitments=BootCommitments(boot, state) if kept is None else kept.commitments,
        rosters=Rosters(*rosters),
        maintenance=maintenance,
        last_boot=last.sentence or "",
        last_boot_told=any(one.told_in == boot for one in history(files.var_directory)),
        set_aside=(*gate_told, *kept_told, *rosters_told, *maintenance_told, *last_told),
    )


def _relies_on_taint(settings: Settings) -> bool:
    return settings.agent.gate == "taint" and settings.agent.mode == "enforce"
