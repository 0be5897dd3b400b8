"""The kubelet of a host, and the unit before it that holds it back until the gate opens."""

from __future__ import annotations

import os
import time

from tests.harness.bed.agent_unit import ENVIRONMENT
from tests.harness.bed.loop import Loop
from tests.harness.bed.namespaces import keep_only, or_exit
from tests.harness.bed.output import Output
from tests.harness.bed.record import Recorder

GATE_RETRY_SECONDS = 0.3
TICK_SECONDS = 0.1


class KubeletUnit:
    """Starts when the gate's command has ended with 0, and then lives as long as the host does."""

    def __init__(self, loop: Loop, record: Recorder, gate: list[str], kubelet: list[str]) -> None:
        self._loop, self._record, self._gate, self._kubelet = loop, record, gate, kubelet
        self._outputs = {name: Output(record, name) for name in ("gate", "kubelet")}
        for output in self._outputs.values():
            loop.watch(output.reader, output.read)

    def start(self) -> None:
        if not self._gate:
            self._start_kubelet()
            return
        pid = os.fork()
        if pid == 0:
            or_exit(lambda: self._execute("gate", self._gate))
        self._loop.adopt(pid, self._on_gate)

    def _execute(self, unit: str, command: list[str]) -> None:
        self._outputs[unit].take_over()
        os.execve(command[0], command, ENVIRONMENT)

    def _on_gate(self, status: int) -> None:
        self._record("gate-ended", status=status)
        if status == 0:
            self._start_kubelet()
        else:
            self._loop.later(GATE_RETRY_SECONDS, self.start)

    def _start_kubelet(self) -> None:
        pid = os.fork()
        if pid == 0:
            or_exit(lambda: self._execute("kubelet", self._kubelet) if self._kubelet else self._tick())
        self._record("kubelet-started", pid=pid)
        self._loop.adopt(pid, lambda status: self._record("kubelet-ended", status=status))

    def _tick(self) -> None:
        keep_only([self._record.descriptor])
        while True:
            self._record("kubelet-tick")
            time.sleep(TICK_SECONDS)
