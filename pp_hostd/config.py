"""The configuration files, read into Settings, or every error in them at once."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import fields
from typing import Any, NamedTuple

from pp_hostd import timing, toml_document
from pp_hostd.config_error import ConfigError, Problem, dotted, nearest, shown
from pp_hostd.files import FileError, read_whole
from pp_hostd.frozen import frozen
from pp_hostd.model.settings import Setting, Settings, every_setting, value_of

LIMIT_BYTES = 64 * 1024

SETTINGS = {setting.key: setting for setting in every_setting()}
TABLES = [field.name for field in fields(Settings)]


class Source(NamedTuple):
    """Where a setting was set."""

    file: str
    line: int


@frozen
class Loaded:
    """The settings, the files that were read, and where each setting was set that is not left at its default."""

    settings: Settings
    files: tuple[str, ...]
    sources: dict[str, Source]


def load(path: str) -> Loaded:
    """Read `path`, and over it, in the order of their names, the files of the conf.d beside it."""
    problems: list[Problem] = []
    files = (path, *_drop_ins(os.path.join(os.path.dirname(path), "conf.d"), problems))
    values: dict[str, Any] = {}
    sources: dict[str, Source] = {}
    for file in files:
        for key, value, source in _read(file, problems):
            values[key], sources[key] = value, source
    settings = _settings(values)
    problems += _contradictions(settings, sources, problems)
    problems += _hostless(settings, sources)
    if problems:
        order = {file: position for position, file in enumerate(files)}
        raise ConfigError(sorted(problems, key=lambda each: (order.get(each.file, len(files)), each.line or 0)))
    return Loaded(settings, files, sources)


def _drop_ins(directory: str, problems: list[Problem]) -> list[str]:
    if not os.path.lexists(directory):
        return []
    try:
        names = sorted(os.listdir(directory))
    except OSError as error:
        problems.append(Problem(directory, None, f"must be a directory that can be read ({error.strerror})"))
        return []
    return [os.path.join(directory, name) for name in names if name.endswith(".toml") and not name.startswith(".")]


def _read(file: str, problems: list[Problem]) -> Iterator[tuple[str, Any, Source]]:
    """The settings of one file that are as they should be; what is not goes to `problems`."""
    try:
        document = toml_document.parse(read_whole(file, LIMIT_BYTES))
    except FileError as error:
        problems.append(Problem(file, None, error.message.removeprefix(f"{file}: ")))
        return
    except toml_document.DocumentError as error:
        problems.append(Problem(file, error.line, error.message))
        return
    for path, value in _entries(document.values):
        key, source = dotted(path), Source(file, document.lines[path])
        accepted = SETTINGS[key].allowed.accept(value) if key in SETTINGS else None
        if accepted is None:
            problems.append(_problem(source, path, value))
        else:
            yield key, accepted, source


def _entries(values: dict[str, Any]) -> Iterator[tuple[toml_document.Path, Any]]:
    """What must be a setting: each key of a known table, and whatever else stands outside of those."""
    for table, content in values.items():
        if table in TABLES and isinstance(content, dict):
            for name, value in content.items():
                yield (table, name), value
        else:
            yield (table,), content


def _problem(source: Source, path: toml_document.Path, value: Any) -> Problem:
    key, allowed, meant = dotted(path), "", ""
    if key in SETTINGS:
        allowed = _allowed(SETTINGS[key])
    elif key in TABLES:
        allowed = f"a table, written [{key}]"
    else:
        meant = _meant(path, value)
    message = f"must be {allowed}" if allowed else _unknown(meant, value)
    return Problem(*source, message, key, shown(value), allowed, meant)


def _unknown(meant: str, value: Any) -> str:
    kind = "table" if isinstance(value, dict) else "setting"
    advice = f"did you mean {f'[{meant}]' if meant in TABLES else meant}?" if meant else f"no {kind} is like it"
    return f"is not a known {kind}; {advice}"


def _allowed(setting: Setting) -> str:
    return f"{setting.allowed} ({setting.unit})" if setting.unit else str(setting.allowed)


def _meant(path: toml_document.Path, value: Any) -> str:
    """The nearest known name: for a table a table; for a key the same in another table, or one like it, here first."""
    *table, name = path
    if not table and isinstance(value, dict):
        return nearest(name, TABLES)
    in_table = {setting.name: key for key, setting in SETTINGS.items() if [setting.table] == table}
    anywhere = {setting.name: key for key, setting in SETTINGS.items()}
    candidates = (name, anywhere), (nearest(name, list(in_table)), in_table), (nearest(name, list(anywhere)), anywhere)
    return next((known[meant] for meant, known in candidates if meant in known), "")


def _settings(values: dict[str, Any]) -> Settings:
    tables: dict[str, dict[str, Any]] = {table: {} for table in TABLES}
    for key, value in values.items():
        table, name = key.split(".")
        tables[table][name] = value
    return Settings(**{table: type(getattr(Settings, table))(**content) for table, content in tables.items()})


def _contradictions(settings: Settings, sources: dict[str, Source], problems: list[Problem]) -> Iterator[Problem]:
    """What timing.py objects to, save where the values are in doubt because of another error."""
    # A problem without a key is a file that could not be read: it may set anything.
    doubted = {problem.nearest or problem.key for problem in problems}
    for broken in timing.broken(settings):
        if doubted.isdisjoint({"", *broken.keys, *(key.split(".")[0] for key in broken.keys)}):
            yield _contradiction(broken, settings, sources)


def _hostless(settings: Settings, sources: dict[str, Source]) -> Iterator[Problem]:
    """Only a Machine says on which BareMetalHost it stands."""
    if settings.power.cycle and settings.api.machines == "node":
        message = 'needs api.machines = "openshift" or "cluster-api": a Node does not say on which host it stands'
        yield Problem(*sources["power.cycle"], message, "power.cycle", "true")


def _contradiction(broken: timing.Contradiction, settings: Settings, sources: dict[str, Source]) -> Problem:
    key = next(key for key in broken.keys if key in sources)  # the defaults do not contradict each other
    wide = max(len(each) for each in broken.keys)
    rows = [f"  {each:<{wide}} = {value_of(settings, each):<5g} {_place(sources.get(each))}" for each in broken.keys]
    message = "\n".join([f"contradicts other settings: {broken.sentence}", f"to mend it, {broken.change}", *rows])
    return Problem(*sources[key], message, key, f"{value_of(settings, key):g}")


def _place(source: Source | None) -> str:
    return f"{source.file}, line {source.line}" if source else "the default"
