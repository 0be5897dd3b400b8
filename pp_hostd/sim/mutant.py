"""A safety rule is taken out: a small change of the real code, in this process and for a while only."""

from __future__ import annotations
import __future__ as features

import contextlib
import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

from pp_hostd.frozen import frozen


@frozen
class Change:
    """In the source of a function or method (`package.module:Class.method`), this line is another one."""

    where: str
    old: str
    new: str


@frozen
class Mutant:
    """`rule` is its number in the design, `theme` the kind of day on which it is missed most, if there is one."""

    name: str
    rule: int
    theme: str
    changes: tuple[Change, ...]


def mutant(name: str, rule: int, theme: str, *changes: tuple[str, str, str]) -> Mutant:
    return Mutant(name, rule, theme, tuple(Change(f"pp_hostd.{where}", old, new) for where, old, new in changes))


@contextlib.contextmanager
def taken_out(taken: Mutant) -> Iterator[None]:
    """Inside, the real code runs without that rule."""
    undo: list[tuple[Any, str, Any]] = []
    try:
        for change in taken.changes:
            undo += _changed(change)
        yield
    finally:
        for owner, name, value in reversed(undo):
            setattr(owner, name, value)


def _changed(change: Change) -> list[tuple[Any, str, Any]]:
    module_name, _, path = change.where.partition(":")
    owner: Any = importlib.import_module(module_name)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    found = getattr(owner, name)
    source = getattr(found, "mutated_source", "") or textwrap.dedent(inspect.getsource(found))
    if source.count(change.old) != 1:
        raise ValueError(f"{change.where}: {change.old!r} stands there {source.count(change.old)} times, not once")
    source = source.replace(change.old, change.new)
    made: dict[str, Any] = {}
    code = compile(source, f"<{change.where} without a rule>", "exec", features.annotations.compiler_flag)
    exec(code, found.__globals__, made)
    made[name].mutated_source = source
    # A module that has imported the function has it under the same name.
    owners = [owner] if outer else [each for each in list(sys.modules.values()) if getattr(each, name, None) is found]
    for each in owners:
        setattr(each, name, made[name])
    return [(each, name, found) for each in owners]
