"""Process 1 of a host: mounts what a host has, and plays systemd for the agent, the gate and the kubelet."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import NoReturn

from tests.harness.bed import namespaces, wires
from tests.harness.bed.agent_unit import AgentUnit
from tests.harness.bed.boot import Boot
from tests.harness.bed.channel import answer_one, listen
from tests.harness.bed.kubelet_unit import KubeletUnit
from tests.harness.bed.loop import Loop
from tests.harness.bed.record import Recorder

UP = b"u"
SYSRQ_STATUS = 3


def run(boot: Boot, record: Recorder, link: socket.socket) -> NoReturn:
    """Bring the host up and keep it so."""
    namespaces.keep_only([record.descriptor, link.fileno()])
    namespaces.die_with_parent()
    os.setsid()
    os.chdir("/")
    directory = Path(boot.directory)
    sysrq = _mount(boot, directory)
    loop = Loop()
    agent = AgentUnit(loop, record, boot.agent)
    kubelet = KubeletUnit(loop, record, boot.gate, boot.kubelet)
    control = listen(directory / "control")
    commands = {
        **agent.commands(),
        "set_neighbours": lambda lost: wires.set_neighbours("eth0", boot.neighbours, lost),
        "make_read_only": namespaces.make_read_only,
    }
    loop.watch(control, lambda: answer_one(control, commands))
    loop.watch(sysrq, lambda: _on_sysrq(os.read(sysrq, 1), record))
    agent.start()
    kubelet.start()
    link.send(UP)
    link.close()
    loop.run()


def _mount(boot: Boot, directory: Path) -> int:
    """Mounts the files that this host alone sees; returns the far end of its /proc/sysrq-trigger."""
    boot_id, sysrq = directory / "boot_id", directory / "sysrq"
    boot_id.write_text(f"{boot.boot_id}\n")
    if not sysrq.exists():
        os.mkfifo(sysrq)
    namespaces.mount_proc(boot_id, sysrq)
    namespaces.mount("tmpfs", "/run", f"size={boot.run_bytes},mode=755")
    os.mkdir("/run/pp-hostd", 0o700)  # the unit's RuntimeDirectory
    namespaces.bind(str(directory / "etc"), "/etc/pp-hostd")
    namespaces.bind(str(directory / "disk"), "/var/lib/pp-hostd")
    namespaces.bind(str(directory / "watchdog" / "watchdog"), "/dev/watchdog")
    return os.open(sysrq, os.O_RDWR | os.O_NONBLOCK)


def _on_sysrq(key: bytes, record: Recorder) -> None:
    record("sysrq", key=key.decode())
    if key == b"b":
        os._exit(SYSRQ_STATUS)
