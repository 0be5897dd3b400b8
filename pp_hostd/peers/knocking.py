"""Knocking at a peer's door and hearing what it found; and how the peer itself calls back."""

from __future__ import annotations

import asyncio
import os
import socket
import time

import h11

from pp_hostd.frozen import frozen
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.kube.failure import from_exception
from pp_hostd.kube.outcome import Garbage
from pp_hostd.model.address import is_address
from pp_hostd.model.record import Unreadable
from pp_hostd.peers.client import Peer, Silence, exchanged
from pp_hostd.peers.knock import PATH, Knock, Knocked, parse_knocked
from pp_hostd.peers.signing import Keyring


@frozen
class Heard:
    """A peer's answer, and this host's clock when it knocked and when the answer had come."""

    knocked: Knocked
    sent_wallclock: float
    received_wallclock: float


async def knock_at(peer: Peer, port: int, me: str, keyring: Keyring, *, deadline_seconds: float) -> Heard | Silence:
    """What the peer found. Ends by the deadline; nothing is raised."""
    if not is_address(peer.address):
        return Silence(f"{peer.address!a} is not an address")
    knock = Knock(me, peer.name, os.urandom(16).hex())
    sent_wallclock = time.time()
    try:
        with Deadline(deadline_seconds):
            status, headers, body = await exchanged(peer.address, port, PATH, knock.headers(keyring))
    except (TimedOut, OSError, h11.RemoteProtocolError, Garbage) as error:
        return Silence(from_exception(error)[1])
    received_wallclock = time.time()
    knocked = parse_knocked(knock, status, headers, body, keyring)
    if isinstance(knocked, Unreadable):
        return Silence(str(knocked))
    return Heard(knocked, sent_wallclock, received_wallclock)


async def call_back(address: str, port: int, deadline_seconds: float) -> str:
    """Why nobody takes a connection there; empty if somebody does. Nothing is sent."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with Deadline(deadline_seconds), socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as sock:
            await asyncio.get_running_loop().sock_connect(sock, (address, port))
    except (TimedOut, OSError) as error:
        error.__traceback__ = None  # its frames hold asyncio's future, which holds the error: a cycle
        return "nobody answered in time" if isinstance(error, TimedOut) else from_exception(error)[1]
    return ""
