"""Requests by the annotation host.metal3.io/external-remediation on a machine, whoever puts it there."""

from __future__ import annotations

from collections.abc import Collection

from pp_hostd.leader.interfaces import Requester
from pp_hostd.model.observed import Observed


class Annotations(Requester):
    """The other requesters end here, too: on behalf of their objects the leader puts the annotation on a machine."""

    needs_machines = False

    def requested(self, observed: Observed) -> Collection[str]:
        return observed.requests


ANNOTATIONS = Annotations()
