"""Selectors read back what they say, and refuse everything else politely."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.embedded.kinds import KINDS
from pp_hostd.embedded.selectors import Requirement, Selector, parse_fields, parse_labels
from pp_hostd.embedded.status import StatusError
from pp_hostd.kube.resources import PODS
from tests.embedded.conftest import EXAMPLES

NAMES = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,8}[A-Za-z0-9])?", fullmatch=True)
KEYS = NAMES | st.builds("{}/{}".format, st.from_regex(r"[a-z0-9]{1,5}(\.[a-z]{1,3})?", fullmatch=True), NAMES)
VALUES = NAMES | st.just("")
SETS = st.lists(VALUES, min_size=1, max_size=3).map(tuple)
REQUIREMENTS = st.builds(Requirement, KEYS, st.sampled_from(["in", "notin"]), SETS) | st.builds(
    Requirement, KEYS, st.sampled_from(["exists", "!"])
)


def spelt(requirement: Requirement, blank: str) -> str:
    """A requirement as a person would write it."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    if operator in ("exists", "!"):
        return key if operator == "exists" else f"!{blank}{key}"
    return f"{key} {operator}{blank}({(',' + blank).join(values)})"


@EXAMPLES
@given(st.lists(REQUIREMENTS, max_size=4), st.sampled_from(["", " ", "  "]))
def test_a_label_selector_reads_back_as_it_was_meant(requirements: list[Requirement], blank: str) -> None:
    text = f"{blank},{blank}".join(spelt(requirement, blank) for requirement in requirements)
    assert parse_labels(text) == tuple(requirements)


@EXAMPLES
@given(KEYS, VALUES, st.sampled_from([("=", "in"), ("==", "in"), ("!=", "notin")]))
def test_equality_is_membership_of_one(key: str, value: str, operator: tuple[str, str]) -> None:
    spelt_operator, meant = operator
    assert parse_labels(f"{key}{spelt_operator}{value}") == (Requirement(key, meant, (value,)),)


@pytest.mark.parametrize(
    ("selector", "labels"),
    [
        ("rack=7", [{"rack": "7"}]),
        ("rack!=7", [{"rack": "8"}, {}]),
        ("rack in (7,8)", [{"rack": "7"}, {"rack": "8"}]),
        ("rack notin (7)", [{"rack": "8"}, {}]),
        ("rack", [{"rack": "7"}, {"rack": "8"}]),
        ("!rack", [{}]),
        ("rack,rack!=7", [{"rack": "8"}]),
    ],
)
def test_a_label_selector_chooses(selector: str, labels: list[dict[str, str]]) -> None:
    everything: list[dict[str, str]] = [{"rack": "7"}, {"rack": "8"}, {}]
    assert [one for one in everything if Selector(parse_labels(selector)).matches(one, {})] == labels


@EXAMPLES
@given(REQUIREMENTS, st.dictionaries(KEYS, VALUES, max_size=3))
def test_a_requirement_and_its_opposite_never_agree(requirement: Requirement, labels: dict[str, str]) -> None:
    opposites = {"in": "notin", "notin": "in", "exists": "!", "!": "exists"}
    opposite = Requirement(requirement.key, opposites[requirement.operator], requirement.values)
    assert requirement.holds(labels) != opposite.holds(labels)


@EXAMPLES
@given(st.text(st.sampled_from("ab/.=!(), in-\\$\0") | st.characters(), max_size=20))
def test_any_text_is_a_selector_or_a_bad_request(text: str) -> None:
    for read in (parse_labels, lambda text: parse_fields(KINDS[PODS], text)):
        try:
            Selector(labels=read(text)).matches({"a": "b"}, {})
        except StatusError as refusal:
            assert refusal.code == 400


@EXAMPLES
@given(st.text(max_size=10), st.sampled_from([("=", "in"), ("==", "in"), ("!=", "notin")]))
def test_a_field_selector_takes_any_value_if_it_is_escaped(value: str, operator: tuple[str, str]) -> None:
    spelt_operator, meant = operator
    escaped = value.replace("\\", "\\\\").replace(",", "\\,").replace("=", "\\=")
    read = parse_fields(KINDS[PODS], f"status.phase{spelt_operator}{escaped},metadata.name=x")
    assert read == (Requirement("status.phase", meant, (value,)), Requirement("metadata.name", "in", ("x",)))


@pytest.mark.parametrize(
    "text", ["a b", "=", "a=b=c", "a in", "a in (", "a in (b", "a in b", "a,", ",a", "-a", "a=$", "("]
)
def test_what_is_no_label_selector_is_refused(text: str) -> None:
    with pytest.raises(StatusError):
        parse_labels(text)


@pytest.mark.parametrize(
    "text", ["spec.nodeName", "spec.nodeName in (a)", "spec.containers=a", "=a", "status.phase=a\\b"]
)
def test_what_is_no_field_selector_is_refused(text: str) -> None:
    with pytest.raises(StatusError):
        parse_fields(KINDS[PODS], text)
