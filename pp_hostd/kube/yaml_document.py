"""YAML, read by a short-lived child process: PyYAML would weigh 2 MB for good in a daemon whose memory is locked."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from pp_hostd.kube.child import answer_of
from pp_hostd.kube.deadline import TimedOut
from pp_hostd.kube.yaml_child import ANSWER_LIMIT_BYTES

DEADLINE_SECONDS = 10.0
CHILD = """
import runpy, sys
sys.path[:] = sys.argv[1:]
runpy.run_module("pp_hostd.kube.yaml_child", run_name="__main__")
"""
"""It looks for modules where its parent does: a package may keep them in a directory of its own."""


class YamlError(Exception):
    """Text that is not YAML, or not YAML that can be taken: why, and on which line (0: not known)."""

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line


def parse(data: bytes) -> Any:
    """The document's value as JSON has it. Any bytes may be given."""
    try:
        child = subprocess.run(_command(), input=data, capture_output=True, timeout=DEADLINE_SECONDS)
    except subprocess.TimeoutExpired:
        raise _too_late() from None
    return _value(child.stdout, child.stderr.decode("utf-8", "replace").strip().split("\n")[-1])


async def parse_aside(data: bytes) -> Any:
    """The same in an event loop that must not wait for it."""
    try:
        answer = await answer_of(_command(), DEADLINE_SECONDS, 2 * ANSWER_LIMIT_BYTES, data)
    except TimedOut:
        raise _too_late() from None
    except OSError as error:
        raise YamlError(f"it could not be read: {error}") from None
    return _value(answer, "its reader ended without an answer")


def _command() -> list[str]:
    return [sys.executable, "-I", "-c", CHILD, *sys.path]


def _too_late() -> YamlError:
    return YamlError(f"it could not be read within {DEADLINE_SECONDS:g} s")


def _value(stdout: bytes, last_words: str) -> Any:
    try:
        answer = json.loads(stdout)
    except ValueError:
        raise YamlError(f"it could not be read: {last_words}") from None
    if "reason" in answer:
        raise YamlError(answer["reason"], answer["line"])
    return answer["value"]
