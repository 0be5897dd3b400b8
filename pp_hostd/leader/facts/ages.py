"""The ages of conditions, by two clocks: no step of the wall clock makes a condition older than it is."""

from __future__ import annotations

from collections.abc import Mapping

from pp_hostd.frozen import frozen


@frozen
class Sighting:
    """A condition, its age when this leader first saw it so, and when that was."""

    status: str
    since_wallclock: float
    age_seconds: float
    seen_at: float


Sightings = Mapping[tuple[str, str], Sighting]
"""By the uid of the Node and the type of the condition."""


class Ages:
    """The ages of conditions. An age is the smaller of two: by the wall clock, and by what it was when this leader
    first saw the condition plus the time since. So a wall clock that is set forward makes nobody unhealthy."""

    def __init__(self, before: Sightings, now: float, wallclock_seconds: float) -> None:
        self.seen: dict[tuple[str, str], Sighting] = {}
        self.now = now
        self._before, self._wallclock_seconds = before, wallclock_seconds

    def age_seconds(self, uid: str, of_type: str, status: str, since_wallclock: float) -> float:
        """Negative if it will only become so, by the wall clock."""
        by_wallclock = self._wallclock_seconds - since_wallclock
        found = self.seen.get((uid, of_type)) or self._before.get((uid, of_type))
        if found is None or (found.status, found.since_wallclock) != (status, since_wallclock):
            found = Sighting(status, since_wallclock, max(0.0, by_wallclock), self.now)
        self.seen[uid, of_type] = found
        return min(by_wallclock, found.age_seconds + self.now - found.seen_at)
