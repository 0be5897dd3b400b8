"""The program behind the socket: systemd starts one for each connection (pp-leader-fence@.service).

It reads one call from its standard input, which is the socket, runs the agent, writes one reply, and ends. The leader,
which may start no program, gets agents run by it, and the agents get none of the leader's rights.
"""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Sequence

from pp_hostd.errors import UserError
from pp_hostd.fencing import process
from pp_hostd.fencing.call import KEPT_CHARACTERS, MAX_CALL_BYTES, AgentCall, AgentReply, masked, parse_call
from pp_hostd.fencing.peer import refusal
from pp_hostd.model.record import Unreadable
from pp_hostd.service.output import complain

DIRECTORIES = ("/usr/sbin", "/usr/bin", "/sbin", "/bin")
ASK_SECONDS = 5.0
BYTES_PER_CHARACTER = 4
UNKNOWN = "whether it has acted is not known: ask for the status first"


def answer(directories: Sequence[str]) -> int:
    """Answer the one call on the standard input; agents are looked for in these directories."""
    try:
        client = socket.socket(fileno=os.dup(0))
    except OSError:
        hint = "systemd runs this command for the leader: systemctl start pp-leader-fence.socket"
        raise UserError("the standard input is not a socket", hint) from None
    with client:
        try:
            reply = _reply(client, directories)
            client.settimeout(ASK_SECONDS)
            client.sendall(reply.render().encode() + b"\n")
        except (process.Abandoned, OSError) as gone:
            complain(f"the client went away before it had its reply ({type(gone).__name__}); no agent runs on")
    return 0


def _reply(client: socket.socket, directories: Sequence[str]) -> AgentReply:
    refused = refusal(client)
    call = Unreadable("the call", refused) if refused else parse_call(_line(client))
    if isinstance(call, Unreadable):
        reply = AgentReply(None, "", f"the call is refused: {call.reason}")
        complain(reply.trouble)
    else:
        reply = _run(call, directories, client.fileno())
        outcome = reply.trouble or f"exit code {reply.code}"
        complain(f"{call.agent} {dict(call.parameters)['action']}: {outcome}\n{reply.output}".rstrip())
    return reply


def _line(client: socket.socket) -> bytes:
    """Up to the end of the line, of the input or of the time; a call that is not whole is no call."""
    ends_at = time.monotonic() + ASK_SECONDS
    line = b""
    while b"\n" not in line and len(line) <= MAX_CALL_BYTES:
        client.settimeout(max(0.001, ends_at - time.monotonic()))
        try:
            piece = client.recv(MAX_CALL_BYTES)
        except socket.timeout:
            break
        if not piece:
            break
        line += piece
    return line


def _run(call: AgentCall, directories: Sequence[str], client: int) -> AgentReply:
    found = (os.path.join(directory, call.agent) for directory in directories)
    program = next((path for path in found if os.access(path, os.X_OK)), "")
    if not program:
        install = f"dnf install /usr/sbin/{call.agent} (RHEL), apt install fence-agents (Debian)"
        return AgentReply(None, "", f"there is no {call.agent} on this host; install it: {install}")
    data = "".join(f"{key}={value}\n" for key, value in call.parameters).encode()
    try:
        ended = process.run(program, data, call.seconds, KEPT_CHARACTERS * BYTES_PER_CHARACTER, client)
    except OSError as error:
        return AgentReply(None, "", f"{program} can't be started ({error.strerror}); install its package again")
    return _told(call, ended)


def _told(call: AgentCall, ended: process.Ended) -> AgentReply:
    output = masked(ended.output.decode(errors="ignore"), call, is_whole=ended.is_whole)
    shown = "".join(letter for letter in output if letter.isprintable() or letter == "\n")[:KEPT_CHARACTERS]
    if ended.code is None:
        return AgentReply(None, shown, f"{call.agent} did not end within {call.seconds:g} s and was killed; {UNKNOWN}")
    if ended.code < 0:
        name = signal.strsignal(-ended.code)
        return AgentReply(None, shown, f"{call.agent} was ended by signal {-ended.code} ({name}); {UNKNOWN}")
    return AgentReply(ended.code, shown, "")
