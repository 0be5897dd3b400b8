"""The truth table of the power cycle, row for row as its document has it; what it says is done once it may be.

Two rows differ: a host that is going off and that nobody requests any more (0011, 1011) is released at once. The
document does nothing there, and leaves it to go off and on again.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import NamedTuple


class Action(enum.Enum):
    """The controller's actions, in the words of the document."""

    NOTHING = "nothing"
    SWITCH_OFF = "add the reboot annotation"
    DELETE_NODE = "delete the Node"
    TAKE_REQUEST = "remove the needs-remediation annotation"
    SWITCH_ON = "remove the reboot annotation"


class Situation(NamedTuple):
    """The document's columns: is there a Node, is its machine requested, does its host read on, does our annotation
    keep that off."""

    node: bool
    requested: bool
    powered_on: bool
    kept_off: bool


TABLE: Mapping[tuple[int, int, int, int], tuple[Action, str]] = {
    # Node, requested, on, kept off
    (0, 1, 1, 0): (Action.SWITCH_OFF, "switching its host off"),
    (1, 1, 1, 0): (Action.SWITCH_OFF, "switching its host off"),
    (1, 1, 0, 1): (Action.DELETE_NODE, "its host is off"),
    (0, 0, 1, 0): (Action.NOTHING, "all is well, except that it has no Node"),
    (0, 0, 1, 1): (Action.SWITCH_ON, "its remediation is no longer requested; releasing its host"),
    (0, 1, 0, 0): (Action.NOTHING, "its host is off, and not by our request: since when is not known"),
    (0, 1, 1, 1): (Action.NOTHING, "its host is being switched off"),
    (1, 0, 0, 0): (Action.NOTHING, "somebody else has switched its host off"),
    (1, 0, 1, 0): (Action.NOTHING, "all is well"),
    (1, 0, 1, 1): (Action.SWITCH_ON, "its remediation is no longer requested; releasing its host"),
    (1, 1, 0, 0): (Action.NOTHING, "its host is off, and not by our request: since when is not known"),
    (1, 1, 1, 1): (Action.NOTHING, "its host is being switched off"),
    (0, 1, 0, 1): (Action.TAKE_REQUEST, "its host is off, and its Node is gone"),
    (0, 0, 0, 1): (Action.SWITCH_ON, "powering its host on again"),
    (1, 0, 0, 1): (Action.SWITCH_ON, "powering its host on again"),
    # The document does not name this one: a spare host, say, about which there is no request.
    (0, 0, 0, 0): (Action.NOTHING, "its host is off, it has no Node, and no remediation is requested"),
}


def action(situation: Situation) -> tuple[Action, str]:
    """Returns the table's action in this situation, and the reason."""
    node, requested, powered_on, kept_off = situation
    return TABLE[node, requested, powered_on, kept_off]
