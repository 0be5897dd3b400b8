"""The remediation objects of all kinds as the leader sees them, and the machine that each is for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from pp_hostd.frozen import frozen
from pp_hostd.leader.caches import Cache
from pp_hostd.leader.requests.remediation_objects.remediation import Remediation, RemediationKind, parse_remediation
from pp_hostd.leader.steps.port import Kind
from pp_hostd.model.observed import Observed
from pp_hostd.model.record import NAME, Fields, Unreadable

REMEDIATION = Kind("remediation")


@frozen
class RemediationsSeen:
    """By what they are called."""

    seen: Mapping[str, Remediation] = field(default_factory=dict)


class Remediations(Cache[Remediation]):
    """Objects of one kind, by what they are called; `seen` is shared with those of other kinds."""

    def __init__(self, kind: RemediationKind, seen: dict[str, Remediation]) -> None:
        super().__init__(kind.kind)
        self.seen = seen
        self._kind = kind

    def _name(self, metadata: Fields) -> str:
        return f"{self._kind.name} {metadata.text('namespace', NAME)}/{super()._name(metadata)}"

    def _find(self, api_object: object) -> Remediation | Unreadable:
        return parse_remediation(api_object, self._kind)

    def _take(self, name: str, found: Remediation | None) -> None:
        if found is None:
            self.seen.pop(name, None)
        else:
            self.seen[name] = found


def machine_of(observed: Observed, found: Remediation) -> str:
    """The machine that this object is for, or that of the Node that it names; empty if that is missing."""
    if not found.node:
        return found.machine
    seen = observed.nodes.get(found.node)
    if seen is not None and isinstance(seen.subject, str):
        return seen.subject
    of_node = (name for name, each in observed.machines.items() if each.machine.node == found.node)
    return next(of_node, "")
