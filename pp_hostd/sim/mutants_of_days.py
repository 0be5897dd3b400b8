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
