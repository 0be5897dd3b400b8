"""`metrics`: the figures of this host's daemon, for people and for node_exporter's textfile collector."""

from __future__ import annotations

import asyncio
import ipaddress
import os
from argparse import Namespace
from typing import Union

from pp_hostd import config
from pp_hostd.errors import UserError
from pp_hostd.files import write_whole
from pp_hostd.model.settings import Agent, Leader, Settings
from pp_hostd.service.metric import gauge, render
from pp_hostd.service.output import complain, say

EXIT_DOWN = 3
DEADLINE_SECONDS = 5.0
MAX_BYTES = 16 << 20


Section = Union[Agent, Leader]


class _Down(Exception):
    """The daemon does not answer, for this reason."""


def metrics(arguments: Namespace) -> int:
    """The command of the program `arguments.prog`."""
    settings, prog = config.load(arguments.config).settings, arguments.prog
    is_up = 1
    section, port = _port(settings, prog)
    try:
        figures = asyncio.run(_fetched(section.metrics_address, port))
    except _Down as down:
        complain(f"{prog}: the daemon does not answer on port {port} ({down}). See: systemctl status {prog}")
        figures, is_up = "", 0
    figures += render([gauge(f"{prog.replace('-', '_')}_up", f"Whether {prog} answered.", is_up)])
    if arguments.textfile is None:
        say(figures.rstrip("\n"))
    else:
        write_whole(os.path.join(arguments.textfile, f"{prog}.prom"), figures.encode(), durable=False, mode=0o644)
    return 0 if is_up else EXIT_DOWN


def _port(settings: Settings, prog: str) -> tuple[Section, int]:
    section: Section = settings.agent if prog == "pp-hostd" else settings.leader
    if not section.metrics_port:
        name = "agent" if section is settings.agent else "leader"
        raise UserError(f"{name}.metrics_port is 0, so {prog} serves no figures", "Set a port, and restart the daemon.")
    return section, section.metrics_port


async def _fetched(address: str, port: int) -> str:
    host = address if address and not ipaddress.ip_address(address).is_unspecified else "127.0.0.1"
    try:
        reply = await asyncio.wait_for(_exchanged(host, port), DEADLINE_SECONDS)
    except asyncio.TimeoutError:
        raise _Down(f"no answer within {DEADLINE_SECONDS:g} s") from None
    except OSError as error:
        raise _Down(os.strerror(error.errno or 0)) from None
    head, _, body = reply.partition(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] != [b"200"]:
        raise _Down("its reply holds no figures")
    return body.decode()


async def _exchanged(host: str, port: int) -> bytes:
    reader, writer = await asyncio.open_connection(host, port)
    try:
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        data = b""
        while len(data) < MAX_BYTES and (part := await reader.read(65536)):
            data += part
        return data
    finally:
        writer.close()
