"""README.md and docs/: links lead somewhere, commands and manifests are right, and quoted sentences are in the code."""

from __future__ import annotations

import contextlib
import functools
import io
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml

from pp_hostd.cli import PLUGIN, PROGRAMS, parser_of
from pp_hostd.config import SETTINGS
from pp_hostd.leader.node_memory import Stage
from pp_hostd.leader.timeline import FINISHED
from pp_hostd.manual import commands
from pp_hostd.model import keys
from pp_hostd.service.journal import Message
from tests.pages import DOCS, PAGES, ROOT, anchors, blocks, links, rows, spans
from tests.pictures.drawn import IMAGES, drawn

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LONGEST_README = 120
APPLIED = {"fencing.md", "health.md", "power.md"}
"""Pages whose own tests have a real cluster take their manifests."""
OURS = ("pp-hostd.io/", "ha.k8s.io/")
INCOMPLETE = ("the following arguments are required", "expected one argument", "one of the arguments")
EACH_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def test_the_readme_is_read_in_a_minute() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= LONGEST_README


@EACH_PAGE
def test_every_link_leads_somewhere(page: Path) -> None:
    assert [link for link in links(page.read_text()) if fault_of_link(page, link)] == []


@pytest.mark.parametrize(
    ("link", "is_right"),
    [
        ("design.md", True),
        ("design.md#the-safety-rules", True),
        ("#the-budget", True),
        ("https://example.org/x", True),
        ("nowhere.md", False),
        ("design.md#nowhere", False),
        ("#nowhere", False),
        ("../../outside.md", False),
        ("http://example.org", False),
    ],
)
def test_a_link_that_leads_nowhere_is_found(link: str, is_right: bool) -> None:
    assert (not fault_of_link(DOCS / "design.md", link)) is is_right


def fault_of_link(page: Path, link: str) -> bool:
    """Whether this link on this page leads nowhere. Other sites are not asked."""
    parts = urlsplit(link)
    if parts.scheme:
        return parts.scheme != "https" or not parts.netloc
    target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not target.exists() or not target.is_relative_to(ROOT):
        return True
    return bool(parts.fragment) and (target.suffix != ".md" or parts.fragment not in anchors(target.read_text()))


def test_every_page_is_in_the_index() -> None:
    index = {(DOCS / link).resolve() for link in links((DOCS / "README.md").read_text()) if ":" not in link}
    assert {page for page in PAGES if DOCS in page.parents} - index == {DOCS / "README.md"}


@EACH_PAGE
def test_every_command_is_one_that_the_programs_take(page: Path) -> None:
    text = page.read_text()
    whole = [words for line in "\n".join(blocks(text)).splitlines() for words in ours(line)]
    named = [words for span in spans(text) for words in ours(span)]
    faults = [(words, fault) for words in whole if (fault := fault_of_command(words))]
    faults += [
        (words, fault) for words in named if (fault := fault_of_command(words)) and not fault.startswith(INCOMPLETE)
    ]
    assert faults == []


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("pp-leader status --json", ""),
        ("sudo pp-hostd maintenance on --why 'new RAM' --until 2h   # a comment", ""),
        ("pp-leader no-such-command", "invalid choice"),
        ("pp-leader status --colour", "unrecognized arguments"),
        ("pp-leader condemn", "the following arguments are required"),
    ],
)
def test_a_command_that_a_program_would_refuse_is_found(line: str, fault: str) -> None:
    (words,) = ours(line)
    assert fault in fault_of_command(words) if fault else fault_of_command(words) == ""


def ours(line: str) -> Iterator[list[str]]:
    """The commands of ours in a line of shell, each as its words."""
    if not re.match(r"(sudo |\.venv/bin/)*pp-(hostd|leader) ", line):
        return
    lexer = shlex.shlex(line.rstrip("\\"), posix=True, punctuation_chars=";|&")
    lexer.commenters, lexer.whitespace_split = "#", True
    command: list[str] = []
    for word in [*lexer, ";"]:
        if set(word) <= set(";|&"):
            words = [each.rpartition("/")[2] for each in command[:2]] + command[2:]
            words = words[1:] if words[:1] == ["sudo"] else words
            if words[:1] in (["pp-hostd"], ["pp-leader"]) and words[1:] and "..." not in words[1]:
                yield words
            command = []
        else:
            command.append(word)


parser = functools.cache(parser_of)


def fault_of_command(words: list[str]) -> str:
    """The program's own complaint about these arguments; empty if it takes them."""
    said = io.StringIO()
    with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
        try:
            parser(words[0]).parse_args(words[1:])
        except SystemExit as stop:
            return said.getvalue().strip().splitlines()[-1].partition(": ")[2] if stop.code else ""
    return ""


@EACH_PAGE
def test_every_target_of_make_is_there(page: Path) -> None:
    there = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    text = page.read_text()
    named = {found for code in [*blocks(text), *spans(text)] for found in re.findall(r"^make ([a-z-]+)", code, re.M)}
    assert named - there == set()


@EACH_PAGE
def test_every_manifest_is_yaml_and_ours_are_applied_by_tests(page: Path) -> None:
    for block in blocks(page.read_text()):
        if block.startswith(("apiVersion:", "groups:", "kind:")):
            for each in yaml.safe_load_all(block):
                assert page.name in APPLIED or not str(each.get("apiVersion")).startswith(OURS)


@EACH_PAGE
def test_every_setting_in_a_block_is_one(page: Path) -> None:
    for block in blocks(page.read_text()):
        if block.startswith("[") and not block.startswith("[Service]"):  # a drop-in of systemd
            found = {f"{table}.{key}" for table, values in tomllib.loads(block).items() for key in values}
            assert found - set(SETTINGS) == set()


def code_in_one_line() -> str:
    """The code, with texts that go on in the next line made whole."""
    sources = (path.read_text() for path in (ROOT / "pp_hostd").rglob("*.py"))
    return "\n".join(re.sub(r"\"\s*\n\s*f?\"", "", source).replace('\\"', '"') for source in sources)


def test_the_sentences_of_troubleshooting_are_those_that_the_programs_print() -> None:
    code = code_in_one_line()
    page = (DOCS / "troubleshooting.md").read_text()
    told = [row.split("|")[1] for row in page.splitlines() if row.startswith("| `")]
    quoted = [part for cell in told for span in spans(cell) for part in span.split("…") if len(part.split()) > 2]
    assert len(quoted) > 40
    assert [part for part in quoted if part.strip() not in code] == []


def test_the_reference_has_every_command_and_every_name_in_the_cluster() -> None:
    page = (DOCS / "reference.md").read_text()
    named = set(spans(page))
    paths = {path for prog in PROGRAMS if prog != PLUGIN for path, _ in commands(prog)}  # which has those of pp-leader
    branches = {path for path in paths if any(other.startswith(f"{path} ") for other in paths)}
    assert paths - branches - named == set()
    names = {value for name, value in vars(keys).items() if name.isupper() and str(value).startswith(keys.PREFIX)}
    assert names - {keys.PREFIX} - named == set()


def test_the_reference_has_every_exit_code_that_the_help_tells() -> None:
    told = {(command, code) for command, code, _ in rows((DOCS / "reference.md").read_text(), "| command | code |")[1:]}
    for prog in (each for each in PROGRAMS if each != PLUGIN):
        for path, command in commands(prog):
            for code in re.findall(r"[Ee]xit code (\d)", command.epilog or ""):
                assert (path, code) in told


def test_the_reference_has_the_reason_of_every_event() -> None:
    page = (DOCS / "reference.md").read_text()
    told = {span for row in rows(page, "| reason | about |")[1:] for span in spans(f"`{row[0]}`")}
    stages = {"".join(word.capitalize() for word in stage.value.split()) for stage in Stage}
    assert stages - told == set()
    code = code_in_one_line()
    written = set(re.findall(r'(?:Noticed\(.*?|Notice\(|_failed\(port, )"([A-Z]\w+)"', code))
    assert len(written) > 7
    assert written - told == set()
    named = {value for value in told if not value.startswith("Fence")} - stages
    assert {
        value for value in named if f'"{value}"' not in code and value.lower() not in (FINISHED, "refused")
    } == set()


def test_the_reference_has_every_kind_of_line_in_the_journal() -> None:
    told = {row[1]: row[0] for row in rows((DOCS / "reference.md").read_text(), "| kind of line |")[1:]}
    assert told == {each.value: each.name.lower().replace("_", " ") for each in Message}


def test_every_picture_is_drawn_from_the_figures_as_they_are() -> None:
    for name, picture in drawn().items():
        assert (IMAGES / name).read_text() == picture, f"docs/images/{name} is out of date: run `make docs`"
