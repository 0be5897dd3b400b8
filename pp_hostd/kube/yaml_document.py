"""YAML, read by a short-lived child process: PyYAML would weigh 2 MB for good in a daemon whose memory is locked."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

DEADLINE_SECONDS = 10.0
CHILD_MEMORY_BYTES = 512 * 1024 * 1024
ANSWER_LIMIT_BYTES = 4 * 1024 * 1024
CHILD = """
import runpy, sys
sys.path[:] = sys.argv[1:]
runpy.run_module("pp_hostd.kube.yaml_document", run_name="__main__")
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
    command = [sys.executable, "-I", "-c", CHILD, *sys.path]
    try:
        child = subprocess.run(command, input=data, capture_output=True, timeout=DEADLINE_SECONDS)
        answer = json.loads(child.stdout)
    except subprocess.TimeoutExpired:
        raise YamlError(f"it could not be read within {DEADLINE_SECONDS:g} s") from None
    except ValueError:
        last_words = child.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise YamlError(f"it could not be read: {last_words}") from None
    if "reason" in answer:
        raise YamlError(answer["reason"], answer["line"])
    return answer["value"]


def _child(data: bytes) -> dict[str, Any]:
    import yaml

    try:
        value = yaml.safe_load(data)  # not libyaml's loader: deep nesting would crash it
    except yaml.MarkedYAMLError as error:
        return {"reason": str(error.problem), "line": error.problem_mark.line + 1 if error.problem_mark else 0}
    except (yaml.YAMLError, ValueError) as error:
        return {"reason": str(error).split("\n")[0], "line": 0}
    return {"value": value}


def _answer(data: bytes) -> str:
    try:
        answer = json.dumps(_child(data), default=str, skipkeys=True)
    except (ValueError, RecursionError):
        return json.dumps({"reason": "it refers to itself, or is nested too deeply", "line": 0})
    if len(answer) > ANSWER_LIMIT_BYTES:  # a few lines of aliases can stand for gigabytes
        return json.dumps({"reason": f"it stands for more than {ANSWER_LIMIT_BYTES} bytes", "line": 0})
    return answer


if __name__ == "__main__":
    import resource

    resource.setrlimit(resource.RLIMIT_AS, (CHILD_MEMORY_BYTES, CHILD_MEMORY_BYTES))
    sys.stdout.write(_answer(sys.stdin.buffer.read()))
