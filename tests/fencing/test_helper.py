"""The helper as a real process: whatever an agent does, there is one reply in time and no process is left."""

from __future__ import annotations

import json
import socket
import subprocess
from typing import Any

import pytest

from pp_hostd.fencing.call import AgentCall, AgentReply, parse_reply
from tests.fencing.helpers import PP_LEADER, Agents, Helpers
from tests.fencing.values import a_call
from tests.harness.eventually import HANGS_SECONDS

FLOOD = "yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"


def sent(helpers: Helpers, line: bytes) -> AgentReply:
    near, far = socket.socketpair()
    with near:
        with far:
            helper = helpers.start(far)
        near.settimeout(HANGS_SECONDS)
        near.sendall(line)
        with near.makefile("rb") as reader:
            reply = parse_reply(reader.readline())
        assert helper.wait(HANGS_SECONDS) == 0
    assert isinstance(reply, AgentReply), reply
    return reply


def ran(helpers: Helpers, call: AgentCall) -> AgentReply:
    return sent(helpers, call.render().encode() + b"\n")


@pytest.mark.parametrize("code", [0, 1, 2, 255])
def test_the_agent_s_exit_code_and_output_are_the_reply(helpers: Helpers, agents: Agents, code: int) -> None:
    agents.write(f"echo out; echo err >&2; exit {code}")
    assert ran(helpers, a_call()) == AgentReply(code, "out\nerr\n", "")


def test_parameters_are_lines_of_the_input_and_nowhere_else(helpers: Helpers, agents: Agents) -> None:
    agents.write("cat > input; env > environment; echo $# $* > arguments")
    assert ran(helpers, a_call({"ip": "::1", "plug": "a b", "username": "ä#="})).code == 0
    assert (agents.directory / "input").read_text() == "action=off\nip=::1\nplug=a b\nusername=ä#=\n"
    assert (agents.directory / "arguments").read_text() == "0\n"
    names = {line.partition("=")[0] for line in (agents.directory / "environment").read_text().splitlines()}
    assert names <= {"PATH", "LC_ALL", "PWD", "OLDPWD", "SHLVL", "_"}


def test_an_agent_that_reads_nothing_ends_as_it_likes(helpers: Helpers, agents: Agents) -> None:
    agents.write("exec <&-; exit 0")
    assert ran(helpers, a_call({"plug": "x" * 4000})).code == 0


def test_an_agent_that_is_not_there_is_named_with_what_to_install(helpers: Helpers) -> None:
    reply = ran(helpers, a_call(agent="fence_ipmilan"))
    assert (reply.code, reply.output) == (None, "")
    assert reply.trouble == (
        "there is no fence_ipmilan on this host; install it: dnf install /usr/sbin/fence_ipmilan (RHEL), "
        "apt install fence-agents (Debian)"
    )


def test_an_agent_that_is_no_program_can_not_be_started(helpers: Helpers, agents: Agents) -> None:
    (agents.directory / "fence_test").write_bytes(b"\0\0\0\0")
    (agents.directory / "fence_test").chmod(0o755)
    reply = ran(helpers, a_call())
    assert reply.code is None
    assert "can't be started (Exec format error)" in reply.trouble


def test_an_agent_that_hangs_is_killed_at_its_deadline_with_all_that_it_started(
    helpers: Helpers, agents: Agents
) -> None:
    agents.write("echo begun; sleep 9000 & echo $! > below; setsid sleep 9000 & echo $! > away; echo $$ > pid; wait")
    reply = ran(helpers, a_call(seconds=3))
    assert (reply.code, reply.output) == (None, "begun\n")
    assert reply.trouble == (
        "fence_test did not end within 3 s and was killed; whether it has acted is not known: ask for the status first"
    )
    for name in ("pid", "below", "away"):
        agents.await_gone(name)


def test_an_agent_that_never_stops_printing_is_killed_at_its_deadline(helpers: Helpers, agents: Agents) -> None:
    agents.write(FLOOD)
    reply = ran(helpers, a_call(seconds=1))
    assert "was killed" in reply.trouble
    assert len(reply.output) == 4096


def test_of_half_a_gigabyte_of_output_the_first_4_kib_are_kept_and_no_more_memory_is_taken(
    helpers: Helpers, agents: Agents
) -> None:
    agents.write(f"echo first; {FLOOD} | head -c 500000000; exit 7")
    reply = ran(helpers, a_call())
    assert (reply.code, reply.output[:6], len(reply.output)) == (7, "first\n", 4096)


def test_an_agent_that_a_signal_ends_has_no_exit_code(helpers: Helpers, agents: Agents) -> None:
    agents.write("echo begun; kill -SEGV $$")
    reply = ran(helpers, a_call())
    assert (reply.code, reply.output) == (None, "begun\n")
    assert reply.trouble.startswith("fence_test was ended by signal 11 (Segmentation fault); ")


@pytest.mark.parametrize("start", ["sleep 9000", "setsid sleep 9000", FLOOD], ids=["holds", "leaves", "prints"])
def test_a_process_that_outlives_the_agent_with_its_pipe_is_killed_and_holds_nothing_up(
    helpers: Helpers, agents: Agents, start: str
) -> None:
    agents.write(f"{start} & echo $! > pid; exit 0")
    assert ran(helpers, a_call()).code == 0
    agents.await_gone()


def test_when_the_client_goes_away_the_agent_is_killed(helpers: Helpers, agents: Agents) -> None:
    agents.write("echo $$ > pid; sleep 9000")
    near, far = socket.socketpair()
    with near:
        with far:
            helper = helpers.start(far)
        near.sendall(a_call().render().encode() + b"\n")
        agents.noted()
    agents.await_gone()
    assert helper.wait(HANGS_SECONDS) == 0


def test_secrets_are_not_in_the_reply(helpers: Helpers, agents: Agents) -> None:
    agents.write("cat; exit 1")
    reply = ran(helpers, a_call({"ip": "::1", "passwd": "hunter2", "community": "wolf"}))
    assert reply == AgentReply(1, "action=off\nip=::1\npasswd=***\ncommunity=***\n", "")


@pytest.mark.parametrize("before", [0, 7, 3000, 4090])
def test_not_even_the_beginning_of_a_secret_is_left_where_the_output_is_cut(
    helpers: Helpers, agents: Agents, before: int
) -> None:
    """Masks are shorter than the secret, so the output is cut in the midst of a secret and shown up to there."""
    secret = "0123456789" * 100
    agents.write(f"head -c {before} /dev/zero | tr '\\0' -; yes {secret} | tr -d '\\n' | head -c 100000")
    output = ran(helpers, a_call({"password": secret})).output
    assert "***" in output and not set(secret) & set(output)


def test_control_characters_are_not_in_the_reply(helpers: Helpers, agents: Agents) -> None:
    agents.write(r"printf 'a\033[31mb\r\n\377\0c'")
    assert ran(helpers, a_call()).output == "a[31mb\nc"


NO_ACTION = json.dumps({"v": 1, "agent": "fence_test", "parameters": {}, "seconds": 9}).encode()


@pytest.mark.parametrize(
    ("line", "told"),
    [
        (b"\n", "it is not JSON"),
        (b"[]\n", "not an object"),
        (b"\xff\n", "it is not JSON"),
        (b"x" * 20000, "longer than 16384"),
        (b'{"v": 2}\n', "this program reads version 1"),
        (NO_ACTION + b"\n", "action is missing"),
        (a_call({"debug_file": "/etc/passwd"}).render().encode() + b"\n", "debug_file is not allowed here"),
    ],
)
def test_a_call_that_is_none_runs_nothing(helpers: Helpers, agents: Agents, line: bytes, told: str) -> None:
    agents.write("echo $$ > pid")
    reply = sent(helpers, line)
    assert reply.code is None
    assert reply.trouble.startswith("the call is refused: ") and told in reply.trouble
    assert not (agents.directory / "pid").exists()


def test_a_call_that_never_becomes_whole_runs_nothing(helpers: Helpers) -> None:
    assert "it is not JSON" in sent(helpers, a_call().render().encode()[:-1]).trouble


@pytest.mark.parametrize("stdin", [subprocess.DEVNULL, subprocess.PIPE])
def test_a_person_who_runs_the_helper_hears_who_runs_it(stdin: Any) -> None:
    done = subprocess.run([PP_LEADER, "fence-helper"], stdin=stdin, capture_output=True, timeout=HANGS_SECONDS)
    assert done.returncode == 2
    assert b"systemctl start pp-leader-fence.socket" in done.stderr
