"""The parts of a guest's boot: a kernel, an early root that finds the disk, and the disk as the test bed needs it."""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.machines.debian import kept, kernel_tree, root_tar, run

INSIDE = Path(__file__).parent / "inside"
PLACES = {".py": "usr/lib/machines", "": "usr/lib/machines", ".service": "etc/systemd/system"}
PLACES[".target"] = PLACES[".service"]
FOR_ROOT = ("virtio_pci", "virtio_blk", "crc32c_generic", "ext4")
"""Modules without which there is no root device."""
LATER = ("virtio_net", "virtio_console", "i6300esb")
AT_HAND = ("softdog",)
MASKED = (
    *(
        "proc-sys-fs-binfmt_misc.automount",
        "getty@.service",
        "serial-getty@.service",
        "systemd-logind.service",
        "e2scrub_reap.service",
        "kexec-load.service",
    ),
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"),
)
DISK_SIZE = "800M"


@dataclass(frozen=True)
class Image:
    """`disk` is raw, and never written to."""

    vmlinuz: Path
    initramfs: Path
    disk: Path


def image(suite: str) -> Image:
    """Of that Debian release, built if need be."""
    tree, tar = kernel_tree(), root_tar(suite)
    inside = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(INSIDE.iterdir()) if path.is_file()]
    content = [str(tree), str(tar), hashlib.sha256(Path(__file__).read_bytes()).hexdigest(), *inside]
    directory = kept("image", content, lambda new: _build(tree, tar, new))
    return Image(directory / "vmlinuz", directory / "initramfs", directory / "disk")


def _build(tree: Path, tar: Path, directory: Path) -> None:
    (vmlinuz,) = (tree / "boot").glob("vmlinuz-*")
    version = vmlinuz.name.partition("-")[2]
    run("depmod", "-b", tree, version)
    shutil.copy(vmlinuz, directory / "vmlinuz")
    _pack_initramfs(_modules(tree, version, FOR_ROOT), directory)
    root = directory / "root"
    root.mkdir()
    run("tar", "--extract", "--file", tar, "--directory", root)
    _copy_modules(tree, version, _modules(tree, version, (*FOR_ROOT, *LATER, *AT_HAND)), root)
    _furnish(root)
    run("mke2fs", "-q", "-t", "ext4", "-d", root, directory / "disk", DISK_SIZE)
    shutil.rmtree(root)


def _modules(tree: Path, version: str, names: Sequence[str]) -> list[Path]:
    """The files of these modules and of those that they need, each after what it needs."""
    lines = run("modprobe", "--show-depends", "--all", "--dirname", tree, "--set-version", version, *names).splitlines()
    return list(dict.fromkeys(Path(line.split()[1]) for line in lines if line.startswith("insmod ")))


def _copy_modules(tree: Path, version: str, files: Sequence[Path], root: Path) -> None:
    source, target = tree / "lib" / "modules" / version, root / "lib" / "modules" / version
    for file in files:
        there = target / file.resolve().relative_to(source.resolve())
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, there)
    for table in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy(source / table, target / table)
    run("depmod", "-b", root, version)


def _pack_initramfs(modules: Sequence[Path], directory: Path) -> None:
    tree = directory / "early"
    for part in ("bin", "dev", "proc", "sys", "root", "modules"):
        (tree / part).mkdir(parents=True)
    shutil.copy(str(shutil.which("busybox")), tree / "bin" / "busybox")
    shutil.copy(INSIDE / "init", tree / "init")
    (tree / "init").chmod(0o755)
    for module in modules:
        shutil.copy(module, tree / "modules" / module.name)
    (tree / "modules" / "order").write_text("".join(f"{module.name}\n" for module in modules))
    names = "\n".join(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")))
    command = ["cpio", "--quiet", "--create", "--format=newc"]
    packed = subprocess.run(command, cwd=tree, input=names.encode(), stdout=subprocess.PIPE, check=True, timeout=60)
    (directory / "initramfs").write_bytes(gzip.compress(packed.stdout, 1))
    shutil.rmtree(tree)


def _furnish(root: Path) -> None:
    for file in INSIDE.iterdir():
        if file.is_file():
            _write(root / PLACES[file.suffix] / file.name, file.read_text(), 0o644 if file.suffix else 0o755)
    _write(root / "etc/modules-load.d/machines.conf", "".join(f"{name}\n" for name in LATER))
    _write(root / "etc/systemd/journald.conf.d/machines.conf", "[Journal]\nStorage=volatile\n")
    _write(root / "etc/systemd/system.conf.d/machines.conf", "[Manager]\nDefaultTimeoutStartSec=300s\n")
    _write(root / "etc/fstab", "")
    os.mkdir(root / "etc/machines")
    run("chroot", root, "systemctl", "--quiet", "enable", "machines-shell", "machines-network")
    run("chroot", root, "systemctl", "--quiet", "mask", *MASKED)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
