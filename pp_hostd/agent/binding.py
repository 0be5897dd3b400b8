"""The commitments of this boot: how orders and their outcomes change them, and how they bind the judgement. Pure.

Rule 5 lives here: whatever may have been promised is kept, all of it at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from pp_hostd.frozen import replace
from pp_hostd.model.boot_commitments import (
    BondEvent,
    BootCommitments,
    Gate,
    GateHeld,
    GateOpened,
    Look,
    Pending,
    StoreEnded,
    WatchdogArmed,
    WatchdogDisarmed,
)
from pp_hostd.model.evidence import HostContext
from pp_hostd.model.memory import Memory, Standing
from pp_hostd.model.promise import Armed
from pp_hostd.model.record import Unreadable
from pp_hostd.model.settings import Settings
from pp_hostd.model.step import Step, Store, Written


def ordered(commitments: BootCommitments, step: Step) -> BootCommitments:
    """The commitments from the order on: a daemon that dies now is bound by them, and so is a living one."""
    if not isinstance(step, Store):
        return commitments
    return replace(commitments, pending=(*commitments.pending, Pending(step.record, step.node.resource_version)))


def after(commitments: BootCommitments, event: BondEvent, pause_seconds: float) -> BootCommitments:
    """The commitments once that has happened; what failed is tried again after the pause."""
    if isinstance(event, Look):
        return _after_look(commitments, event, pause_seconds)
    if isinstance(event, StoreEnded):
        return _after_store(commitments, event, pause_seconds)
    if isinstance(event, WatchdogArmed):
        return replace(commitments, watchdog=event)
    if isinstance(event, WatchdogDisarmed):
        return replace(commitments, watchdog=None, promised_uid="")
    if isinstance(event, GateHeld):
        return replace(commitments, gate=Gate.CLOSED) if commitments.gate is Gate.ABSENT else commitments
    if isinstance(event, GateOpened):
        return replace(commitments, gate=Gate.OPEN)
    return replace(commitments, not_before_at=event.at + pause_seconds, trouble=event.sentence)


def _after_look(commitments: BootCommitments, look: Look, pause_seconds: float) -> BootCommitments:
    if look.failure or (look.node is None and not look.missing):  # only who was told so knows that there is no Node
        return replace(commitments, look=None, not_before_at=look.ended_at + pause_seconds, trouble=look.failure)
    record = look.node.agent if look.node is not None else None
    ours = None if record is None or isinstance(record, Unreadable) or record.boot != commitments.boot else record
    version = look.node.resource_version if look.node is not None else None
    # A write that is conditional on another version than this can no longer land.
    pending = tuple(each for each in commitments.pending if each.resource_version == version)
    vanished = commitments.stored.machine_uid if isinstance(commitments.stored, Armed) else commitments.promised_uid
    pause = pause_seconds if look.node is None else 0.0
    return replace(
        commitments,
        look=look,
        looked=True,
        stored=ours,
        promised_uid=vanished if ours is None else "",  # what vanished was not withdrawn (rules 1 and 5)
        node_uid=look.node.uid if ours is not None and look.node is not None else commitments.node_uid,
        pending=pending,
        not_before_at=look.ended_at + pause,
        trouble="",
    )


def _after_store(commitments: BootCommitments, ended: StoreEnded, pause_seconds: float) -> BootCommitments:
    if ended.written is Written.DONE:
        # No read began then: the answer may be much older than its arrival.
        look = Look(-math.inf, ended.at, ended.node) if ended.node is not None else None
        node_uid = commitments.node_uid if ended.node is None else ended.node.uid
        # The version has moved on, so no earlier write can still land.
        return replace(
            commitments, stored=ended.record, promised_uid="", node_uid=node_uid, pending=(), look=look, trouble=""
        )
    # Rule 5: until it is known, both are kept. One step at a time: the last one is this.
    pending = (
        tuple(dict.fromkeys(commitments.pending)) if ended.written is Written.UNKNOWN else commitments.pending[:-1]
    )
    return replace(
        commitments, pending=pending, look=None, not_before_at=ended.at + pause_seconds, trouble=ended.sentence
    )


def standing(
    settings: Settings,
    host_context: HostContext,
    commitments: BootCommitments,
    memory: Memory,
    rosters: Mapping[int, tuple[str, ...]],
    waiting: str,
) -> Standing:
    """Returns the standing that binds the judgement: everything that may have been promised, all at once (rule 5)."""
    promises = commitments.promises
    versions = {promise.roster_version for promise in promises}
    if not promises and host_context.electorate is not None:
        versions = {host_context.electorate.version}
    known = all(version in rosters for version in versions)
    dry_run = settings.agent.mode == "dry-run" and memory.proof is not None
    armed = commitments.binds or dry_run
    unpromised_uid = host_context.machine.uid if host_context.machine is not None and armed else None
    return Standing(
        node=host_context.node,
        machine_uid=commitments.bound_uid or unpromised_uid,
        armed=armed,
        # Rule 5: a shorter T is used at once, a longer one when it is stored.
        self_timeout_seconds=min(
            [settings.agent.self_timeout_seconds, *(promise.self_timeout_seconds for promise in promises)]
        ),
        electorates=tuple(rosters[version] for version in sorted(versions)) if known else (),
        waiting_for=waiting,
        watchdog_timeout_seconds=math.inf if commitments.watchdog is None else commitments.watchdog.timeout_seconds,
        machine=(host_context.member.machine or "") if host_context.member is not None else "",
        untouched_at=_untouched_at(commitments),
    )


def _untouched_at(commitments: BootCommitments) -> float:
    """When the last read of the Node began; never, if a leader has begun with it, or it is not the one that this boot
    promised on."""
    node = None if commitments.look is None else commitments.look.node
    if commitments.look is None or node is None or node.tainted or node.freeing is not None:
        return -math.inf
    return commitments.look.began_at if not commitments.binds or node.uid == commitments.node_uid else -math.inf
