"""The commands as real processes on a host of their own: a private /run, and a daemon that the test plays."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

from pp_hostd.agent.control_socket import ControlSocket
from pp_hostd.agent.report import Report
from pp_hostd.agent.state import RUN_DIRECTORY
from tests.harness.bed.namespaces import mount

PP_HOSTD = Path(sys.executable).with_name("pp-hostd")
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C", "COLUMNS": "80", "SUDO_USER": "eve"}


class Result(NamedTuple):
    code: int | None
    output: str
    complaint: str


def make_host() -> None:
    """Inside `isolated`: a /run of its own."""
    mount("tmpfs", "/run")
    os.mkdir(RUN_DIRECTORY, 0o700)


async def start(
    *arguments: str, stdin: int = asyncio.subprocess.DEVNULL, **environment: str
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        PP_HOSTD,
        *arguments,
        stdin=stdin,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**ENVIRONMENT, **environment},
    )


async def run(*arguments: str, **environment: str) -> Result:
    process = await start(*arguments, stdin=asyncio.subprocess.DEVNULL, **environment)
    output, complaint = await asyncio.wait_for(process.communicate(), 30)
    return Result(process.returncode, output.decode(), complaint.decode())


async def run_json(*arguments: str) -> Any:
    result = await run(*arguments, "--json")
    assert result.complaint == ""
    return json.loads(result.output)


class Daemon:
    """Answers with this report, and remembers what was ordered."""

    def __init__(self, report: Report) -> None:
        self.report = report
        self.orders: list[tuple[str, dict[str, str]]] = []
        self.reply: dict[str, Any] = {"sentence": "as you wish"}

    async def answer(self, command: str, arguments: dict[str, str]) -> dict[str, Any]:
        if command == "status":
            return self.report
        self.orders.append((command, arguments))
        return self.reply


@contextlib.asynccontextmanager
async def daemon(report: Report) -> AsyncIterator[Daemon]:
    playing = Daemon(report)
    control = ControlSocket(RUN_DIRECTORY, playing.answer)
    await control.listen()
    try:
        yield playing
    finally:
        await control.close()
