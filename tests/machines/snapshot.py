"""A machine that has booted and has the package installed, before its agent starts: what each guest goes on from."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from tests.harness.supervise import Supervisor
from tests.machines import qemu
from tests.machines.debian import kept
from tests.machines.image import Image, image
from tests.machines.patience import eventually
from tests.machines.qmp import Qmp
from tests.machines.shell import Shell

BOOT_SECONDS = 600
INSTALL_SECONDS = 120
INSTALL = """
set -e
rpm --install --nodeps /root/package.rpm
systemctl --quiet enable pp-hostd pp-hostd-gate kubelet
pp-hostd --version
python3 -c 'import asyncio, http.client, json, ssl'
sync
"""
"""Enabled as an administrator would; what starts later is already read from the disk."""
FASTEST = 10 << 30


@dataclass(frozen=True)
class Snapshot:
    """`disk` and `state` belong together, and are never written to."""

    image: Image
    disk: Path
    state: Path


def snapshot(suite: str, package: Path) -> Snapshot:
    """With this package, on that Debian release."""
    system = image(suite)
    digest = hashlib.sha256(package.read_bytes()).hexdigest()
    content = [str(system.disk), digest, qemu.version(), INSTALL, *qemu.command(system, Path(), "", "")]
    directory = kept("snapshot", content, lambda new: _take(system, package, new))
    return Snapshot(system, directory / "disk.qcow2", directory / "state")


def _take(system: Image, package: Path, directory: Path) -> None:
    qemu.make_overlay(system.disk, "raw", directory / "disk.qcow2")
    supervisor = Supervisor()
    try:
        # In a network of its own, with a cable to nowhere: the card must be as it will be later.
        command = qemu.command(system, directory, "02:77:00:00:00:00", "tap0")
        supervisor.run("qemu", ["unshare", "--net", *command])
        qmp = Qmp(directory / "qmp")
        _install(Shell(directory / "shell"), package)
        _save(qmp, directory / "state")
    except BaseException as error:
        console = (directory / "console.log").read_text(errors="replace")[-3000:]
        raise RuntimeError(f"no snapshot: {error}; {supervisor.log_tails()}; the console's end:\n{console}") from error
    finally:
        supervisor.close()


def _install(shell: Shell, package: Path) -> None:
    shell.await_ready(BOOT_SECONDS)
    shell.write("/root/package.rpm", package.read_bytes())
    ran = shell.run(INSTALL, INSTALL_SECONDS)
    assert ran.exit == 0, f"the package does not install: {ran.said}"
    shell.close()


def _save(qmp: Qmp, state: Path) -> None:
    qmp.ask("stop")
    qmp.ask("migrate-set-parameters", **{"max-bandwidth": FASTEST})
    qmp.ask("migrate", uri=f"exec:cat > {state}")
    eventually(lambda: qmp.ask("query-migrate").get("status") == "completed", "the state is saved", 120)
    qmp.ask("quit")
    qmp.close()
