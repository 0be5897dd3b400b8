"""`frozen` makes the same classes as `dataclass(frozen=True)`, but for how much of them is generated."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields
from functools import cached_property
from typing import Any, Callable

import pytest

from pp_hostd.frozen import frozen, replace

MAKERS: list[Callable[[type], type]] = [frozen, dataclass(frozen=True)]
BY_MAKER = pytest.mark.parametrize("make", MAKERS, ids=["frozen", "dataclass"])


@frozen
class Host:
    """For pickle, which wants a name that it can find."""

    name: str
    links: tuple[str, ...] = ()


def host(make: Callable[[type], type]) -> Any:
    class Host:
        """With one of each kind of field."""

        name: str
        links: tuple[str, ...] = ()
        labels: dict[str, str] = field(default_factory=dict)
        key: bytes = field(default=b"secret", repr=False)
        seen: int = field(default=0, compare=False)

        @cached_property
        def loud(self) -> str:
            return self.name.upper()

    return make(Host)


@BY_MAKER
def test_fields_are_given_by_place_or_name_and_have_defaults(make: Callable[[type], type]) -> None:
    Host = host(make)  # noqa: N806
    made = Host("a", labels={"b": "c"})
    assert (made.name, made.links, made.labels, made.key, made.seen) == ("a", (), {"b": "c"}, b"secret", 0)
    assert Host("a").labels is not Host("a").labels
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'name'"):
        Host()
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        Host("a", colour="red")


@BY_MAKER
def test_equal_are_those_of_one_class_with_equal_fields(make: Callable[[type], type]) -> None:
    class Empty:
        pass

    class Other:
        pass

    class One:
        name: tuple[str, ...]

    Host, Empty_, Other_, One_ = host(make), make(Empty), make(Other), make(One)  # noqa: N806
    assert Host("a") == Host("a", seen=7) != Host("b")
    assert Host("a") != Host("a", key=b"another")
    assert Empty_() == Empty_() != Other_()
    assert One_(("a",)) == One_(("a",)) != ("a",)
    assert hash(One_(("a",))) == hash(One_(("a",))) and hash(Empty_()) == hash(Empty_())
    assert len({One_(("a",)), One_(("a",)), One_(("b",)), Empty_(), Empty_()}) == 3
    with pytest.raises(TypeError, match="unhashable type: 'dict'"):
        hash(Host("a"))


@BY_MAKER
def test_nothing_can_be_changed(make: Callable[[type], type]) -> None:
    made = host(make)("a")
    with pytest.raises(FrozenInstanceError, match="name"):
        made.name = "b"
    with pytest.raises(FrozenInstanceError, match="name"):
        del made.name
    with pytest.raises(FrozenInstanceError, match="colour"):
        made.colour = "red"
    assert (made.name, made.loud, made.loud) == ("a", "A", "A")


@BY_MAKER
def test_its_text_shows_the_fields_that_may_be_shown(make: Callable[[type], type]) -> None:
    expected = "host.<locals>.Host(name='a', links=(), labels={}, seen=0)"
    assert repr(host(make)("a")) == expected


@BY_MAKER
def test_the_tools_of_dataclasses_take_it(make: Callable[[type], type]) -> None:
    Host = host(make)  # noqa: N806
    assert [each.name for each in fields(Host)] == ["name", "links", "labels", "key", "seen"]
    other = dataclasses.replace(Host("a", seen=3), name="b")
    assert (other, other.seen) == (Host("b"), 3)
    assert asdict(Host("a")) == {"name": "a", "links": (), "labels": {}, "key": b"secret", "seen": 0}


def test_another_takes_its_place_with_some_fields_changed() -> None:
    first = host(frozen)("a", labels={"c": "d"}, seen=3)
    for other in (replace(first, name="b", links=("eth0",)), replace(first, links=("eth0",), name="b")):
        assert (other.name, other.links, other.labels, other.key, other.seen) == (
            "b",
            ("eth0",),
            {"c": "d"},
            b"secret",
            3,
        )
    assert first.name == "a" and other.labels is first.labels
    assert replace(first) == first and replace(first) is not first
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        replace(first, colour="red")


def test_what_has_no_fields_or_builds_on_another_is_replaced_by_its_like() -> None:
    @frozen
    class Empty:
        pass

    class Guest(Host):
        pass

    assert replace(Empty()) == Empty()
    assert type(replace(Guest("a"), name="b")) is Guest
    with pytest.raises(TypeError):
        replace(Empty(), name="b")  # type: ignore[call-arg]


@BY_MAKER
def test_what_builds_on_another_has_its_fields_first(make: Callable[[type], type]) -> None:
    Host = host(make)  # noqa: N806

    class Guest(Host):  # type: ignore[misc,valid-type]
        at: str = ""

    Guest_ = make(Guest)  # noqa: N806
    assert Guest_("a", at="b") == Guest_("a", (), {}, b"secret", 0, "b") != Guest_("a")
    assert Guest_("a") != Host("a")


@BY_MAKER
def test_a_method_of_its_own_stays(make: Callable[[type], type]) -> None:
    class Named:
        name: str

        def __repr__(self) -> str:
            return self.name

    assert repr(make(Named)("a")) == "a"


def test_it_can_be_copied_and_sent_to_another_process() -> None:
    made = Host("a", ("eth0",))
    assert copy.deepcopy(made) == made == pickle.loads(pickle.dumps(made))


def test_a_field_may_have_any_name() -> None:
    """Such as one that the generated code might want for itself."""

    @frozen
    class Odd:
        found: dict[str, int] = field(default_factory=dict)
        missing: tuple[str, ...] = ()
        cls: str = "first"

    assert (Odd().found, Odd().missing, Odd().cls) == ({}, (), "first")
    assert Odd({"a": 1}, ("b",)).found == {"a": 1}
