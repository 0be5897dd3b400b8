"""A host as a test sees it: boot it, kill it, look at what it did, make it suffer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.bed.channel import ask
from tests.harness.bed.record import Event, Record
from tests.harness.bed.wires import addresses_of
from tests.harness.eventually import eventually

PP_HOSTD = [sys.executable, "-c", "import sys; from pp_hostd.cli import agent; sys.exit(agent())"]
PP_LEADER = [sys.executable, "-c", "import sys; from pp_hostd.cli import leader; sys.exit(leader())"]
PROGRAMS = {"pp-hostd": PP_HOSTD, "pp-leader": PP_LEADER}
AGENT_COMMAND = [*PP_HOSTD, "run", "--config", "/etc/pp-hostd/pp-hostd.toml"]
GATE_COMMAND = [*PP_HOSTD, "gate", "hold"]
RUN_BYTES = 1 << 20
WDIOF_CARDRESET = 32


@dataclass
class Design:
    """How a host is built; a change takes effect at its next boot."""

    agent: Sequence[str] = field(default_factory=lambda: AGENT_COMMAND)
    gate: Sequence[str] = field(default_factory=lambda: GATE_COMMAND)
    """The command that ends with 0 once the kubelet may start; empty for a host without a gate."""
    kubelet: Sequence[str] = ()
    """The command that runs once the gate is open; empty for a stand-in that ticks."""
    run_bytes: int = RUN_BYTES
    watchdog: dict[str, Any] = field(default_factory=dict)
    """Fields of `watchdog_device.Behaviour`."""


class Host:
    """One of a bed's hosts; `Bed` boots it, since that takes wires."""

    def __init__(self, name: str, number: int, directory: Path, design: Design) -> None:
        self.name, self.number, self.directory, self.design = name, number, directory, design
        self.address, self.address6 = addresses_of(number)
        self.etc = directory / "etc"
        """The directory that the host sees as /etc/pp-hostd."""
        self.record = Record(directory / "record")
        self.boot_id = ""
        self.boots = 0
        for part in ("etc", "watchdog"):
            (directory / part).mkdir(parents=True)

    def next_boot(self) -> dict[str, Any]:
        """Counts the next boot; returns its parameters, but for the network."""
        self.boot_id = str(uuid.uuid4())
        self.boots += 1
        return {
            "name": self.name,
            "number": self.number,
            "directory": str(self.directory),
            "count": self.boots,
            "boot_id": self.boot_id,
            "agent": list(self.design.agent),
            "gate": list(self.design.gate),
            "kubelet": list(self.design.kubelet),
            "run_bytes": self.design.run_bytes,
            "watchdog": {"boot_status": self._boot_status(), **self.design.watchdog},
        }

    def _boot_status(self) -> int:
        """Returns the device's status about the last boot's end, as hardware reports it."""
        return WDIOF_CARDRESET if self.boots > 1 and self.down()["how"] == "watchdog" else 0

    # The host's record.

    def is_up(self) -> bool:
        """False once all of its processes are gone."""
        changes = self.record.events("up", "down")
        return bool(changes) and changes[-1]["kind"] == "up"

    def down(self) -> Event:
        """How and when this boot ended; wait for it with `await_down`."""
        return self.record.events("down")[-1]

    def await_down(self, within_seconds: float = 60) -> Event:
        try:
            eventually(lambda: not self.is_up(), f"{self.name} is down", within_seconds)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; watchdog: {self.watchdog()[-6:]}, host: {self._last()}") from None
        return self.down()

    def _last(self) -> list[Event]:
        return [event for event in self.events() if event["kind"] not in ("kubelet-tick", "watchdog")][-4:]

    def events(self, *kinds: str, boot: int | None = None) -> list[Event]:
        """Returns the events of this boot (or of that one): up, down, watchdog, notify, journal, agent-started,
        agent-ended, gate-ended, kubelet-started, kubelet-tick, kubelet-ended, sysrq."""
        return [event for event in self.record.events(*kinds) if event["boot"] == (boot or self.boots)]

    def watchdog(self, *names: str, boot: int | None = None) -> list[Event]:
        """Returns the events of its watchdog: open, settimeout, feed, magic, disabled, close, fired."""
        return [event for event in self.events("watchdog", boot=boot) if not names or event["event"] in names]

    def journal(self, *sources: str, boot: int | None = None) -> list[str]:
        """Lines of the units: what the `agent` or the `gate` printed, and what came by the journal's `socket`."""
        events = self.events("journal", boot=boot)
        return [str(event["line"]) for event in events if not sources or event["source"] in sources]

    def status_text(self) -> str:
        """The last STATUS= that the agent gave."""
        texts = [event["message"]["STATUS"] for event in self.events("notify") if "STATUS" in event["message"]]
        return str(texts[-1]) if texts else ""

    def is_ready(self) -> bool:
        return any(event["message"].get("READY") == "1" for event in self.events("notify"))

    def kubelet_started(self) -> bool:
        return bool(self.events("kubelet-started"))

    # Actions on the host.

    def kill(self) -> Event:
        """Pull its plug."""
        os.kill(self._pid(), signal.SIGKILL)
        return self.await_down()

    @property
    def agent_pid(self) -> int:
        """In the host's own pid namespace; 0 while it waits to be restarted."""
        return int(self.order("agent_pid"))

    def signal_agent(self, number: int) -> None:
        self.order("signal_agent", number)

    def stop_agent(self) -> None:
        """As `systemctl stop`; `start_agent` starts it again."""
        self.order("stop_agent")

    def start_agent(self) -> None:
        self.order("start_agent")

    def block(self, name: str) -> None:
        """Read no more from the agent's `notify` socket, `journal` socket or `stderr`: it fills."""
        self.order("block", name)

    def unblock(self, name: str) -> None:
        self.order("unblock", name)

    def make_read_only(self, path: str) -> None:
        """`/var/lib/pp-hostd`, say; for the rest of this boot."""
        self.order("make_read_only", path)

    def fill(self, path: str) -> None:
        """Leave no byte free on the file system there: `/run`, or `/var/lib/pp-hostd`."""
        self.run("dd", "if=/dev/zero", f"of={path}/filling", "bs=4096", check=False)

    def order(self, command: str, *arguments: Any) -> Any:
        """Ask process 1."""
        return ask(self.directory / "control", command, *arguments)

    def run(self, *argv: str, check: bool = True, timeout_seconds: float = 30) -> subprocess.CompletedProcess[str]:
        """Run a command on the host; `pp-hostd` is the one under test."""
        command = self.command(*argv)
        return subprocess.run(command, capture_output=True, text=True, check=check, timeout=timeout_seconds)

    def command(self, *argv: str) -> list[str]:
        """Returns a command line for subprocess.Popen that runs this on the host. It ends when the host does.

        Start in a session of its own what runs for long: an nsenter that a stop of this process' group hits may stay
        stopped, and the host is not down before its nsenter has ended.
        """
        inside = [*PROGRAMS.get(argv[0], argv[:1]), *argv[1:]]
        flags = ["--user", "--mount", "--net", "--uts", "--ipc", "--pid", "--preserve-credentials", "--wd=/"]
        return ["nsenter", f"--target={self._pid()}", *flags, *inside]

    def _pid(self) -> int:
        assert self.is_up(), f"{self.name} is down"
        return int(self.record.events("up")[-1]["pid"])
