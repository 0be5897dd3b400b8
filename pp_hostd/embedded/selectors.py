"""Label and field selectors: parsing, with the refusals of the real server, and matching."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pp_hostd.embedded.kinds import Kind
from pp_hostd.embedded.status import StatusError, bad_request
from pp_hostd.embedded.validation import key_fault, label_value_fault
from pp_hostd.frozen import frozen

_TOKEN = re.compile(r"\s*(==|!=|[=!(),]|[^\s=!(),]+)")
_SYMBOLS = frozenset(["=", "==", "!=", "!", "(", ")", ","])
_EQUALITY = {"=": "in", "==": "in", "!=": "notin"}


@frozen
class Requirement:
    """One condition on the value of one key: `in` or `notin` some values, `exists`, or `!` (does not exist)."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, found: Mapping[str, str]) -> bool:
        """Whether it is met. A key that is not there is not in any values."""
        if self.operator in ("in", "notin"):
            return (found.get(self.key) in self.values) == (self.operator == "in")
        return (self.key in found) == (self.operator == "exists")


@frozen
class Selector:
    """Conditions on labels and on fields, all of which must be met."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        """Whether an object with these labels and fields is selected."""
        return all(one.holds(labels) for one in self.labels) and all(one.holds(fields) for one in self.fields)

    def __bool__(self) -> bool:
        return bool(self.labels or self.fields)


def parse_labels(text: str) -> tuple[Requirement, ...]:
    """Equality and set based conditions: `a=b,c!=d,e in (f,g),h notin (i),j,!k`."""
    tokens = _Tokens(text)
    if not tokens.peek():
        return ()
    requirements = [_label_requirement(tokens, "!, identifier, or 'end of string'")]
    while tokens.peek():
        tokens.expect(",", "',' or 'end of string'")
        requirements.append(_label_requirement(tokens, "identifier after ','"))
    return tuple(requirements)


class _Tokens:
    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)[::-1]

    def peek(self) -> str:
        return self._tokens[-1] if self._tokens else ""

    def take(self) -> str:
        return self._tokens.pop() if self._tokens else ""

    def expect(self, wanted: str, told: str) -> None:
        found = self.take()
        if found != wanted:
            raise _unparsable(f"found '{found}', expected: {told}")


def _label_requirement(tokens: _Tokens, expected: str) -> Requirement:
    absent = tokens.peek() == "!"
    if absent:
        tokens.take()
    key = tokens.take()
    if not key or key in _SYMBOLS:
        raise _unparsable(f"found '{key}', expected: {expected}")
    if key_fault(key):
        raise _unparsable(f'Invalid value: "{key}": {key_fault(key)}')
    if absent or tokens.peek() in ("", ","):
        return Requirement(key, "!" if absent else "exists")
    operator = tokens.take()
    if operator in ("in", "notin"):
        return Requirement(key, operator, _values(tokens))
    if operator not in _EQUALITY:
        raise _unparsable(f"found '{operator}', expected: in, notin, =, ==, !=")
    return Requirement(key, _EQUALITY[operator], (_value(tokens),))


def _values(tokens: _Tokens) -> tuple[str, ...]:
    tokens.expect("(", "'('")
    values = [_value(tokens)]
    while tokens.peek() == ",":
        tokens.take()
        values.append(_value(tokens))
    tokens.expect(")", "',' or ')'")
    return tuple(values)


def _value(tokens: _Tokens) -> str:
    if tokens.peek() in ("", ",", ")"):
        return ""
    value = tokens.take()
    if label_value_fault(value):
        raise _unparsable(f'Invalid value: "{value}": {label_value_fault(value)}')
    return value


def _unparsable(why: str) -> StatusError:
    return bad_request(f"unable to parse requirement: {why}")


def parse_fields(kind: Kind, text: str) -> tuple[Requirement, ...]:
    """Equality based conditions on the fields that are selectable in that kind: `metadata.name=a,spec.nodeName!=b`."""
    terms = re.findall(r"(?:\\.|[^,])+", text, re.DOTALL)
    return tuple(_field_requirement(kind, term) for term in terms)


def _field_requirement(kind: Kind, term: str) -> Requirement:
    parts = re.fullmatch(r"([^=!\\]*)(!=|==|=)((?:\\[\\,=]|[^\\,=])*)", term, re.DOTALL)
    if not parts:
        raise bad_request(f"invalid field selector: can't understand '{term}'")
    label, operator, value = parts.groups()
    if label not in kind.field_labels:
        raise bad_request(f"field label not supported: {label}; supported are: {', '.join(kind.field_labels)}")
    return Requirement(label, _EQUALITY[operator], (re.sub(r"\\(.)", r"\1", value),))
