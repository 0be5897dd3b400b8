"""The tables of docs/metrics.md name every metric that the code has, and no other."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPOSED = {"pp_hostd_up", "pp_leader_up", "pp_hostd_peer_connections", "pp_hostd_peer_connections_ended_total"}
"""Names that the code puts together."""


def test_every_metric_is_in_a_table_of_the_page_and_there_is_no_other() -> None:
    sources = "".join(path.read_text() for path in (ROOT / "pp_hostd").rglob("*.py"))
    named = set(re.findall(r'"(pp_(?:hostd|leader)_[a-z_]+)"', sources)) - {"pp_hostd_peer"}
    rows = re.findall(r"(?m)^\| `(pp_[a-z_]+)", (ROOT / "docs/metrics.md").read_text())
    assert set(rows) == named | COMPOSED
    assert len(set(rows)) == len(rows)
