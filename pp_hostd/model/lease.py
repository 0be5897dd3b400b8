"""The leaders' Lease as the API has it: who holds it and for how long, and what its holders write there.

Its times are wall-clock times, written for people: nothing here reads them (rule 13).
"""

from __future__ import annotations

import math
from datetime import datetime
from typing import Any

from pp_hostd.frozen import frozen
from pp_hostd.model.record import OPAQUE, PROSE, Fields, Unreadable, read

LEASE = "pp-leader"
GIVEN_UP_SECONDS = 1
"""The duration in a Lease that was given up, as Kubernetes' own leaders leave it too."""
LONGEST_SECONDS = 120
"""No leader's term is longer (it is the most that leader.lease_seconds allows), whatever a Lease says."""
_LARGEST_INT32 = 2**31 - 1


@frozen
class Lease:
    """One version of it; `holder` is empty when nobody holds it."""

    resource_version: str
    holder: str
    duration_seconds: int
    transitions: int

    @property
    def given_up(self) -> bool:
        """Its holder itself has stopped. One that a person took out leaves the duration behind, and may still act."""
        return not self.holder and self.duration_seconds == GIVEN_UP_SECONDS


def parse_lease(api_object: object) -> Lease | Unreadable:
    """The Lease in an object of the API; a garbage holder is somebody, a garbage duration the longest."""
    return read("the Lease", _lease, api_object)


def _lease(api_object: object) -> Lease:
    fields = Fields(api_object)
    spec = fields.section("spec")
    return Lease(
        resource_version=fields.section("metadata").text("resourceVersion", OPAQUE),
        holder=_holder(spec.anything("holderIdentity")),
        duration_seconds=_whole(spec.anything("leaseDurationSeconds"), 1, LONGEST_SECONDS, LONGEST_SECONDS),
        transitions=_whole(spec.anything("leaseTransitions"), 0, _LARGEST_INT32 - 1, 0),
    )


def _holder(value: object) -> str:
    if value is None or value == "":
        return ""
    return value if isinstance(value, str) and PROSE.pattern.fullmatch(value) else "(unreadable)"


def _whole(value: object, least: int, most: int, otherwise: int) -> int:
    return value if type(value) is int and least <= value <= most else otherwise


def unheld_spec(duration_seconds: float) -> dict[str, Any]:
    """A new Lease. It is not given up: whoever held one that was deleted may still act."""
    return {"holderIdentity": "", "leaseDurationSeconds": math.ceil(duration_seconds), "leaseTransitions": 0}


def taken_spec(lease: Lease, identity: str, duration_seconds: float, wallclock: datetime) -> dict[str, Any]:
    """What changes in the spec when this candidate becomes the holder."""
    renewed = renewed_spec(identity, duration_seconds, wallclock)
    transitions = lease.transitions + (lease.holder != identity)
    return {**renewed, "acquireTime": renewed["renewTime"], "leaseTransitions": transitions}


def renewed_spec(identity: str, duration_seconds: float, wallclock: datetime) -> dict[str, Any]:
    return {
        "holderIdentity": identity,
        "leaseDurationSeconds": math.ceil(duration_seconds),
        "renewTime": wallclock.isoformat(timespec="microseconds"),  # the API takes no other number of digits
    }


def given_up_spec(wallclock: datetime) -> dict[str, Any]:
    return renewed_spec("", GIVEN_UP_SECONDS, wallclock)
