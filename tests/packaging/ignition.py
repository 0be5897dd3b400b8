"""Translates packaging/ignition/pp-hostd.bu into the Ignition file beside it, with Butane, which Go builds once.

`python -m tests.packaging.ignition` writes that file.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

from pp_hostd.errors import UserError
from tests.harness.build import go_environment, go_toolchain
from tests.harness.cache import cache
from tests.harness.eventually import HANGS_SECONDS

MODULE = Path(__file__).parents[2] / "packaging" / "ignition"
SOURCE, TRANSLATED = MODULE / "pp-hostd.bu", MODULE / "pp-hostd.ign"
BUILD_SECONDS = 1200


def build_translator() -> Path:
    """The program, built unless this content was already."""
    parts = b"".join((MODULE / name).read_bytes() for name in ("main.go", "go.mod", "go.sum"))
    program = cache() / f"butane-{hashlib.sha256(parts).hexdigest()[:16]}"
    if not program.exists():
        print("packages: building Butane (a minute, once)", flush=True)
        unfinished = program.with_suffix(f".{os.getpid()}")
        command = [str(go_toolchain()), "build", "-trimpath", "-o", str(unfinished), "."]
        subprocess.run(command, cwd=MODULE, env=go_environment(), check=True, timeout=BUILD_SECONDS)
        unfinished.rename(program)
    return program


def translated() -> str:
    program, source = build_translator(), SOURCE.read_text()
    done = subprocess.run([program], input=source, capture_output=True, text=True, timeout=HANGS_SECONDS)
    if done.returncode != 0:
        raise UserError(f"{SOURCE} can't be translated:\n{done.stderr}")
    return done.stdout


def main() -> None:
    try:
        TRANSLATED.write_text(translated())
    except (UserError, OSError, subprocess.SubprocessError) as error:
        sys.exit(f"make ignition: {error}")
    print(f"wrote {TRANSLATED.relative_to(MODULE.parents[1])}")


if __name__ == "__main__":
    main()
