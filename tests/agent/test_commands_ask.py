"""`pp-hostd ask` and `query-watchdog`: real questions to a real peer port, and what the kernel tells."""

from __future__ import annotations

import contextlib
import fcntl
import socket
import struct
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from pp_hostd.agent.peer_server import PeerServer
from pp_hostd.agent.state import StateFiles
from pp_hostd.agent.witness import ReadOutcome, Witness
from pp_hostd.model.machine import Machine
from pp_hostd.model.roster import Member, Roster
from pp_hostd.peers.message import MachineReference
from pp_hostd.peers.signing import load_keyring
from pp_hostd.service.http_port import HttpPort
from tests.agent.command_line import daemon, make_host, run, run_json
from tests.agent.values import GROUND, UID, judged
from tests.harness.isolated import isolated

PORT = 9478
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
KEY = "00" * 32
clock = partial(time.clock_gettime, time.CLOCK_BOOTTIME)


def make_peers(directory: Path) -> str:
    """The configuration of a host whose roster names b, who answers, and c, at whose address nobody does."""
    make_host()
    with socket.socket() as any_socket:
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", IFF_UP))
    (directory / "key").write_text(KEY)
    (directory / "key").chmod(0o600)
    config = directory / "pp-hostd.toml"
    config.write_text(f'[peers]\nkey_file = "{directory}/key"\nport = {PORT}\n')
    addresses = {"a": "127.0.0.1", "b": "127.0.0.1", "c": "127.0.0.2"}
    members = (Member(name, None, address, f"uid-{name}", 3, None) for name, address in addresses.items())
    StateFiles().save_rosters([Roster.of(3, 3, members)])
    return str(config)


@contextlib.asynccontextmanager
async def peer(key_file: Path) -> AsyncIterator[Witness]:
    """The peer b, whose reads always find the machine of a, not condemned."""

    async def read(about: MachineReference, _: float) -> ReadOutcome:
        assert (about.name, about.uid) == ("a", UID)
        assert isinstance(GROUND.machine, Machine)
        return GROUND.machine

    witness = Witness("token")
    witness.listed()
    port = HttpPort(PeerServer("b", load_keyring(str(key_file)), witness, read, clock, 1.5, "node").respond)
    await port.listen("127.0.0.1", PORT)
    try:
        yield witness
    finally:
        await port.close()


@isolated
async def test_a_peer_is_asked_about_this_hosts_machine(tmp_path: Path) -> None:
    config = make_peers(tmp_path)
    async with daemon(judged()), peer(tmp_path / "key") as witness:
        result = await run("ask", "b", "--config", config)
        assert (result.code, result.complaint) == (0, "")
        assert result.output.splitlines()[1].split()[:2] == ["b", "healthy"]
        witness.learned("a", UID, 7, clock() + 60)
        (row,) = await run_json("ask", "b", "--config", config)
    assert (row["peer"], row["said"], row["id"], row["why"]) == ("b", "unhealthy", 7, "condemnation 7")


@isolated
async def test_all_peers_are_asked_and_the_silent_ones_are_shown_with_the_reason(tmp_path: Path) -> None:
    config = make_peers(tmp_path)
    async with daemon(judged()), peer(tmp_path / "key"):
        result = await run("ask", "--all", "--config", config)
    assert result.code == 1
    _, first, second = (line.split() for line in result.output.splitlines())
    assert (first[:2], second[:2]) == (["b", "healthy"], ["c", "silent"])
    assert "refused" in " ".join(second)


@isolated
async def test_a_peer_with_another_key_is_silent(tmp_path: Path) -> None:
    config = make_peers(tmp_path)
    (tmp_path / "other").write_text("11" * 32)
    (tmp_path / "other").chmod(0o600)
    async with daemon(judged()), peer(tmp_path / "other"):
        (row,) = await run_json("ask", "b", "--config", config)
    assert (row["said"], "both nodes need the same peer key" in row["why"]) == ("silent", True)


@isolated
async def test_what_can_not_be_asked_is_said(tmp_path: Path) -> None:
    config = make_peers(tmp_path)
    async with daemon(judged()):
        assert "name the peers to ask, or say --all" in (await run("ask", "--config", config)).complaint
        assert "name the peers to ask" in (await run("ask", "b", "--all", "--config", config)).complaint
        assert "x, y: not in version 3 of the roster" in (await run("ask", "x", "b", "y", "--config", config)).complaint
        StateFiles().save_rosters([])
        assert "this host has no roster yet" in (await run("ask", "--all", "--config", config)).complaint
    async with daemon(judged(host_context=replace(GROUND, machine=None))):
        result = await run("ask", "--all", "--config", config)
    assert (result.code, "has not read this host's machine yet" in result.complaint) == (2, True)
    assert (await run("ask", "--all", "--config", config)).code == 3


@isolated
async def test_the_watchdog_is_queried_without_being_opened(tmp_path: Path) -> None:
    config = tmp_path / "pp-hostd.toml"
    config.write_text(f'[watchdog]\ndevice = "{tmp_path}/watchdog7"\n')
    result = await run("query-watchdog", "--config", str(config))
    assert (result.code, result.complaint) == (0, "")
    lines = [line.split(maxsplit=1) for line in result.output.splitlines()]
    assert ["device", f"{tmp_path}/watchdog7"] in lines
    assert ["exists", "no"] in lines
    assert ["holders", "nobody"] in lines
    assert ["identity", "unknown"] in lines
    assert (await run_json("query-watchdog", "--config", str(config)))["exists"] is False
