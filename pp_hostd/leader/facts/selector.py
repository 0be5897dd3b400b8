"""Label selectors, as Kubernetes has them: all of matchLabels and all of matchExpressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Callable

from pp_hostd.frozen import frozen
from pp_hostd.model.record import Fields, Refused

Labels = Mapping[str, str]
_OPERATORS: dict[str, Callable[[Labels, str, tuple[str, ...]], bool]] = {
    "In": lambda labels, key, values: labels.get(key) in values,
    "NotIn": lambda labels, key, values: labels.get(key) not in values,
    "Exists": lambda labels, key, _: key in labels,
    "DoesNotExist": lambda labels, key, _: key not in labels,
}


@frozen
class Requirement:
    """One of matchExpressions."""

    key: str
    operator: str
    values: tuple[str, ...] = ()


@frozen
class Selector:
    """Empty, it matches everything."""

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Labels) -> bool:
        return all(_OPERATORS[each.operator](labels, each.key, each.values) for each in self.requirements)


def parse_selector(fields: Fields) -> Selector:
    """Refuses what the API of Kubernetes would refuse, too."""
    exact = (Requirement(key, "In", (value,)) for key, value in sorted(fields.texts("matchLabels").items()))
    return Selector((*exact, *map(_requirement, fields.elements("matchExpressions"))))


def _requirement(expression: object) -> Requirement:
    fields = Fields(expression, "an element of matchExpressions")
    key, operator, values = fields.anything("key"), fields.anything("operator"), tuple(fields.elements("values"))
    if not isinstance(key, str) or not key:
        raise Refused("an element of matchExpressions has no key")
    if operator not in _OPERATORS:
        raise Refused(f"the operator of {key[:60]} is {str(operator)[:40]!r}, not one of {', '.join(_OPERATORS)}")
    if not all(isinstance(value, str) for value in values) or bool(values) != (operator in ("In", "NotIn")):
        raise Refused(f"the values of {key[:60]} must be texts, at least one for In and NotIn, and none for the others")
    return Requirement(key, str(operator), tuple(map(str, values)))
