"""The leader's way to a fence agent: one call over the socket of the helper, one reply."""

from __future__ import annotations

import asyncio

from pp_hostd.fencing.call import MAX_REPLY_BYTES, AgentCall, AgentReply, parse_reply
from pp_hostd.kube.deadline import Deadline, TimedOut
from pp_hostd.model.record import Unreadable

SOCKET = "/run/pp-leader-fence.sock"
HELPER_SECONDS = 15.0
"""In addition to the agent's own time: for the helper to start, and to end what it has killed."""
UNKNOWN = "whether the agent has acted is not known; see: journalctl -u 'pp-leader-fence@*'"


async def run_agent(socket_path: str, call: AgentCall) -> AgentReply:
    """Have the agent run. Whatever goes wrong becomes a reply without a code. Cancelling this ends the agent."""
    seconds = call.seconds + HELPER_SECONDS
    try:
        with Deadline(seconds):
            line = await _exchange(socket_path, call.render().encode() + b"\n")
    except TimedOut:
        return _failed(f"{socket_path}: no reply within {seconds:g} s; {UNKNOWN}")
    except (FileNotFoundError, ConnectionRefusedError):
        return _failed(f"{socket_path}: nobody listens there; run: systemctl start pp-leader-fence.socket")
    except (OSError, ValueError) as error:  # ValueError: the line is longer than the limit
        return _failed(f"{socket_path}: {error}; {UNKNOWN}")
    if not line:
        return _failed(f"{socket_path}: the helper ended without a reply; {UNKNOWN}")
    reply = parse_reply(line)
    return _failed(f"{socket_path}: {reply}; {UNKNOWN}") if isinstance(reply, Unreadable) else reply


async def _exchange(socket_path: str, line: bytes) -> bytes:
    reader, writer = await asyncio.open_unix_connection(socket_path, limit=MAX_REPLY_BYTES)
    try:
        writer.write(line)
        await writer.drain()
        return await reader.readline()
    finally:
        writer.transport.abort()


def _failed(trouble: str) -> AgentReply:
    return AgentReply(None, "", trouble)
