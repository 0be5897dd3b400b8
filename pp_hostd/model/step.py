"""The steps of an agent's plan: what it does next about its promise, its watchdog and its gate."""

from __future__ import annotations

from typing import Union

from pp_hostd.frozen import frozen
from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord


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
