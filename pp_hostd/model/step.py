"""The steps of an agent's plan: what it does next about its promise, its watchdog and its gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from pp_hostd.model.node import Node
from pp_hostd.model.promise import AgentRecord


@dataclass(frozen=True)
class Wait:
    """Nothing to do now. The reason is a sentence for people; empty when all is as it should be."""

    reason: str


@dataclass(frozen=True)
class LookAtNode:
    """Read one's own Node."""


@dataclass(frozen=True)
class ReadMachine:
    """A proof is needed that begins after the last look: read the machine now."""


@dataclass(frozen=True)
class Store:
    """Write this record, conditional on the Node as it was read."""

    record: AgentRecord
    node: Node


@dataclass(frozen=True)
class Arm:
    """Start the watchdog."""


@dataclass(frozen=True)
class Disarm:
    """Stop the watchdog: no promise stands any more."""


@dataclass(frozen=True)
class OpenGate:
    """Let the kubelet start."""

    reason: str


Step = Union[Wait, LookAtNode, ReadMachine, Store, Arm, Disarm, OpenGate]
