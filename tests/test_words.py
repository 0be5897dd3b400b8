"""The lint of words and of commit messages finds what it should, names the plain one, and lets plain text pass."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.lint_words import commits, faults_of_message, faults_of_text

WHY = "\n\nThe reason."


@pytest.mark.parametrize(
    ("name", "text", "faults"),
    [
        ("a.py", '"""Makes the Node anew."""', ["a.py:1: 'anew': write instead: again, or a verb with re-"]),
        ("a.py", "\n\n# 3 nodes are asked\n# for", ["a.py:3: 'asked # for': write instead: requested"]),
        ("a.py", 'f"3 nodes are asked " f"for"', ["requested"]),
        ("a.py", "Asked for, it is told of.", ["'Asked for'", "'told of': write instead: report(s), reported"]),
        ("a.py", "nobody asks for the node", ["request(s)"]),
        ("a.py", "ask for the node's remediation", ["request(s)"]),
        ("a.py", "it is let on again; lets the host on, once", ["power(s) on", "power(s) on"]),
        ("a.py", "peers vouch for it", ["confirm(s)"]),
        ("README.md", "## The map of the house", ["source layout"]),
        ("README.md", "every line stays in its room", ["respects the layers"]),
        ("a.md", "`install` and their kin", ["and so on"]),
        ("a.py", '"""Why it failed, or nothing."""', ["empty if none"]),
        ("a.md", "It is freed. What was freed is given back.", ["'What': write instead: begin with the actor"]),
        ("a.md", "It waits until then, or nothing is freed.", ["say what happens instead"]),
        ("a.md", "## What it costs\nWho is it? exit code 0: done, or nothing to do", []),
        ("a.py", "# What was freed is given back", ["'What': write instead: begin with the actor"]),
        ("a.py", '"""Whose turn it is.\n\nIs it?"""', ["'Whose': write instead: begin with the actor"]),
        ("a.py", '"""Whose turn is it? That of this host."""  # Who is next?', []),
        ("a.py", "# It is given back, or nothing is removed.\nprint('What is it')  # Whatever it is", []),
        ("a.py", "[each.asked for each in rounds], verdict.ask for verdict; made_anew(vouching_peers)", []),
        ("a.py", "let us go on again; we move house; there is room for three; ask for a password", []),
    ],
)
def test_a_word_to_avoid_is_named_with_its_place_and_the_plain_one(name: str, text: str, faults: list[str]) -> None:
    found = faults_of_text(name, text)
    assert len(found) == len(faults), found
    assert all(fault in each for fault, each in zip(faults, found)), found


@pytest.mark.parametrize(
    ("message", "faults"),
    [
        (f"Refuse a Node with finalizers{WHY}", []),
        (f"Pass the uid on{WHY}", []),
        (f"Feed the watchdog before the report{WHY}", []),
        (f"{'Add ' + 'x' * 68}{WHY}", []),
        (f"{'Add ' + 'x' * 69}{WHY}", ["has 73 characters; at most 72 are allowed"]),
        (f"Added a lint{WHY}", ["begins with 'Added'"]),
        (f"Adding a lint{WHY}", ["begins with 'Adding'"]),
        (f"Adds a lint{WHY}", ["begins with 'Adds'"]),
        (f"The lint is run{WHY}", ["begins with 'The'"]),
        (f"leader: add a lint{WHY}", ["begins with 'leader:'"]),
        ("Sort imports", ["has no body; say there why"]),
        ("What was found\n\n  \n", ["begins with 'What'", "has no body"]),
    ],
)
def test_a_commit_message_is_an_order_in_one_line_and_a_reason(message: str, faults: list[str]) -> None:
    found = faults_of_message("3f5456d", message)
    assert len(found) == len(faults), found
    assert all(fault in each for fault, each in zip(faults, found)), found


def test_only_commits_on_top_of_the_lint_count_and_no_merges(tmp_path: Path) -> None:
    def git(*words: str) -> None:
        names = ("-c", "user.name=a", "-c", "user.email=a@example.com")
        subprocess.run(["git", *names, *words], cwd=tmp_path, check=True, capture_output=True)

    assert list(commits(tmp_path)) == []  # no repository
    git("init", "--quiet", "--initial-branch=main")
    git("commit", "--allow-empty", "--message=before")
    assert list(commits(tmp_path)) == []
    git("branch", "beside")
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/lint_words.py").touch()
    git("add", ".")
    git("commit", "--message=with the lint")
    git("commit", "--allow-empty", "--message=after\n\nwhy")
    git("checkout", "--quiet", "beside")
    git("commit", "--allow-empty", "--message=beside")
    git("checkout", "--quiet", "main")
    git("merge", "--no-ff", "--message=merge", "beside")
    assert [message for _, message in commits(tmp_path)] == ["after\n\nwhy"]
    git("clone", "--quiet", "--depth=1", f"file://{tmp_path}", "shallow")
    assert list(commits(tmp_path / "shallow")) == []
