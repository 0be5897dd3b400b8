"""The output of a unit: a pipe whose lines go to the journal of its host."""

from __future__ import annotations

import os

from tests.harness.bed.record import Recorder


class Output:
    """The pipe stays open while units come and go."""

    def __init__(self, record: Recorder, source: str) -> None:
        self._record, self._source = record, source
        self.reader, self._writer = os.pipe()
        self._partial = b""

    def take_over(self) -> None:
        """In a child that is about to become another program: what that prints goes here."""
        for standard in (1, 2):
            os.dup2(self._writer, standard)

    def read(self) -> None:
        *lines, self._partial = (self._partial + os.read(self.reader, 65536)).split(b"\n")
        for line in lines:
            self._record("journal", source=self._source, line=line.decode(errors="replace"), fields={})
