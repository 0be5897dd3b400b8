"""The pages that people read, as tests read them: their blocks, tables, code spans, links and headings."""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), ROOT / "tests" / "README.md"])


def blocks(page: str) -> list[str]:
    """The indented blocks of the page."""
    grouped = itertools.groupby(page.splitlines(), key=lambda line: line.startswith("    "))
    return [textwrap.dedent("\n".join(block)) for indented, block in grouped if indented]


def rows(page: str, after: str) -> list[list[str]]:
    """The rows of the first table at or after this text, its head among them."""
    rest = page[page.index(after) :]
    lines = rest[rest.index("|") :].split("\n\n")[0].splitlines()
    return [[cell.strip().strip("`") for cell in re.split(r"\|", line)[1:-1]] for line in lines if "---" not in line]


def prose(page: str) -> str:
    """The page without its indented blocks."""
    return "\n".join(line for line in page.splitlines() if not line.startswith("    "))


def spans(page: str) -> list[str]:
    """The texts between backquotes, each as one line."""
    return [" ".join(found.split()) for found in re.findall(r"`([^`]+)`", prose(page))]


def links(page: str) -> Iterator[str]:
    """The targets of links and pictures; of a link by name that is defined nowhere, the name."""
    text = re.sub(r"`[^`]*`", "", prose(page))
    defined = dict(re.findall(r"^\[([^\]]+)\]: +(\S+)$", text, re.MULTILINE))
    yield from defined.values()
    yield from (name for name in re.findall(r"\]\[([^\]]+)\]", text) if name not in defined)
    yield from re.findall(r"\]\(\s*<?([^)\s>]+)>?[^)]*\)", text)
    yield from re.findall(r"\b(?:src|srcset|href)=\"([^\"]+)\"", text)


def anchors(page: str) -> set[str]:
    """The anchors of the headings, as GitHub makes them."""
    found: list[str] = []
    for heading in re.findall(r"^#+ +(.*?) *$", prose(page), re.MULTILINE):
        bare = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").lower()
        slug = re.sub(r"[^\w\- ]", "", bare).replace(" ", "-")
        found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return set(found)
