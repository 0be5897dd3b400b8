"""Label selectors, with the answers that Kubernetes gives."""

from __future__ import annotations

from typing import Any

import pytest

from pp_hostd.leader.facts.selector import parse_selector
from pp_hostd.model.record import Fields, Refused

LABELS = {"zone": "north", "gpu": ""}


def selects(**selector: Any) -> bool:
    return parse_selector(Fields(selector)).matches(LABELS)


def expression(key: str, operator: str, *values: str) -> list[dict[str, Any]]:
    return [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]


@pytest.mark.parametrize(
    ("key", "operator", "values", "matches"),
    [
        ("zone", "In", ("north", "south"), True),
        ("zone", "In", ("south",), False),
        ("rack", "In", ("north",), False),
        ("zone", "NotIn", ("north",), False),
        ("zone", "NotIn", ("south",), True),
        ("rack", "NotIn", ("north",), True),
        ("gpu", "Exists", (), True),
        ("rack", "Exists", (), False),
        ("gpu", "DoesNotExist", (), False),
        ("rack", "DoesNotExist", (), True),
    ],
)
def test_each_operator(key: str, operator: str, values: tuple[str, ...], matches: bool) -> None:
    assert selects(matchExpressions=expression(key, operator, *values)) is matches


def test_all_requirements_must_hold_and_none_is_all() -> None:
    assert selects()
    assert selects(matchLabels={"zone": "north"}, matchExpressions=expression("gpu", "Exists"))
    assert not selects(matchLabels={"zone": "north"}, matchExpressions=expression("gpu", "DoesNotExist"))
    assert not selects(matchLabels={"zone": "north", "rack": "1"})


@pytest.mark.parametrize(
    "bad",
    [
        {"matchLabels": {"zone": 1}},
        {"matchLabels": ["zone"]},
        {"matchExpressions": ["zone"]},
        {"matchExpressions": [{"operator": "Exists"}]},
        {"matchExpressions": expression("zone", "Like", "n*")},
        {"matchExpressions": expression("zone", "In")},
        {"matchExpressions": expression("zone", "Exists", "north")},
        {"matchExpressions": [{"key": "zone", "operator": "In", "values": [1]}]},
    ],
)
def test_what_kubernetes_refuses_is_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        parse_selector(Fields(bad))
