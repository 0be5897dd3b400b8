"""The leader's side: whatever happens at the other end of the socket becomes a reply."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from pp_hostd.fencing.call import AgentReply
from pp_hostd.fencing.client import run_agent
from tests.fencing.helpers import Agents, Helpers
from tests.fencing.values import a_call
from tests.kube.jumping_loop import JumpingLoop


async def test_an_agent_is_run_and_its_reply_comes_back(helpers: Helpers, agents: Agents) -> None:
    agents.write("cat; exit 2")
    assert await run_agent(helpers.path, a_call(action="status")) == AgentReply(2, "action=status\n", "")


async def test_several_agents_run_at_once(helpers: Helpers, agents: Agents) -> None:
    """Each waits for the other."""
    agents.write('touch "$(grep plug=)"; until [ -e plug=a ] && [ -e plug=b ]; do sleep 0.01; done')
    replies = await asyncio.gather(*(run_agent(helpers.path, a_call({"plug": plug})) for plug in "ab"))
    assert [reply.code for reply in replies] == [0, 0]


async def test_whoever_cancels_the_call_ends_the_agent(helpers: Helpers, agents: Agents) -> None:
    agents.write("echo $$ > pid; sleep 9000")
    call = asyncio.ensure_future(run_agent(helpers.path, a_call()))
    await asyncio.get_running_loop().run_in_executor(None, agents.noted)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.get_running_loop().run_in_executor(None, agents.await_gone)


def is_trouble(reply: AgentReply, *words: str) -> bool:
    return (reply.code, reply.output) == (None, "") and all(word in reply.trouble for word in words)


async def test_without_a_socket_the_command_that_starts_it_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "sock")
    assert is_trouble(await run_agent(path, a_call()), path, "systemctl start pp-leader-fence.socket")
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(path)
    assert is_trouble(await run_agent(path, a_call()), path, "systemctl start pp-leader-fence.socket")


async def test_a_path_that_can_be_no_socket_is_trouble_too() -> None:
    assert is_trouble(await run_agent("/" + "x" * 200, a_call()), "journalctl")


@pytest.mark.parametrize(
    ("answer", "told"),
    [(b"", "ended without a reply"), (b"nonsense\n", "it is not JSON"), (b"x" * 70000, "limit"), (b"{}", "version")],
)
async def test_a_helper_that_does_not_answer_as_it_should_is_trouble(tmp_path: Path, answer: bytes, told: str) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readline()
        writer.write(answer)
        writer.close()

    server = await asyncio.start_unix_server(serve, str(tmp_path / "sock"))
    async with server:
        assert is_trouble(await run_agent(str(tmp_path / "sock"), a_call()), told, "journalctl -u 'pp-leader-fence@*'")


def test_a_helper_that_stays_silent_is_waited_for_a_little_longer_than_the_agent(tmp_path: Path) -> None:
    loop = JumpingLoop()

    async def wait(listener: socket.socket) -> AgentReply:
        call = asyncio.ensure_future(run_agent(listener.getsockname(), a_call(seconds=600)))
        connection, _ = await loop.sock_accept(listener)
        with connection:
            await loop.sock_recv(connection, 65536)
            loop.jumped_seconds = 600
            await asyncio.sleep(0.01)
            assert not call.done()
            loop.jumped_seconds = 615
            return await call

    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "sock"))
        listener.listen()
        listener.setblocking(False)
        try:
            reply = loop.run_until_complete(wait(listener))
        finally:
            loop.close()
    assert is_trouble(reply, "no reply within 615 s", "journalctl")
