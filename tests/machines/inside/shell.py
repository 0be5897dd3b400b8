"""A root shell for the test bed, over a virtio port: a line of JSON in, a line of JSON out. It also takes files.

The port's name ends in p1; what it begins with is the kernel's choice.
"""

from __future__ import annotations

import base64
import glob
import json
import os
import subprocess
import time
from collections.abc import Iterator
from typing import Any

IDLE_SECONDS = 0.1
Json = dict[str, Any]


def obey(request: Json) -> Json:
    """The outcome: an exit status (None if it was cut off) and all that was said."""
    try:
        return write(request) if "path" in request else run(request)
    except OSError as error:  # a disk that is full, or a machine that is full of processes
        return {"exit": None, "said": str(error)}


def write(request: Json) -> Json:
    os.makedirs(os.path.dirname(request["path"]), exist_ok=True)
    with open(request["path"], "wb") as file:
        os.fchmod(file.fileno(), request["mode"])
        file.write(base64.b64decode(request["data"]))
    return {"exit": 0, "said": ""}


def run(request: Json) -> Json:
    try:
        ran = subprocess.run(
            ["/bin/sh", "-c", request["script"]],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=request["seconds"],
        )
    except subprocess.TimeoutExpired as error:
        return {"exit": None, "said": (error.stdout or b"").decode("utf-8", "replace")}
    return {"exit": ran.returncode, "said": ran.stdout.decode("utf-8", "replace")}


def lines(port: int) -> Iterator[bytes]:
    """For ever; while nobody is at the other end there is nothing to read."""
    pending = bytearray()  # of a file it is long, so it is not copied at each read
    while True:
        data = os.read(port, 65536)
        if not data:
            pending.clear()  # half a line of somebody who is gone
            time.sleep(IDLE_SECONDS)
        *ends, rest = data.split(b"\n")
        for end in ends:
            yield bytes(pending) + end
            pending.clear()
        pending += rest


def main() -> None:
    (path,) = glob.glob("/dev/vport*p1")
    port = os.open(path, os.O_RDWR)
    for line in lines(port):
        try:
            request = json.loads(line)
        except ValueError:
            continue
        answer = json.dumps({"id": request["id"], **obey(request)}).encode() + b"\n"
        while answer:
            answer = answer[os.write(port, answer) :]


if __name__ == "__main__":
    main()
