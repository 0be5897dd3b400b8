"""Words that a reader stumbles over, and commit messages that say too little: run by `make lint`.

WORDS are searched in every text of the project, PROSE in Markdown pages only, HEADS in Python only. Identifiers are not
searched. Commits are checked from the one that added this file: a shallow clone knows fewer, an unpacked archive none.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SUFFIXES = {"", ".bu", ".conf", ".go", ".md", ".pml", ".preset", ".py", ".service", ".socket", ".spec"}
SUFFIXES |= {".target", ".toml", ".xml"}
NOT_OURS = {"LICENSE", "lint_words.py", "test_words.py"}  # the latter two quote the words
FOLDERS = (".ci", "docs", "etc", "packaging", "pp_hostd", "systemd", "tests")

WORDS = {
    "anew|afresh": "again, or a verb with re-: recreates, rewrites",
    r"asked(?: |-)for(?! \w+ in )": "requested",
    r"(?:nobody|who|MHC) asks? for|ask(?:s|ing)? for (?:[\w']+ ){0,3}remed\w+": "request(s)",
    "tells? of|telling of|told of|told about": "report(s), reported",
    "lets? (?:it |them |the host |hosts )?on(?= again| once|[.,:;])": "power(s) on, powered on",
    "vouch|vouches|vouched|vouching": "confirm(s), confirmed",
    "map of the house|floors of the house|the house": "source layout, layers, package",
    "(?:stays?|kept) in (?:its|their) rooms?|wrong room|rooms (?:to come|that)": "layer(s); respects the layers",
    "their kin|its kin|next of kin": "and so on",
    "what (?:became|becomes|has become) of": "the outcome of, what happens to",
    "does not go on by itself": "Blocked: needs an operator",
    "plainly well": "name the condition: healthy, needs work",
    "in office": "active",
    "or nothing(?=[.;])": 'say what is returned: "empty if none", "None if ..."',
}
PROSE = {
    r"(?<!#\s)(?-i:What|Who|Whose|Whoever)(?!\s[^.|]*[?])": "begin with the actor, then the verb",
    "or nothing(?! to do)": "say what happens instead",
}
HEADS = {
    r"(?:(?<=\"{3})|(?<!##\s)(?<=#\s))(?-i:What|Who|Whose|Whom|Whoever)(?!\s[^.\"]*[?])": "begin with the actor, then "
    "the verb",
}
"""Of docstrings and comments."""

BETWEEN = r"(?:\s|#|f?\")+"

LONGEST_SUBJECT = 72
VERBS = ("Bring", "Embed", "Exceed", "Feed", "Focus", "Need", "Ping", "Proceed", "Seed", "Shed", "Speed", "String")
"""Imperatives that end like other forms."""
NO_VERBS = re.compile("(A|After|All|An|Each|Every|How|In|It|No|Now|On|One|Our|That|The|This|What|When|Where|Whos?e?)$")


def main() -> int:
    faults = [fault for path in texts(ROOT) for fault in faults_of_text(str(path.relative_to(ROOT)), path.read_text())]
    faults += [fault for commit, message in commits(ROOT) for fault in faults_of_message(commit, message)]
    print("\n".join(faults) or "words: nothing to replace")
    return 1 if faults else 0


def faults_of_text(name: str, text: str) -> list[str]:
    searched = {**WORDS, **{".md": PROSE, ".py": HEADS}.get(Path(name).suffix, {})}
    found = [(hit, plain) for words, plain in searched.items() for hit in pattern(words).finditer(text)]
    return [
        f"{name}:{text.count(chr(10), 0, hit.start()) + 1}: {' '.join(hit[0].split())!r}: write instead: {plain}"
        for hit, plain in sorted(found, key=lambda each: each[0].start())
    ]


def pattern(words: str) -> re.Pattern[str]:
    """The words, also where a line, a comment or a string ends between two of them."""
    return re.compile(rf"\b(?:{words.replace(' ', BETWEEN)})\b", re.IGNORECASE)


def faults_of_message(commit: str, message: str) -> list[str]:
    machine_key, _, body = message.strip().partition("\n")
    first = machine_key.split(" ")[0]
    faults = []
    if len(machine_key) > LONGEST_SUBJECT:
        faults.append(f"has {len(machine_key)} characters; at most {LONGEST_SUBJECT} are allowed")
    if not is_imperative(first):
        faults.append(f"begins with {first!r}; begin with a verb as in an order: Add, Keep, Refuse")
    if not body:
        faults.append("has no body; say there why the change is made")
    return [f"commit {commit[:12]}: {machine_key!r} {fault}" for fault in faults]


def is_imperative(word: str) -> bool:
    if word in VERBS:
        return True
    return word.isalpha() and word.istitle() and not NO_VERBS.match(word) and not re.search("(?:ed|ing|[^s]s)$", word)


def texts(root: Path) -> Iterator[Path]:
    files = [*root.glob("*"), *(path for folder in FOLDERS for path in sorted((root / folder).rglob("*")))]
    return (path for path in files if path.is_file() and path.suffix in SUFFIXES and path.name not in NOT_OURS)


def commits(root: Path) -> Iterator[tuple[str, str]]:
    """Hash and message of each commit, but merges, on top of the one that added this file; none without git."""
    own = str(Path(__file__).relative_to(ROOT))
    added = git(root, "log", "--format=%H", "--", own).split()
    if added:
        log = git(root, "log", "--no-merges", "--ancestry-path", "--format=%H%x01%B%x02", f"{added[-1]}..HEAD")
        for entry in log.split("\x02")[:-1]:
            commit, _, message = entry.strip().partition("\x01")
            yield commit, message


def git(root: Path, *words: str) -> str:
    try:
        done = subprocess.run(["git", *words], cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except FileNotFoundError:
        return ""
    return done.stdout if done.returncode == 0 else ""


if __name__ == "__main__":
    sys.exit(main())
