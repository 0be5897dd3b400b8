"""A bad day that has a name: a cluster, its troubles, and the rule that the day is about."""

from __future__ import annotations

from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.model.settings import Settings
from pp_hostd.sim.cluster import PLAIN, Cluster
from pp_hostd.sim.mutant import Mutant, taken_out
from pp_hostd.sim.run import Outcome, run
from pp_hostd.sim.schedule import Schedule, Trouble

SETTLED_SECONDS = 120.0
"""After all is healed: by then everybody is back."""
BEGIN = 30.0
"""By then everybody is well, and somebody leads."""
MINUTE = 60.0
HOUR = 60 * MINUTE

Names = tuple[str, ...]


@frozen
class NamedDay:
    """`nodes` is the default size of its cluster. `without` takes out the rule that the day is about. The hosts that
    `spared` returns must not reset themselves on this day."""

    about: str
    nodes: int
    troubles: Callable[[Names], list[Trouble]]
    without: Mutant
    spared: Callable[[Names], Names] = lambda _: ()
    cluster: Cluster = PLAIN

    def schedule(self, seed: int, nodes: int | None = None) -> Schedule:
        names = tuple(f"node-{number}" for number in range(1, (nodes or self.nodes) + 1))
        troubles = sorted(self.troubles(names), key=lambda trouble: trouble.at)
        healed_at = max(trouble.at + trouble.seconds for trouble in troubles) + 1
        end_at = healed_at + SETTLED_SECONDS
        return Schedule(seed, len(names), tuple(troubles), healed_at, end_at, self.cluster, self.spared(names))

    def played(self, settings: Settings, seed: int, nodes: int | None = None, *, without_rule: bool = False) -> Outcome:
        """The outcome of this day, with all rules or without the one that it is about."""
        schedule = self.schedule(seed, nodes)
        if not without_rule:
            return run(schedule, settings)
        with taken_out(self.without):
            return run(schedule, settings)


def everybody(names: Names) -> Names:
    return names
