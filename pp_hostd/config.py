"""The configuration files, read into Settings, or every error in them at once."""

from __future__ import annotations

import itertools
import os
import re
import sys
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

from pp_hostd import timing
from pp_hostd.errors import UserError
from pp_hostd.files import FileError, read_whole
from pp_hostd.frozen import frozen
from pp_hostd.model.settings import Setting, Settings, every_setting, value_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEPTH = 2
"""Settings are a table and a key; what lies deeper is found on its parent's line."""

# In a document that is known to be valid, these decide where a statement ends: at a newline outside of them.
_MULTILINE_STRING = r'"""(?:[^"\\]+|\\.|"{1,2}(?!"))*"{3,5}' + r"|'''(?:[^']+|'{1,2}(?!'))*'{3,5}"
_TOKEN = re.compile(_MULTILINE_STRING + r"""|"(?:[^"\\]+|\\.)*"|'[^']*'|\#[^\n]*|[\[\]{}\n]""", re.DOTALL)

KeyPath = tuple[str, ...]


class DocumentError(Exception):
    """Text that is not TOML: why, and on which line."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


@frozen
class Document:
    """The values as parsed, and the lines of the tables and keys down to DEPTH."""

    values: dict[str, Any]
    lines: dict[KeyPath, int]


def parse_toml(content: bytes) -> Document:
    """Read a whole document, or say in one sentence why that can't be done. Any bytes may be given."""
    text = _decode(content)
    try:
        return Document(tomllib.loads(text), _lines(text))
    except RecursionError:
        raise DocumentError("is nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise DocumentError(f"is not valid TOML: {error}", _line_of(str(error), text)) from None
    except ValueError:
        raise DocumentError("holds a number with more digits than can be read") from None


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise DocumentError(f"is not UTF-8: byte 0x{error.object[error.start]:02x} can't stand there", line) from None


def _line_of(complaint: str, text: str) -> int:
    place = re.search(r"\(at line (\d+), column \d+\)$", complaint)
    return int(place[1]) if place else text.rstrip("\n").count("\n") + 1  # the other place is "at end of document"


def _lines(text: str) -> dict[KeyPath, int]:
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for line, statement in _statements(text):
        values = tomllib.loads(statement)
        is_header = statement.lstrip().startswith("[")
        for path in _paths(values, DEPTH):
            lines.setdefault(path if is_header else (table + path)[:DEPTH], line)
            if is_header:
                table = path
    return lines


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each statement of a valid document with its first line; comments and empty lines count as statements."""
    depth = begin = 0
    line = 1
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif token[0] == "\n" and depth == 0:
            statement = text[begin : token.end()]
            yield line, statement
            begin = token.end()
            line += statement.count("\n")
    yield line, text[begin:]


def _paths(values: dict[str, Any], depth: int) -> Iterator[KeyPath]:
    """Every table and key of parsed values, parents first."""
    for key, value in values.items():
        yield (key,)
        if isinstance(value, dict) and depth > 1:
            for path in _paths(value, depth - 1):
                yield (key, *path)


LONGEST_SHOWN = 120
WIDTH = 100


@frozen
class Problem:
    """One error. `message` completes a sentence that begins with the key, or without a key with the file."""

    file: str
    line: int | None
    message: str
    key: str = ""
    found: str = ""
    allowed: str = ""
    nearest: str = ""


class ConfigError(UserError):
    """Every error in the configuration, by file and line."""

    def __init__(self, errors: Sequence[Problem]) -> None:
        self.errors = list(errors)
        count = f"{_counted(len(errors), 'error')} in {_counted(len({error.file for error in errors}), 'file')}"
        super().__init__(
            f"the configuration can't be used\n{_report(self.errors)}\n{count}.",
            "Correct them and run check-config again; check-config --help lists every setting.",
        )


def dotted(path: Sequence[str]) -> str:
    """A key as it is written in TOML, with quotes where it needs them."""
    return ".".join(_shortened(part if re.fullmatch(r"[\w-]+", part, re.ASCII) else repr(part)) for part in path)


def shown(value: Any) -> str:
    """A TOML value on one line, whatever it is."""
    if isinstance(value, list):
        if value and all(isinstance(item, dict) for item in value):
            return "a list of tables"
        return _shortened(f"[{', '.join('[...]' if isinstance(item, list) else shown(item) for item in value)}]")
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int) and value.bit_length() > 64:
        return _shortened(hex(value))  # Python refuses to write long ones in decimal
    return _shortened(repr(value) if isinstance(value, str) else str(value))


def nearest(name: str, known: Sequence[str]) -> str:
    """The known name that was probably meant; empty if none."""
    from difflib import get_close_matches  # only a mistake needs it

    # Half of the letters are enough: whoever leaves a unit out, as in "retry", should see "retry_seconds".
    return next(iter(get_close_matches(name, known, 1, cutoff=0.5)), "")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_SHOWN else f"{text[: LONGEST_SHOWN - 3]}..."


def _report(errors: Sequence[Problem]) -> str:
    """Each file, below it its errors: the line, what stands there, and what is wrong with it."""
    report = ""
    for file, group in itertools.groupby(errors, key=lambda error: error.file):
        report += f"\n{file}\n"
        for error in group:
            place = f"  line {error.line:<5}" if error.line else "  "
            subject = _subject(error)
            report += f"{place}{subject}\n" if subject else ""
            report += _indented(error.message, len(place) * " " if subject else place)
    return report


def _subject(error: Problem) -> str:
    tables = {"a table": f"[{error.key}]", "a list of tables": f"[[{error.key}]]"}
    return tables.get(error.found, f"{error.key} = {error.found}") if error.key else ""


def _indented(message: str, place: str) -> str:
    margin = len(place) * " "
    wrapped = textwrap.TextWrapper(WIDTH, subsequent_indent=margin, break_long_words=False, break_on_hyphens=False)
    text = "".join(wrapped.fill(f"{margin}{line}") + "\n" for line in message.split("\n"))
    return place + text[len(place) :]


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
        document = parse_toml(read_whole(file, LIMIT_BYTES))
    except FileError as error:
        problems.append(Problem(file, None, error.message.removeprefix(f"{file}: ")))
        return
    except DocumentError as error:
        problems.append(Problem(file, error.line, error.message))
        return
    for path, value in _entries(document.values):
        key, source = dotted(path), Source(file, document.lines[path])
        accepted = SETTINGS[key].allowed.accept(value) if key in SETTINGS else None
        if accepted is None:
            problems.append(_problem(source, path, value))
        else:
            yield key, accepted, source


def _entries(values: dict[str, Any]) -> Iterator[tuple[KeyPath, Any]]:
    """Yields each entry that must be a setting: each key of a known table, and each other entry at the top."""
    for table, content in values.items():
        if table in TABLES and isinstance(content, dict):
            for name, value in content.items():
                yield (table, name), value
        else:
            yield (table,), content


def _problem(source: Source, path: KeyPath, value: Any) -> Problem:
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


def _meant(path: KeyPath, value: Any) -> str:
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
    """Yields the objections of timing.py, save where another error leaves the values in doubt."""
    # A problem without a key is a file that could not be read: it may set anything.
    doubted = {problem.nearest or problem.key for problem in problems}
    for broken in timing.broken(settings):
        if doubted.isdisjoint({"", *broken.keys, *(key.split(".")[0] for key in broken.keys)}):
            yield _contradiction(broken, settings, sources)


_HOSTLESS = "a Node does not say on which host it stands"
_FOR_MACHINES = {
    "power.cycle": _HOSTLESS,
    "remediations.metal3": _HOSTLESS,
    "remediations.metal3_proposed": _HOSTLESS,
    "health.machine_health_checks": "a MachineHealthCheck selects Machines, and a NodeHealthCheck needs no setting",
}


def _hostless(settings: Settings, sources: dict[str, Source]) -> Iterator[Problem]:
    """Only a Machine says on which BareMetalHost it stands."""
    if settings.api.machines != "node":
        return
    for key, why in _FOR_MACHINES.items():
        if value_of(settings, key):
            message = f'needs api.machines = "openshift" or "cluster-api": {why}'
            yield Problem(*sources[key], message, key, "true")


def _contradiction(broken: timing.Contradiction, settings: Settings, sources: dict[str, Source]) -> Problem:
    key = next(key for key in broken.keys if key in sources)  # the defaults do not contradict each other
    wide = max(len(each) for each in broken.keys)
    rows = [f"  {each:<{wide}} = {value_of(settings, each):<5g} {_place(sources.get(each))}" for each in broken.keys]
    message = "\n".join([f"contradicts other settings: {broken.sentence}", f"to mend it, {broken.change}", *rows])
    return Problem(*sources[key], message, key, f"{value_of(settings, key):g}")


def _place(source: Source | None) -> str:
    return f"{source.file}, line {source.line}" if source else "the default"
