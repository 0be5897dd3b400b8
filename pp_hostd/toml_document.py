"""A TOML document: its values, and the line on which each of them stands (which no TOML parser of Python's tells)."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from pp_hostd.frozen import frozen

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEPTH = 2
"""Settings are a table and a key; what lies deeper is found on its parent's line."""

# In a document that is known to be valid, these decide where a statement ends: at a newline outside of them.
_MULTILINE_STRING = r'"""(?:[^"\\]+|\\.|"{1,2}(?!"))*"{3,5}' + r"|'''(?:[^']+|'{1,2}(?!'))*'{3,5}"
_TOKEN = re.compile(_MULTILINE_STRING + r"""|"(?:[^"\\]+|\\.)*"|'[^']*'|\#[^\n]*|[\[\]{}\n]""", re.DOTALL)

Path = tuple[str, ...]


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
    lines: dict[Path, int]


def parse(content: bytes) -> Document:
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


def _lines(text: str) -> dict[Path, int]:
    lines: dict[Path, int] = {}
    table: Path = ()
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


def _paths(values: dict[str, Any], depth: int) -> Iterator[Path]:
    """Every table and key of parsed values, parents first."""
    for key, value in values.items():
        yield (key,)
        if isinstance(value, dict) and depth > 1:
            for path in _paths(value, depth - 1):
                yield (key, *path)
