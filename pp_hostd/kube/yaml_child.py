"""The child process of `kubeconfig`: reads YAML from its input and answers in JSON. It loads as little as it can."""

from __future__ import annotations

import json
import sys
from typing import Any

CHILD_MEMORY_BYTES = 512 * 1024 * 1024
ANSWER_LIMIT_BYTES = 4 * 1024 * 1024


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
