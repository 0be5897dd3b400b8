"""Runs the suite under the oldest Python that users have: the oldest guests' own, with the oldest libraries allowed.

python -m tests.machines.oldest [pytest's arguments]. It runs in a root file system like theirs, on this machine's
kernel.
"""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
from pathlib import Path

from pp_hostd.errors import UserError
from tests.harness.cache import cache
from tests.machines.debian import OLDEST, kept, root_tar, run
from tests.machines.tools import install_tools

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

REPOSITORY = Path(__file__).resolve().parents[2]
PYTHON = "3.9"
PLACE = f"usr/local/lib/python{PYTHON}/dist-packages"
PLATFORMS = [f"{name}_{platform.machine()}" for name in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")]
"""Of binaries that run with this Debian's C library."""
ONLY_FOR_OLD = ("exceptiongroup", "typing-extensions")
"""pip asks its own Python, not that one, which of a package's needs apply."""
NOT_THERE = ("pp-hostd", "import-linter", "mypy", "ruff", "types-", "vermin")
"""Linters run under the newest Python, and so does the test of their rules."""
BOUND = ("/dev", "/proc", "/sys", "/tmp")
START = """
root=$1; shift
mount --bind "$root" "$root"
mkdir -p "$root/repository"; mount --rbind {repository} "$root/repository"
for place in {places}; do mkdir -p "$root$place"; mount --rbind "$place" "$root$place"; done
mkdir -p "$root/outside"
pivot_root "$root" "$root/outside"
umount --lazy /outside
exec env --chdir=/repository "$@"
"""
"""No chroot: those who are in one may make no namespaces, as tests do."""


def root() -> Path:
    """The file system, with all that the suite imports."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    oldest = [each.replace(">=", "==").partition(";")[0] for each in project["dependencies"]]
    extras = project["optional-dependencies"]
    wanted = (*ONLY_FOR_OLD, *extras["admin"], *extras["dev"])
    others = [each for each in wanted if not each.startswith(NOT_THERE)]
    tar, source = root_tar(OLDEST), hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    return kept("oldest", [str(tar), source, *oldest, *others], lambda new: _build(tar, oldest, others, new))


def _build(tar: Path, oldest: list[str], others: list[str], new: Path) -> None:
    new.chmod(0o755)
    run("tar", "--extract", "--file", tar, "--directory", new)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += [f"--target={new / PLACE}"]
    pip += [f"--python-version={PYTHON}", "--implementation=cp", *(f"--platform={each}" for each in PLATFORMS)]
    run(*pip, "--only-binary=:all:", "--no-deps", *oldest)
    run(*pip, "--only-binary=:all:", *others)
    (new / PLACE / "repository.pth").write_text("/repository\n")
    (new / "etc" / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
    for program, function in (("pp-hostd", "agent"), ("pp-leader", "leader")):
        script = new / "usr" / "bin" / program
        script.write_text(
            f"#!/usr/bin/python3\nimport sys\nfrom pp_hostd.cli import {function}\nsys.exit({function}())\n"
        )
        script.chmod(0o755)


def main() -> int:
    try:
        install_tools()
        place = root()
    except UserError as error:
        sys.exit(str(error))
    start = START.format(places=" ".join([*BOUND, str(cache())]), repository=REPOSITORY)
    environment = {
        "PATH": os.defpath,
        "HOME": "/root",
        "PP_HOSTD_CACHE": str(cache()),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = ["unshare", "--mount", "bash", "-euc", start, "oldest", str(place)]
    pytest = [
        "python3",
        "-m",
        "pytest",
        "-p",
        "no:cacheprovider",
        "-n",
        "3",
        "--dist=loadfile",
        "--ignore=tests/test_house.py",
    ]
    settings = [f"{name}={value}" for name, value in environment.items()]
    return subprocess.run([*command, *settings, *pytest, *sys.argv[1:]]).returncode


if __name__ == "__main__":
    sys.exit(main())
