"""Others' definitions as they publish them: fetched with Go into the cache, never committed.

`python -m tests.harness.published` fetches them. Metal3's are taken from beside this project, where they lie there.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from pp_hostd.errors import UserError
from tests.harness.build import CLUSTER_API, from_go_mod, go_environment, go_toolchain
from tests.harness.cache import cache, lock, remove_unused, whole_or_not_at_all
from tests.harness.controlplane import DEFINITIONS

MODULES = {
    "github.com/openshift/api@v0.0.0-20260420151639-34e60874783e": (
        "machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machines-Default.crd.yaml",
        "machine/v1beta1/zz_generated.crd-manifests/0000_10_machine-api_01_machinehealthchecks.crd.yaml",
    ),
    "sigs.k8s.io/cluster-api@{}".format(*from_go_mod(CLUSTER_API, r"sigs\.k8s\.io/cluster-api (v\S+)")): (
        "core/config/crd/bases",
        "core/config/rbac",
    ),
}
OF_CLUSTER_API = ("cluster.x-k8s.io_machines.yaml", "cluster.x-k8s.io_machinehealthchecks.yaml")
BESIDE = Path(__file__).resolve().parents[3] / "shared" / "crds"
FETCH_SECONDS = 300


def published() -> list[dict[str, Any]]:
    """Ours, and instead of those of others' kinds, as far as there are any, what others publish."""
    found = {each["metadata"]["name"]: each for each in DEFINITIONS}
    of_cluster_api = [_finished() / "bases" / name for name in OF_CLUSTER_API]
    for path in (*sorted(_finished().glob("*.yaml")), *of_cluster_api, *sorted(BESIDE.glob("*.yaml"))):
        definition = yaml.safe_load(path.read_text())
        definition["spec"].pop("conversion", None)  # nobody converts here
        found[definition["metadata"]["name"]] = definition
    return list(found.values())


def fetch() -> Path:
    finished = _finished()
    if not finished.is_dir():
        with lock("definitions"), whole_or_not_at_all(finished) as unfinished:
            for module, files in MODULES.items():
                directory = _fetched(module)
                for file in files:
                    _copy(directory / file, unfinished)
            remove_unused("definitions")
    return finished


def of_cluster_api(part: str) -> list[dict[str, Any]]:
    """All that Cluster API itself installs of this part: `bases` are its definitions, `rbac` its manager's rights."""
    return [yaml.safe_load(path.read_text()) for path in sorted((_finished() / part).glob("*.yaml"))]


def _copy(source: Path, directory: Path) -> None:
    """Copies a file, or a directory with all files in it. Files that Go fetched can't be written to; the copies can."""
    paths = sorted(source.iterdir()) if source.is_dir() else [source]
    into = directory / source.name if source.is_dir() else directory
    into.mkdir(exist_ok=True)
    for path in paths:
        shutil.copyfile(path, into / path.name)


def _finished() -> Path:
    return cache() / f"definitions-{hashlib.sha256(json.dumps(MODULES).encode()).hexdigest()[:16]}"


def _fetched(module: str) -> Path:
    command = [str(go_toolchain()), "mod", "download", "-json", module]
    done = subprocess.run(command, env=go_environment(), capture_output=True, text=True, timeout=FETCH_SECONDS)
    if done.returncode != 0:
        raise UserError(f"definitions: `{' '.join(command)}` failed:", (done.stdout + done.stderr)[-2000:])
    return Path(json.loads(done.stdout)["Dir"])


def main() -> None:
    try:
        fetch()
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
