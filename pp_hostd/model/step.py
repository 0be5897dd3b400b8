"""The steps of an agent's plan, about its promise, watchdog and gate; and the outcome of a conditional write."""

from __future__ import annotations

import enum
from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord


class Written(enum.Enum):
    """The outcome of a conditional write."""

    DONE = "done"
    CONFLICT = "conflict"
    NOT_DONE = "not done"
    UNKNOWN = "unknown"


@frozen
class Wait:
    """Nothing to do now. The reason is a sentence for people; empty when all is as it should be."""

    reason: str


@frozen
class LookAtNode:
    """Read one's own Node."""


@frozen
class ReadMachine:
    """A proof is needed that begins after the last look: read the machine now."""


@frozen
class Store:
    """Write this record, conditional on the Node as it was read."""

    record: AgentRecord
    node: Node


@frozen
class Arm:
    """Start the watchdog."""


@frozen
class Disarm:
    """Stop the watchdog: no promise stands any more."""


@frozen
class OpenGate:
    """Let the kubelet start."""

    reason: str


Step = Union[Wait, LookAtNode, ReadMachine, Store, Arm, Disarm, OpenGate]
