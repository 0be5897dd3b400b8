"""The file in which a campaign adds up over several runs of the command: what was run, how far, and the sums."""

from __future__ import annotations

import hashlib
import os
import re
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pp_hostd
from pp_hostd.errors import UserError
from pp_hostd.files import FileError, read_whole, write_whole
from pp_hostd.model.record import Fields, Form, Refused, Unreadable, document, read, render
from pp_hostd.model.settings import every_setting, value_of
from pp_hostd.sim.campaign import LEAST_NODES, Arena, Found, Sums

LIMIT_BYTES = 64 * 1024
SENTENCE = Form("a sentence", re.compile(".{1,4000}"))


def resumed(path: str, arena: Arena) -> Sums | None:
    """The sums so far, if there is such a file; it must be about the same settings and nodes."""
    if not os.path.lexists(path):
        return None
    found = read(path, _parsed, read_whole(path, LIMIT_BYTES))
    if isinstance(found, Unreadable):
        raise FileError(f"{path}: is no file of a campaign: {found.reason}", "Name another file, or remove this one.")
    of, sums = found
    differing = [_difference(key, of.get(key), value) for key, value in _of(arena).items() if of.get(key) != value]
    if differing:
        message = f"{path}: its sums are of other runs: {'; '.join(differing)}"
        raise UserError(message, "Run it as it was run before, or name another file.")
    return sums


def save(path: str, arena: Arena, sums: Sums) -> None:
    write_whole(path, render({"of": _of(arena), "sums": asdict(sums)}).encode())


def _of(arena: Arena) -> dict[str, Any]:
    """All that a campaign's sums depend on, but for the seeds; as JSON has it."""
    settings = {setting.key: value_of(arena.settings, setting.key) for setting in every_setting()}
    nodes = {"least nodes": LEAST_NODES, "most nodes": arena.most_nodes}
    plain = {key: list(value) if isinstance(value, tuple) else value for key, value in settings.items()}
    return {"version": pp_hostd.__version__, "code": _code(), **nodes, **plain}


def _code() -> str:
    """Of all that is in the package: a version in the making changes from day to day."""
    digest = hashlib.sha256()
    for path in sorted(Path(pp_hostd.__file__).parent.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _difference(key: str, there: Any, here: Any) -> str:
    return f"{key} is {there!a} there and {here!a} here"


def _parsed(data: bytes) -> tuple[dict[str, Any], Sums]:
    whole = document(data, LIMIT_BYTES)
    sums = whole.section("sums")
    numbers = {each.name: _number(sums, each.name) for each in fields(Sums) if each.type == "int"}
    longest = sums.seconds("longest_isolation_seconds", 0, 1e9)
    found = tuple(_found(Fields(each, "found")) for each in sums.elements("found"))
    return whole.section("of").without(), Sums(**numbers, longest_isolation_seconds=longest, found=found)


def _found(each: Fields) -> Found:
    return Found(_number(each, "seed"), each.text("sentence", SENTENCE))


def _number(sums: Fields, key: str) -> int:
    value = sums.anything(key)
    if type(value) is not int or value < 0:
        raise Refused(f"{key} is not a whole number from 0 on")
    return value
