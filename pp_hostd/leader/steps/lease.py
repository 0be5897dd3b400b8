"""The step that makes another leader take the Lease."""

from __future__ import annotations

from pp_hostd.frozen import frozen
from pp_hostd.leader.steps.port import Port


@frozen
class HandOver:
    """Give the Lease up: another leader must do this (rule 14)."""

    async def run(self, port: Port) -> str:
        await port.hand_over()
        return ""
