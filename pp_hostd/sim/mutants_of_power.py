"""The rules on power cycles, each taken out by name."""

from __future__ import annotations

from pp_hostd.sim.mutant import mutant

MUTANTS_OF_POWER = (
    mutant(
        'an "off" that was read before a pause frees workloads',
        12,
        "powered on by hand",
        (
            "leader.remedies.power_cycle.bare_metal_host:has_turned_off",
            "if before is None or before.uid != found.uid or not isinstance(found.request, PowerRequest):",
            "if not isinstance(found.request, PowerRequest):",
        ),
        (
            "leader.remedies.power_cycle.bare_metal_host:has_turned_off",
            "began_on = before.powered_on is True and not before.obstacle\n    return "
            "before.request == found.request and (began_on or before.seen_off)",
            "return True",
        ),
    ),
    mutant(
        "a request that is made while a host is off begins a second power cycle",
        16,
        "requested again",
        (
            "leader.remedies.power_cycle.plan:_asks",
            "return not _is_deleted(view) or _is_over(view, machine)",
            "return True",
        ),
    ),
    mutant(
        "hosts are switched off that the API needs",
        15,
        "requested",
        ("leader.plan.valves:Valves._held", "if control_plane and others >= spare:", "if False:"),
    ),
)
