"""The alert rules and the dashboard that the package ships, as files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.metrics.dashboard import dashboard, panels
from tests.metrics.prometheus import CHECKOUT, RULES, promtool

PLAYED = Path(__file__).with_name("rules.test.yml")


def alerts() -> list[dict[str, Any]]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_the_rules_do_what_their_tests_say() -> None:
    assert "SUCCESS" in promtool("test", "rules", str(PLAYED))


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_an_alert_is_played_and_says_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["alert"] in PLAYED.read_text()
    assert alert["labels"]["severity"] in ("critical", "warning")
    page, _, anchor = alert["annotations"]["runbook"].partition("#")
    headings = re.findall("(?m)^#+ (.*)$", (CHECKOUT / page).read_text())
    assert anchor in {heading.lower().replace(" ", "-") for heading in headings}


def test_panels_have_ids_and_descriptions_of_their_own_and_do_not_overlap() -> None:
    found = dashboard()["panels"]
    assert len({each["id"] for each in found}) == len(found)
    assert all(each["description"].endswith(".") for each in panels())
    taken: set[tuple[int, int]] = set()
    for each in found:
        at = each["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken and at["x"] + at["w"] <= 24, each["title"]
        taken |= cells
