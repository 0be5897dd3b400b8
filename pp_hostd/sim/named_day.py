"""Bad days that have a name: a cluster, its troubles, and the rule that the day is about, which can be taken out."""

from __future__ import annotations

from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.model.settings import Settings
from pp_hostd.sim.cluster import PLAIN, Cluster
from pp_hostd.sim.mutant import Mutant, mutant, taken_out
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


OUTAGE_CONDEMNS = mutant(
    "a host that nobody calls healthy is condemned, also when the control plane is out",
    3,
    "outage",
    ("model.inquiry:is_outage", "return bool(electorates) and", "return False and"),
)

LIFTED_ACCUSES = mutant(
    "a host takes ids that were lifted for accusations",
    4,
    "",
    ("model.inquiry:weigh", "answer.id in lifted_ids", "False"),
)

IDS_RESTART = mutant(
    "a condemnation id is the last one and 1",
    9,
    "",
    ("model.condemnation:Draw.id_after", "max(last_id, DICE * self.wallclock_seconds) + self.dice", "last_id"),
)

ONE_ACCUSER_CONDEMNS = mutant(
    "one peer that accuses a host condemns it",
    3,
    "outage",
    (
        "agent.judge:_inquired",
        "    if is_outage(",
        "    if inquiry.said(Said.UNHEALTHY, Said.NOT_FOUND):\n"
        "        return _outvoted(standing, memory, inquiry, now)\n"
        "    if is_outage(",
    ),
)

LABEL_CONDEMNS = mutant(
    "a machine that bears the label is not acquitted, though nobody requests it",
    1,
    "",
    (
        "model.condemnation:_condemnation",
        "    return Requested(last_id) if requested",
        "    if CONDEMNED in fields.section('labels'):\n"
        "        raise Refused('the label is set, and there is no time')\n"
        "    return Requested(last_id) if requested",
    ),
)

NEWS_RESETS = mutant(
    "a watch resets a host whose next read would acquit it",
    1,
    "",
    ("agent.judge:_after_watch", "if not standing.armed:", "if True:"),
)

HELD_BY_ITSELF = mutant(
    "a gate holds kubelets that have to start the API",
    6,
    "",
    ("model.gate_kind:gate_kind", "GateKind.TAINT if hindered_by else GateKind.HOLD", "GateKind.HOLD"),
)

VANISHED_CONDEMNS = mutant(
    "a host whose machine is gone has no proof, though its Node is untouched",
    1,
    "replaced",
    ("agent.judge:_left_alone", "if missing is None or", "if True or missing is None or"),
)

PAIRS_ARE_ARMED = mutant(
    "both of two nodes are armed",
    3,
    "",
    ("agent.plan:too_few", "n == 2 and not settings.agent.arm_pairs", "False"),
)

SHUTDOWN_WAITS = mutant(
    "a shutdown waits until the promise is withdrawn",
    8,
    "",
    ("agent.shutdown:is_kernel_to_end", "now >= ordered_at + WITHDRAW_SECONDS", "False"),
)

LENGTHENED_UNPROMISED = mutant(
    "a host that powers off gives its watchdog longer than it has promised",
    5,
    "",
    (
        "agent.plan:_power_off",
        "max(promise.watchdog_timeout_seconds, POWER_OFF_SECONDS)",
        "promise.watchdog_timeout_seconds",
    ),
    ("agent.shutdown:is_last_feeding", "promise.watchdog_timeout_seconds >= POWER_OFF_SECONDS", "True"),
)

OWN_READ_ONLY = mutant(
    "a host that the API refuses takes no peer's word that it is healthy",
    3,
    "",
    ("agent.judge:_after_answers", "if said is Said.HEALTHY and", "if False and"),
)

UNBUDGETED = mutant(
    "as many remediations begin in an hour as are requested",
    15,
    "",
    ("leader.plan.valves:Allowance.held", "if not self.left:", "if False:"),
)

REQUESTED_EARLY = mutant(
    "a request that is made before a freed host is back is carried out",
    16,
    "",
    ("leader.remedies.poison_pill.plan:_remedied", "held_until_back(view, machine, seen) if begins else None", "None"),
)

FINALIZERS_LATE = mutant(
    "a Node with finalizers is refused only when it would be deleted",
    12,
    "",
    ("leader.remedies.poison_pill.plan:_trouble", '(undeletable(seen) if by_deletion else "")', '""'),
)
