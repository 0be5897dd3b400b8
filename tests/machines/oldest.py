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
BOUND = ("/dev", "/proc", "/sys", "/tmp")
START = """
root=$1; shift
for place in {places}; do mkdir -p "$root$place"; mount --rbind "$place" "$root$place"; done
exec chroot "$root" /usr/bin/env --chdir={repository} "$@"
"""


def root() -> Path:
    """The file system, with all that the suite imports."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    oldest = [each.replace(">=", "==").partition(";")[0] for each in project["dependencies"]]
    extras = project["optional-dependencies"]
    wanted = (*ONLY_FOR_OLD, *extras["admin"], *extras["dev"])
    others = [each for each in wanted if not each.startswith("pp-hostd")]
    tar, source = root_tar(OLDEST), hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    return kept("oldest", [str(tar), source, *oldest, *others], lambda new: _build(tar, oldest, others, new))


def _build(tar: Path, oldest: list[str], others: list[str], new: Path) -> None:
    new.chmod(0o755)
    run("tar", "--extract", "--file", tar, "--directory", new)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--target", new / PLACE]
    pip += [f"--python-version={PYTHON}", "--implementation=cp", *(f"--platform={each}" for each in PLATFORMS)]
    run(*pip, "--only-binary=:all:", "--no-binary=sdnotify", "--no-deps", *oldest)
    run(*pip, "--only-binary=:all:", *others)


def main() -> int:
    try:
        install_tools()
        place = root()
    except UserError as error:
        sys.exit(str(error))
    start = START.format(places=" ".join([*BOUND, str(REPOSITORY), str(cache())]), repository=REPOSITORY)
    environment = {
        "PATH": os.defpath,
        "HOME": "/root",
        "PP_HOSTD_CACHE": str(cache()),
        "PYTHONPATH": str(REPOSITORY),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = ["unshare", "--mount", "bash", "-euc", start, "oldest", str(place)]
    pytest = ["python3", "-m", "pytest", "-p", "no:cacheprovider", "-n", "3", "--dist=loadfile", *sys.argv[1:]]
    return subprocess.run([*command, *(f"{name}={value}" for name, value in environment.items()), *pytest]).returncode


if __name__ == "__main__":
    sys.exit(main())
