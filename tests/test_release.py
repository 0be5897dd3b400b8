"""Facts that stand in more than one place of a release, and must be the same in all."""

from __future__ import annotations

import re
from pathlib import Path

from pp_hostd import __version__

CHECKOUT = Path(__file__).parents[1]
SPEC = (CHECKOUT / "rpm.spec").read_text()


def test_the_spec_has_the_version_of_the_program() -> None:
    assert re.findall(r"^Version: +(\S+)$", SPEC, re.MULTILINE) == [__version__]
    assert f" - {__version__}-1\n" in SPEC.partition("%changelog\n")[2]


def test_the_bundled_libraries_are_those_that_are_pinned() -> None:
    pinned = re.findall(
        r"^(\w+)==(\S+) --hash=sha256:[0-9a-f]{64}$", (CHECKOUT / "packaging/bundled.txt").read_text(), re.M
    )
    assert dict(pinned) == dict(re.findall(r"^%global (\w+)_version (\S+)$", SPEC, re.MULTILINE))
    for name, _ in pinned:
        assert f"Provides:       bundled(python3dist({name})) = %{{{name}_version}}\n" in SPEC


def test_the_packages_require_what_the_project_does() -> None:
    project = (CHECKOUT / "pyproject.toml").read_text()
    dependencies = re.findall(
        r'^    "(\w+)>=([\d.]+)', project.partition("dependencies = [")[2].partition("\n]")[0], re.M
    )
    for name, least in dependencies:
        assert f"python3-{name.lower()} >= {least}" in SPEC
    for name in re.findall(r'"(\w+)>=', re.search(r"^admin = \[.*\]$", project, re.MULTILINE)[0]):  # type: ignore[index]
        assert f"Requires:       python3-{name}\n" in SPEC
