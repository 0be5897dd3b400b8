"""Which hosts this one probes, when, and which of them it suspects. Pure: no socket, no clock.

Each ring orders all nodes of the roster by a hash of its own, and a host probes its successor on each ring. So every
host probes about RINGS others and is probed by as many, which every host finds in the same way; the rings lead across
racks by chance. A suspicion only ever requests: the leader tries the suspect itself before it believes anybody.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence

from pp_hostd.model.reachability import ATTEMPT_SECONDS, Finding

RINGS = 3
REGULAR_SECONDS = 2.0
"""From one regular probe to the next, of whichever target: an agent sends one probe in that time, and answers one."""
NEAR_SECONDS = 0.25
"""A regular probe is sent so much earlier or later, if the agent is awake then anyway: to wake up costs it more."""
STEP_SECONDS = 0.02
"""A regular probe that is sent so late moves the later ones too, so that they stay beside the agent's reads."""
REPEAT_SECONDS = 0.25
"""From one probe of a target to the next, once the target has missed one."""
MISSES = 4
"""So many in a row make a target a suspect."""
LATE_SECONDS = 1.0
"""An outcome that comes so long after the deadline says that this process stood still, and nothing about a target."""
KEPT = 3
MAX_OWED = 3 * MISSES
"""Each repeated probe is paid for by a regular one that is left out later: one after each KEPT that are sent. If so
many are owed, every one is left out, and none is repeated. So an agent sends no more than one probe in REGULAR_SECONDS
over time, whatever is lost."""


def place(ring: int, name: str) -> bytes:
    """Where a node stands on a ring: nodes are ordered by this, and the first follows the last."""
    return hashlib.sha256(f"{ring} {name}".encode()).digest()


def successor(ring: int, names: Iterable[str], me: str, without: Sequence[str] = ()) -> str | None:
    """The next node after `me` on this ring that is not in `without`; None if there is none."""
    mine = place(ring, me)
    others = ((place(ring, name), name) for name in names if name != me and name not in without)
    nearest = min(((at < mine, at, name) for at, name in others), default=None)
    return None if nearest is None else nearest[2]


def targets(names: Sequence[str], me: str, rings: int = RINGS) -> tuple[str, ...]:
    """The hosts that `me` probes: its successor on each ring, or, if that one is a target already, the one after it. So
    of few nodes each probes all others. Empty if `me` is not among the names."""
    chosen: list[str] = []
    for ring in range(rings) if me in names else ():
        found = successor(ring, names, me, chosen)
        if found is not None:
            chosen.append(found)
    return tuple(chosen)


class _Target:
    """The knowledge of one target; `misses` are those in a row, up to MISSES, and all later than what was reached."""

    __slots__ = ("last_missed_at", "misses", "name", "reached_at", "repeat_at", "under_way")

    def __init__(self, name: str) -> None:
        self.name = name
        self.misses = self.under_way = 0
        self.repeat_at = math.inf
        self.reached_at = self.last_missed_at = -math.inf
        """When the last probe was sent that reached it, and the last one that it missed."""


class Probing:
    """The probes of one host. Whoever sends what `due` names tells each outcome by `ended`, whatever it is."""

    def __init__(self, names: Iterable[str], first_at: float) -> None:
        """`first_at` is when the first probe is sent: at random, so that hosts do not probe in step."""
        self._targets = [_Target(name) for name in names]
        self._regular_at = first_at
        self._turn = 0
        self._owed, self._kept = 0, 0
        self._reads_succeed = True
        self._cut_off_at = -math.inf
        """When this host was last known to be cut off itself. Misses of earlier probes say nothing about a target."""

    @property
    def targets(self) -> tuple[str, ...]:
        return tuple(target.name for target in self._targets)

    def retarget(self, names: Iterable[str]) -> None:
        """Probes these from now on. Whatever is known of those that stay is kept."""
        known = {target.name: target for target in self._targets}
        self._targets = [known.get(name) or _Target(name) for name in names]

    @property
    def next_at(self) -> float:
        """When a probe is due; never, if there are no targets."""
        return min([self._regular_at, *[each.repeat_at for each in self._targets]]) if self._targets else math.inf

    def wake_at(self, anyway_at: float) -> float:
        """When to ask for what is due, if that is done at `anyway_at` in any case."""
        next_at = self.next_at
        waits = next_at == self._regular_at and next_at <= anyway_at <= next_at + NEAR_SECONDS
        return anyway_at if waits else min(anyway_at, next_at)

    def due(self, now: float) -> list[str]:
        """The targets to probe now; each is named once, and counts as probed."""
        chosen = []
        for target in self._targets:
            if target.repeat_at > now:
                continue
            target.repeat_at = math.inf
            if self._owed < MAX_OWED:
                self._owed += 1
                chosen.append(target)
        if self._regular_at <= now + NEAR_SECONDS and self._targets:
            late = now >= self._regular_at + STEP_SECONDS
            self._regular_at = (now if late else self._regular_at) + REGULAR_SECONDS  # it does not catch up
            if self._owed >= MAX_OWED or (self._owed and self._kept >= KEPT):
                self._owed, self._kept = self._owed - 1, 0
            else:
                self._kept += 1
                self._turn = (self._turn + 1) % len(self._targets)
                chosen.append(self._targets[self._turn])
        if not chosen:
            return []
        names = list(dict.fromkeys([target.name for target in chosen]))
        for target in self._targets:
            if target.name in names:
                target.under_way += 1
                target.repeat_at = self._next_repeat_at(target, now + REPEAT_SECONDS)
        return names

    def ended(self, name: str, sent_at: float, finding: Finding, now: float) -> None:
        """The probe of this target that was sent then has ended so; None: it could not be made."""
        target = next((each for each in self._targets if each.name == name), None)
        if target is None:
            return
        self._note_whether_cut_off(now)
        target.under_way = max(0, target.under_way - 1)
        if finding:
            target.reached_at = max(target.reached_at, sent_at)
            target.misses, target.repeat_at = 0, math.inf
            return
        is_late = now > sent_at + ATTEMPT_SECONDS + LATE_SECONDS
        if finding is False and not is_late and sent_at > target.reached_at:
            target.misses = min(target.misses + 1, MISSES)
            target.last_missed_at = max(target.last_missed_at, sent_at)
        if target.repeat_at == math.inf:
            # A network that fails at once, as without a route, may be back a moment later: it gets the same time.
            target.repeat_at = self._next_repeat_at(target, max(now, sent_at + ATTEMPT_SECONDS))
        self._note_whether_cut_off(now)

    def reads(self, succeed: bool, now: float) -> None:
        """Whether this host's own reads of the API succeed."""
        if succeed != self._reads_succeed:
            self._note_whether_cut_off(now)  # before: a probe that is under way may still be of that time
            self._reads_succeed = succeed

    @property
    def suspects(self) -> tuple[str, ...]:
        """The targets that are silent, by name, as far as it is not this host that is cut off."""
        if self._is_cut_off():
            return ()
        silent = [each for each in self._targets if each.misses >= MISSES]
        return tuple(sorted([each.name for each in silent if each.last_missed_at > self._cut_off_at])) if silent else ()

    @staticmethod
    def _next_repeat_at(target: _Target, at: float) -> float:
        """A target that misses is probed again, until it is a suspect or what is under way could make it one."""
        wanted = 0 < target.misses < MISSES and target.misses + target.under_way < MISSES
        return at if wanted else math.inf

    def _is_cut_off(self) -> bool:
        """Whether all others are silent to this host, and the API is, too: then it is this host."""
        return not self._reads_succeed and len(self._targets) > 1 and all(each.misses for each in self._targets)

    def _note_whether_cut_off(self, now: float) -> None:
        if self._is_cut_off():
            self._cut_off_at = now
