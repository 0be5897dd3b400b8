"""The package that guests install: ours, with its libraries inside, since guests have nothing but Debian's Python."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from tests.machines.debian import STEP_SECONDS, kept

REPOSITORY = Path(__file__).parents[2]
CONTENT = ("pp_hostd", "packaging", "systemd", "etc", "rpm.spec", "tests/packaging/macros")


def package(release: int = 1) -> Path:
    """As the sources are now; a higher release is a newer build of the same."""
    built = kept("rpm", [str(release), *_digests()], lambda new: _build(release, new))
    (found,) = built.glob("pp-hostd-[0-9]*.rpm")
    return found


def _digests() -> list[str]:
    known = subprocess.run(["git", "ls-files", *CONTENT], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    names = [name for name in known.stdout.splitlines() if (REPOSITORY / name).is_file()]
    return [f"{name} {hashlib.sha256((REPOSITORY / name).read_bytes()).hexdigest()}" for name in names]


def _build(release: int, directory: Path) -> None:
    environment = {**os.environ, "BUNDLED": "1", "RELEASE": str(release)}
    command = [str(REPOSITORY / "packaging" / "make-rpm")]
    subprocess.run(command, env=environment, check=True, timeout=STEP_SECONDS, stdout=subprocess.DEVNULL)
    for built in (REPOSITORY / "build" / "rpms").glob(f"pp-hostd-*-{release}.bundled*.rpm"):
        shutil.copy(built, directory)
