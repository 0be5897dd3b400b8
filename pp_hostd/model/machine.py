"""A machine as the rules see it: a Machine of either API group or, in clusters without machines, the Node itself."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.model.condemnation import Condemnation, parse_condemnation
from pp_hostd.model.keys import CONDEMNED
from pp_hostd.model.record import MACHINE, NAME, OPAQUE, Fields, Unreadable, read


@frozen
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
    labelled: bool = False
    """It bears the label of the condemned, which means nothing by itself and goes with the condemnation."""

    @property
    def machine_key(self) -> str:
        """How rosters and peer answers name this machine."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


def machine_of_node(api_object: object, machines: str) -> str | Unreadable:
    """The key of the machine that a Node in the API belongs to; `machines` is the setting of that name."""
    return read("the Node's machine", lambda node: _machine_of_node(Fields(node), machines), api_object)


def _machine_of_node(node: Fields, machines: str) -> str:
    metadata = node.section("metadata")
    annotations = metadata.section("annotations")
    if machines == "openshift":
        return annotations.text("machine.openshift.io/machine", MACHINE)
    if machines == "cluster-api":
        namespace = annotations.text("cluster.x-k8s.io/cluster-namespace", NAME)
        return f"{namespace}/{annotations.text('cluster.x-k8s.io/machine', NAME)}"
    return metadata.text("name", NAME)


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
        labelled=CONDEMNED in metadata.section("labels"),
    )
