"""`pytest --quick`: the tests that need neither another program nor a long hunt, found by what their code can reach.

A test is left out if its own code, a fixture that it asks for, or a helper that either of them uses can start a program
or plays simulated days. Whatever starts one all the same is refused, so that nobody is misled about what is quick.

`--control-plane=without` and `--control-plane=only` find in the same way who can start a real control plane.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
import types
from collections.abc import Generator, Iterator
from typing import Any, Callable

import pytest
from hypothesis import settings

from tests.harness.build import binaries
from tests.harness.examples import QUICK

STARTERS = ("subprocess", "multiprocessing")
LONG = ("pp_hostd.sim.", "tests.fuzz")
"""Bad days, and hostile inputs by the thousand."""
OURS = ("tests.", "pp_hostd.")
ANY_FIXTURE = object()
"""Stands for a fixture that a test chooses while it runs: nobody knows what that one reaches."""
STARTS = ("subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="only tests that start no program and hunt for nothing long")
    which = "only tests that need no control plane, or only those that may need one"
    parser.addoption("--control-plane", choices=("without", "only"), help=which)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--quick"):
        settings.register_profile("quick", deadline=None, max_examples=QUICK)
        settings.load_profile("quick")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    control_plane = config.getoption("--control-plane")
    if control_plane:
        _keep(config, items, Known(needs_control_plane), reaching=control_plane == "only")
    if config.getoption("--quick"):
        _keep(config, items, Known(takes_long), reaching=False)


def _keep(config: pytest.Config, items: list[pytest.Item], known: Known, *, reaching: bool) -> None:
    """Deselect the other tests."""
    kept = [_reaches(item, known) is reaching for item in items]
    config.hook.pytest_deselected(items=[item for item, keep in zip(items, kept) if not keep])
    items[:] = [item for item, keep in zip(items, kept) if keep]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    _Guard.of = item.name if item.config.getoption("--quick") else ""
    try:
        return (yield)
    finally:
        _Guard.of = ""


class _Guard:
    """Refuses to start programs while a quick test runs."""

    of = ""

    @classmethod
    def hear(cls, event: str, _: tuple[Any, ...]) -> None:
        if cls.of and event in STARTS:
            raise RuntimeError(f"{cls.of} starts a program ({event}), and tests/quick.py has taken it for a quick one")


sys.addaudithook(_Guard.hear)


def takes_long(value: Any) -> bool:
    """Whether no quick test may reach this value."""
    return value is ANY_FIXTURE or _is_of(value, *STARTERS, *LONG)


def needs_control_plane(value: Any) -> bool:
    return value is ANY_FIXTURE or value is binaries


class Known:
    """The values that were looked at, by their id, each with whether it reaches a value that `is_sought`."""

    def __init__(self, is_sought: Callable[[Any], bool]) -> None:
        self.is_sought = is_sought
        self._kept: list[Any] = []  # so that no id is used twice
        self.reaches: dict[int, bool] = {}

    def add(self, value: Any, reaches: bool) -> None:
        self._kept.append(value)
        self.reaches[id(value)] = reaches


def _reaches(item: pytest.Item, known: Known) -> bool:
    assert isinstance(item, pytest.Function)
    manager = item.session._fixturemanager
    if "pytester" in item.fixturenames and known.is_sought(subprocess):  # pytest's own, which runs pytest as a program
        return True
    definitions = [each for name in item.fixturenames for each in manager.getfixturedefs(name, item) or ()]
    return any(reaches(function, known) for function in (item.function, *(each.func for each in definitions)))


def reaches(function: Any, known: Known) -> bool:
    """Tells whether running this may use what is sought."""
    todo: list[tuple[Any, Any]] = [(function, None)]
    users: dict[int, tuple[Any, Any]] = {}
    """The values that were seen, by their id, each with a value that uses it."""
    while todo:
        value, user = todo.pop()
        if id(value) in users or known.reaches.get(id(value)) is False:
            continue
        users[id(value)] = value, user
        if known.reaches.get(id(value)) or known.is_sought(value):
            while value is not None:
                known.add(value, True)
                value = users[id(value)][1]
            return True
        todo += [(part, value) for part in _parts(value)]
    for value, _ in users.values():
        known.add(value, False)
    return False


def _parts(value: Any) -> Iterator[Any]:
    """Yields the values that this value uses; of functions and classes, it looks only into our own."""
    value = inspect.unwrap(value) if callable(value) else value
    value = getattr(getattr(value, "hypothesis", None), "inner_test", value)
    if isinstance(value, (classmethod, staticmethod)):
        yield value.__func__
    elif isinstance(value, property):
        yield value.fget
    elif isinstance(value, (dict, tuple, list)):
        yield from value.values() if isinstance(value, dict) else value
    elif inspect.isclass(value):
        yield from (part for each in value.__mro__ if _is_of(each, *OURS) for part in vars(each).values())
    elif inspect.isfunction(value) and _is_of(value, *OURS):
        yield from _used_by(value)


def _used_by(function: types.FunctionType) -> Iterator[Any]:
    names = set(_names(function.__code__))
    yield from function.__defaults__ or ()
    if "getfixturevalue" in names:
        yield ANY_FIXTURE
    if "fork" in names:
        yield subprocess  # or as good as that
    for name in names:
        used = function.__globals__.get(name)
        yield used
        if isinstance(used, types.ModuleType) and _is_of(used, *OURS):
            yield from (vars(used).get(each) for each in names)


def _is_of(value: Any, *packages: str) -> bool:
    """Whether it is one of them, or it or its class is defined there."""
    place = value.__name__ if isinstance(value, types.ModuleType) else getattr(value, "__module__", "")
    return str(place).startswith(packages) or type(value).__module__.startswith(packages)


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
