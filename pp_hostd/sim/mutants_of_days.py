"""The rules that single days are about, each taken out by name: what was done before there was the rule, or worse."""

from __future__ import annotations

from pp_hostd.sim.mutant import mutant

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
    ("agent.plan:_too_few", "n == 2 and not settings.agent.arm_pairs", "False"),
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
    ("leader.plan.allowance:Allowance.held", "if not self.left:", "if False:"),
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
