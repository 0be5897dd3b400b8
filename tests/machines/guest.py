"""One guest as a test sees it: start it from a snapshot, do something to it, and hear from QEMU what happened to it."""

from __future__ import annotations

import re
import secrets
import shutil
import time
from collections.abc import Mapping
from pathlib import Path

from tests.harness.bed.wires import addresses_of, hardware_address
from tests.harness.supervise import Supervisor
from tests.machines import qemu
from tests.machines.patience import eventually
from tests.machines.qmp import Event, Qmp
from tests.machines.shell import Ran, Shell, Unanswered
from tests.machines.snapshot import Snapshot
from tests.machines.switch import tap

BOOT_SECONDS = 240
"""For an emulated machine among others that boot at the same time."""
RUN_SECONDS = 60
BEGIN = """
set -e
date --set=@{now} > /dev/null
hostname {name}
echo {name} > /etc/hostname
python3 - << 'END'
import fcntl, struct
with open("/dev/random", "wb") as device:
    fcntl.ioctl(device, 0x40085203, struct.pack("ii32s", 256, 32, bytes.fromhex("{seed}")))  # RNDADDENTROPY
    fcntl.ioctl(device, 0x5207)  # RNDRESEEDCRNG
END
"""
"""Guests that go on from one state are twins: this sets their clock, and has them differ in name and in chance."""
START = "systemctl start --no-block multi-user.target"


class Guest:
    """`begin` it, and `end` it when the case is over. Its directory holds the console's log."""

    def __init__(self, name: str, number: int, directory: Path) -> None:
        self.name, self.number, self.directory = name, number, directory
        self.address = addresses_of(number)[0]
        self.shell = Shell(directory / "shell")
        self._qmp: Qmp | None = None
        self._supervisor: Supervisor | None = None

    # Power.

    def begin(self, snapshot: Snapshot, supervisor: Supervisor, network_pid: int, files: Mapping[str, bytes]) -> None:
        """Go on from the snapshot in that process's network, with these files, up to where units may start."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        qemu.make_overlay(snapshot.disk, "qcow2", self.directory / "disk.qcow2")
        card = hardware_address(self.number)
        command = qemu.command(snapshot.image, self.directory, card, tap(self.number), state=snapshot.state)
        self._supervisor = supervisor
        supervisor.run(self.name, ["nsenter", f"--net=/proc/{network_pid}/ns/net", *command])
        self._qmp = Qmp(self.directory / "qmp")
        eventually(lambda: self.qmp.ask("query-status")["status"] == "paused", f"{self.name}: its state is loaded")
        self.qmp.ask("cont")  # the state was saved while it stood still
        self.shell.await_ready(60)
        self.write("/etc/machines/network", f"ADDRESS={self.address}\nHARDWARE={card}\n".encode())
        for path, data in files.items():
            self.write(path, data)
        seed = secrets.token_hex(32)
        self.run(BEGIN.format(now=time.time(), name=self.name, seed=seed))

    def start_units(self) -> None:
        """As the boot goes on."""
        self.run(START)

    def end(self) -> None:
        """Off at once, for good."""
        if self._supervisor is not None and self._qmp is not None:
            self._supervisor.kill(self.name)
            self.shell.close()
            self._qmp.close()
            self._supervisor = None

    @property
    def qmp(self) -> Qmp:
        assert self._qmp is not None, f"{self.name} was not begun"
        return self._qmp

    # QEMU's events.

    def resets(self, since: float = 0.0) -> list[Event]:
        """Its resets, whoever did it, after that moment."""
        return [event for event in self.qmp.events("RESET") if event.at_wallclock >= since]

    def was_reset_by_watchdog(self) -> bool:
        return bool(self.qmp.events("WATCHDOG"))

    def await_reset(self, since: float, within_seconds: float) -> Event:
        """A bound that was promised is not longer on a machine that stands still."""
        what, over_at = f"{self.name} is reset", time.time() + within_seconds
        found = eventually(lambda: self.resets(since) or time.time() > over_at, what, within_seconds + 1)
        if not isinstance(found, list):
            raise TimeoutError(f"waited {within_seconds:g} s in vain until {what}")
        return found[0]

    # Actions and views of a person at the guest.

    def run(self, script: str, seconds: float = RUN_SECONDS) -> str:
        """Returns the output of a script; fails if the script does not end with 0."""
        ran = self.shell.run(script, seconds)
        assert ran.exit == 0, f"{self.name}: `{script}` ended with {ran.exit}: {ran.said}"
        return ran.said

    def attempt(self, script: str, seconds: float = RUN_SECONDS) -> Ran:
        """However it ends."""
        return self.shell.run(script, seconds)

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        self.shell.write(path, data, mode)

    def boot_id(self) -> str:
        return self.run("cat /proc/sys/kernel/random/boot_id").strip()

    def await_boot_after(self, last: str) -> str:
        """Until one can log in again, in another boot than the last; its id."""

        def another() -> str:
            try:
                boot = self.shell.run("cat /proc/sys/kernel/random/boot_id", 5).said.strip()
            except (Unanswered, OSError):
                return ""
            return boot if boot != last else ""

        return eventually(another, f"{self.name} has booted again", BOOT_SECONDS)

    def console(self) -> str:
        return (self.directory / "console.log").read_text(errors="replace")

    def ticks(self) -> list[str]:
        """The boot of each tick of its kubelet, in order: the console is outside of the guest."""
        return re.findall(r"kubelet: tick in boot (\S+)", self.console())

    def journal(self, *arguments: str) -> str:
        return self.run(f"journalctl --no-pager --output=cat {' '.join(arguments)}")

    # Mishaps of the guest.

    def set_link(self, up: bool) -> None:
        """Pull its cable, or put it back."""
        self.qmp.ask("set_link", name="card", up=up)

    def stall_disk(self) -> None:
        """From now on its disk takes an hour for a block."""
        limits = dict.fromkeys(("bps_rd", "bps_wr", "iops", "iops_rd", "iops_wr"), 0)
        self.qmp.ask("block_set_io_throttle", device="root", bps=1, **limits)

    def interrupt(self) -> None:
        """A non-maskable interrupt, as by a button."""
        self.qmp.ask("inject-nmi")

    def keep_logs(self, directory: Path) -> None:
        """Writes the guest's console, QEMU's events and the journal there, for a person who looks into a failure."""
        directory.mkdir(parents=True, exist_ok=True)
        if (self.directory / "console.log").exists():
            shutil.copy(self.directory / "console.log", directory / f"{self.name}.console.log")
        events = "".join(f"{event.at_wallclock:.3f} {event.name} {event.data}\n" for event in self.qmp.events())
        (directory / f"{self.name}.qemu-events.log").write_text(events)
        try:
            said = self.shell.run("journalctl --no-pager --boot --output=short-monotonic | tail -n 400", 10).said
        except (Unanswered, OSError) as error:
            said = f"the guest does not answer: {error}\n"
        (directory / f"{self.name}.journal.log").write_text(said)
