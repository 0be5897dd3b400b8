"""The queries of the dashboard that the package ships, as Grafana would send them."""

from __future__ import annotations

import json
from typing import Any

from pp_hostd.frozen import frozen
from tests.metrics.prometheus import DASHBOARD

MAY_BE_EMPTY = ("Empty while all is well.", "Empty until")
"""A panel whose description says so."""
VARIABLES = {"$__rate_interval": "20s", "$__range": "10m", "$instance": ".*"}


@frozen
class Query:
    """One target of a panel."""

    panel: str
    expression: str
    may_be_empty: bool


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return found


def panels() -> list[dict[str, Any]]:
    """Those that show figures."""
    return [each for each in dashboard()["panels"] if each["type"] != "row"]


def queries() -> list[Query]:
    found = []
    for panel in panels():
        for target in panel["targets"]:
            expression = str(target["expr"])
            for variable, value in VARIABLES.items():
                expression = expression.replace(variable, value)
            found.append(Query(panel["title"], expression, any(each in panel["description"] for each in MAY_BE_EMPTY)))
    return found
