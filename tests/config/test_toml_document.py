"""Where the keys of a TOML document stand, and what happens to text that is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pp_hostd.config import Document, DocumentError, KeyPath, parse_toml


def paths(document: Document) -> set[KeyPath]:
    tables = {(table,) for table in document.values}
    keys = {(table, key) for table, values in document.values.items() if isinstance(values, dict) for key in values}
    return tables | keys


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", {}),
        ("# a = 1\n\n", {}),
        ("a = 1", {("a",): 1}),
        ("[t]\na = 1\n[u]\na = 2\n", {("t",): 1, ("t", "a"): 2, ("u",): 3, ("u", "a"): 4}),
        ("\r\n[t]\r\na = 1\r\n", {("t",): 2, ("t", "a"): 3}),
        ("\ufeff[t]\n", {("t",): 1}),
        ("t.a = 1\nt.b = 2\n", {("t",): 1, ("t", "a"): 1, ("t", "b"): 2}),
        ("t = { a = 1, b = { c = 2 } }\n", {("t",): 1, ("t", "a"): 1, ("t", "b"): 1}),
        ("[t.u.v]\na = 1\n[t]\nb = 1\n", {("t",): 1, ("t", "u"): 1, ("t", "b"): 4}),
        ("[[t]]\na = 1\n[[t]]\na = 2\n", {("t",): 1, ("t", "a"): 2}),
        ("  [ \"t\" . 'u' ]  # ]\n", {("t",): 1, ("t", "u"): 1}),
        ('[t]\na = """\n[u]\nb = 1\n"""\nc = 1', {("t",): 1, ("t", "a"): 2, ("t", "c"): 6}),
        ("a = '''\n\"\"\"\n'''\nb = 1", {("a",): 1, ("b",): 4}),
        ('a = """"x\\""""""\nb = 1', {("a",): 1, ("b",): 2}),
        ("a = [ # ] \" '\n  [1,\n 2], ']'\n]\nb = 1", {("a",): 1, ("b",): 5}),
        ('"a\\"[" = ""\nb = \'\'\n"#" = 1', {('a"[',): 1, ("b",): 2, ("#",): 3}),
    ],
)
def test_every_table_and_key_is_found_on_its_line(text: str, lines: dict[KeyPath, int]) -> None:
    assert parse_toml(text.encode()).lines == lines


VALUES = [
    "1",
    "2024-01-01 00:00:00Z",
    '"]"',
    "'\"'",
    '"\\"[#"',
    '""',
    '"""\n[x]\n"""',
    '""""quoted""""',
    '"""a\\"""b\n\\\\"""',
    "'''\n'#\n''\n'''",
    "''''''",
    "'''x''''",
    "''''x'''''",
    "[\n]",
    "[ # [\n 1,\n [ '''\n]''' ],\n]",
    "{ a = [\n1 ], b.c = '}' }",
]
statement = st.one_of(
    st.tuples(st.just("key"), st.sampled_from(VALUES)),
    st.tuples(st.sampled_from(["table", "list of tables", "nothing"]), st.sampled_from(["", " # [ \" '''", "  "])),
)


@given(st.lists(statement, max_size=20))
def test_statements_are_told_apart_whatever_they_hold(statements: list[tuple[str, str]]) -> None:
    text = ""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, (kind, rest) in enumerate(statements):
        name, line = f"n{number}", text.count("\n") + 1
        if kind == "key":
            text += f"{name} = {rest}\n"
            path = (*table, name)
            lines[path] = line
        elif kind == "nothing":
            text += f"{rest}\n"
        else:
            text += f"[{name}]{rest}\n" if kind == "table" else f"[[{name}]]{rest}\n"
            table = (name,)
            lines[table] = line
    found = parse_toml(text.encode()).lines
    assert {path: line for path, line in found.items() if path[-1].startswith("n")} == lines


@given(st.one_of(st.binary(), st.text(alphabet="[]{}\"'=#\n\r.,ab1\\ ", max_size=60).map(str.encode)))
def test_any_bytes_are_a_document_with_all_its_lines_or_one_clear_error(content: bytes) -> None:
    try:
        document = parse_toml(content)
    except DocumentError as error:
        assert error.message
        assert "\n" not in error.message
        assert error.line is None or 1 <= error.line <= content.count(b"\n") + 1
    else:
        assert paths(document) <= set(document.lines)


@pytest.mark.parametrize(
    ("content", "line", "words"),
    [
        (b"[api]\nread = \n", 2, "Invalid value"),
        (b"[api]\n\na = 1\na = 2\n", 4, "overwrite a value"),
        (b"a = [\n1,\n\n", 2, "end of document"),
        (b"a = 1\nb = \xe9\n", 2, "is not UTF-8: byte 0xe9"),
        (b"\xef\xbb\xbfa = 1\n\nb = '\xff'", 3, "is not UTF-8: byte 0xff"),
        ("[api]".encode("utf-16"), 1, "is not UTF-8"),
        (b"a = 'x\0'", 1, "invalid character"),
        (b"a = " + b"[" * 100_000, None, "nested too deeply"),
        (b"a = " + b"{a=" * 100_000, None, "nested too deeply"),
        (b"a = " + b"1" * 5000, None, "more digits"),
    ],
)  # fmt: skip
def test_what_is_no_toml_is_reported_with_its_line(content: bytes, line: int | None, words: str) -> None:
    with pytest.raises(DocumentError, match=words) as caught:
        parse_toml(content)
    assert caught.value.line == line


def test_a_list_of_fifty_thousand_lines_is_one_statement() -> None:
    document = parse_toml(b"a = [\n" + b'"]",\n' * 50_000 + b"]\nb = 1\n")
    assert document.lines == {("a",): 1, ("b",): 50_003}


def test_a_key_of_a_hundred_parts_is_found_on_its_line() -> None:
    assert parse_toml(b"\na" + b".a" * 99 + b" = 1").lines == {("a",): 2, ("a", "a"): 2}
