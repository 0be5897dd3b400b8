"""The version and the certificate of an agent, for people: the annotation `pp-hostd.io/agent-info` on its own Node.

No rule rests on it.
"""

from __future__ import annotations

from datetime import datetime

from pp_hostd.frozen import frozen
from pp_hostd.model.moment import render_moment
from pp_hostd.model.record import MAX_RECORD_CHARACTERS, OPAQUE, Unreadable, document, read, render


@frozen
class AgentInfo:
    """`certificate_ends_wallclock` is None for an agent that has no client certificate."""

    version: str
    certificate_ends_wallclock: datetime | None = None

    def render(self) -> str:
        ends = self.certificate_ends_wallclock
        return render({"version": self.version, "certificate_ends": None if ends is None else render_moment(ends)})


def parse_agent_info(text: object) -> AgentInfo | Unreadable:
    """The information in the annotation."""
    return read("the agent's information", _agent_info, text)


def _agent_info(text: object) -> AgentInfo:
    fields = document(text, MAX_RECORD_CHARACTERS)
    ends = fields.moment("certificate_ends") if "certificate_ends" in fields else None
    return AgentInfo(fields.text("version", OPAQUE), ends)
