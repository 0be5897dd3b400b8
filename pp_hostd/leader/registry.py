"""All remedies and all requesters that a leader has. A new one is a folder of its own and one line here."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.leader.interfaces import Remedy, Requester
from pp_hostd.leader.remedies.node_fence import NODE_FENCE
from pp_hostd.leader.remedies.poison_pill import POISON_PILL
from pp_hostd.leader.remedies.power_cycle import POWER_CYCLE
from pp_hostd.leader.requests.annotations import ANNOTATIONS
from pp_hostd.leader.requests.health_checks import HEALTH_CHECKS
from pp_hostd.leader.requests.machine_health_checks import MACHINE_HEALTH_CHECKS_OF_OTHERS
from pp_hostd.leader.requests.node_conditions import NODE_CONDITIONS
from pp_hostd.leader.requests.remediation_objects import REMEDIATION_OBJECTS
from pp_hostd.leader.requests.thresholds import THRESHOLDS
from pp_hostd.leader.requests.unreachable import UNREACHABLE

REMEDIES: tuple[Remedy, ...] = (POWER_CYCLE, NODE_FENCE, POISON_PILL)
"""Where nobody names one, the leader takes the first that suits."""
REQUESTERS: tuple[Requester, ...] = (
    ANNOTATIONS,
    REMEDIATION_OBJECTS,
    HEALTH_CHECKS,
    MACHINE_HEALTH_CHECKS_OF_OTHERS,
    UNREACHABLE,
    NODE_CONDITIONS,
    THRESHOLDS,
)


@frozen
class Registry:
    """The remedies and requesters that a leader works with."""

    remedies: tuple[Remedy, ...] = REMEDIES
    requesters: tuple[Requester, ...] = REQUESTERS

    @property
    def all(self) -> tuple[Remedy | Requester, ...]:
        return (*self.remedies, *self.requesters)

    @property
    def flows(self) -> tuple[str, ...]:
        """The values of `pp-leader install --flows`."""
        return tuple(dict.fromkeys(each.name for each in self.all if each.name))

    def remedy(self, name: str) -> Remedy | None:
        """The one of this name; None if there is none."""
        return next((each for each in self.remedies if each.name == name), None)


REGISTRY = Registry()
