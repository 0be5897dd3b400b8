"""The leader's flows, as rights are granted for them: each needs its own."""

from __future__ import annotations

import enum


class GrantedFlow(enum.Enum):
    """The values of `pp-leader install --flows`."""

    POISON_PILL = "poison-pill"
    POWER_CYCLE = "power-cycle"
    EXTERNAL_REMEDIATION = "external-remediation"


ONLY_POISON_PILL = (GrantedFlow.POISON_PILL,)
