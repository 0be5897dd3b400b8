"""The condition ExternallyRemediated, by which Cluster API's health check marks a Machine that others are to remedy.

It sets it once, when it makes the remediation object. From then on it is ours to keep true.
"""

from __future__ import annotations

import enum

EXTERNALLY_REMEDIATED = "ExternallyRemediated"
LISTS = (("conditions",), ("v1beta2", "conditions"), ("deprecated", "v1beta1", "conditions"))
"""Where in the status of a Machine conditions are, by the version of its API."""


class Remediated(enum.Enum):
    """Status and reason of the condition; WITHDRAWN: there is none."""

    AWAITED = "False/WaitingForRemediation"
    SUCCEEDED = "True/Succeeded"
    FAILED = "False/RemediationFailed"
    WITHDRAWN = ""

    def replaces(self, said: str) -> bool:
        """Whether it is to stand in place of this. Of several objects for one Machine the one that helped counts."""
        if self is Remediated.SUCCEEDED:
            return said != Remediated.SUCCEEDED.value
        if self is Remediated.AWAITED:
            return said.startswith("True/")
        return said == Remediated.AWAITED.value


def said_by(condition: object) -> str | None:
    """What such a condition says; None if it is another one."""
    if not isinstance(condition, dict) or condition.get("type") != EXTERNALLY_REMEDIATED:
        return None
    return f"{condition.get('status')}/{condition.get('reason')}"
