"""A machine as the rules see it: a Machine of either API group or, in clusters without machines, the Node itself."""

from __future__ import annotations

from dataclasses import dataclass

from pp_hostd.model.condemnation import Condemnation, parse_condemnation
from pp_hostd.model.record import NAME, OPAQUE, Fields, Unreadable, read


@dataclass(frozen=True)
class Machine:
    """Identity and condemnation out of one and the same read, as a proof needs them (rule 1).

    `namespace` is None for a Node; `node` is None while the Machine has no nodeRef.
    """

    namespace: str | None
    name: str
    uid: str
    resource_version: str
    condemnation: Condemnation | Unreadable
    node: str | None

    @property
    def subject(self) -> str:
        """How rosters and peer answers name this machine."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def parse_machine(api_object: object) -> Machine | Unreadable:
    """The machine in an object of the API."""
    return read("the machine", _machine, api_object)


def _machine(api_object: object) -> Machine:
    fields = Fields(api_object)
    metadata = fields.section("metadata")
    name = metadata.text("name", NAME)
    namespace = metadata.text("namespace", NAME) if "namespace" in metadata else None
    reference = fields.section("status").section("nodeRef")
    node = reference.text("name", NAME) if "name" in reference else None
    return Machine(
        namespace=namespace,
        name=name,
        uid=metadata.text("uid", OPAQUE),
        resource_version=metadata.text("resourceVersion", OPAQUE),
        condemnation=parse_condemnation(fields.anything("metadata")),
        node=node if namespace else name,
    )
