"""Calls for tests."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pp_hostd.fencing.call import AgentCall

LONG_SECONDS = 600.0
NONE: Mapping[str, str] = MappingProxyType({})


def a_call(
    more: Mapping[str, str] = NONE, agent: str = "fence_test", action: str = "off", seconds: float = LONG_SECONDS
) -> AgentCall:
    return AgentCall(agent, (("action", action), *more.items()), seconds)
