"""`pp-leader condemn --wait`: each step of the leader is a line, and the command ends when the remediation does."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from pp_hostd.errors import UserError
from pp_hostd.kube.resources import NODES
from pp_hostd.leader.commands.await_remediation import await_remediation
from pp_hostd.leader.leadership import Leadership
from pp_hostd.leader.timeline import FINISHED
from pp_hostd.model.keys import EXTERNAL_REMEDIATION
from pp_hostd.model.leader_status import LeaderStatus, Told
from pp_hostd.service.screen import Screen
from tests.harness.eventually import HANGS_SECONDS, eventually
from tests.leader.desk import ENVIRONMENT, PP_LEADER, WHEN, Desk, annotations_of, desk
from tests.leader.test_fleet import course

__all__ = ["desk"]

EARLIER = Told(WHEN, "w-1", "condemning", "of last week")
AWAY = UserError("the API can't be reached: refused")
Look = tuple[tuple[Told, ...], bool]


def line(seconds: int, stage: str, node: str = "w-1") -> Told:
    return Told(WHEN + timedelta(seconds=seconds), node, stage, f"it {stage}", WHEN + timedelta(seconds=44))


BEGUN = (EARLIER, line(0, "condemning"), line(1, "waiting"), line(1, "waiting", "w-2"))
FREED = (*BEGUN, line(46, "freeing"), line(47, "restoring"), line(48, FINISHED))


def followed(*looks: Look | UserError, screen: Screen | None = None, wait_seconds: float = 900) -> None:
    """Each look shows the history, and whether the request stands; a second passes between two of them."""
    script, now, stands = iter(looks), [0.0], [True]

    def look() -> Leadership:
        seen = next(script, None)
        assert seen is not None, "it looks again"
        if isinstance(seen, UserError):
            raise seen
        stands[0] = seen[1]
        return Leadership("ada", 1.0, 15.0, LeaderStatus("ada", WHEN, "enforce", 4, 7, "", (course(),)), seen[0])

    def rest() -> None:
        now[0] += 1.0

    shown = Screen() if screen is None else screen
    await_remediation("w-1", (EARLIER,), look, lambda: stands[0], shown, wait_seconds, lambda: now[0], rest)


def test_each_step_is_a_line_with_its_time_until_all_is_done(capsys: pytest.CaptureFixture[str]) -> None:
    followed((BEGUN, True), (BEGUN, True), (FREED, False))
    lines = capsys.readouterr().out.splitlines()
    assert lines[:5] == [
        "    0 s  condemning     it condemning",
        "    0 s  waiting        it waiting (43 s from here)",
        "    2 s  freeing        it freeing",
        "    2 s  restoring      it restoring",
        "    2 s  finished       it finished",
    ]
    assert " ".join(lines[5:]).startswith("Done. Its workloads were free 47 s after its remediation could begin")


def test_a_terminal_shows_a_bar_below_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    followed((BEGUN, True), (FREED, False), screen=Screen(follows=True))
    assert "/44 s late" in capsys.readouterr().out


def test_an_api_that_is_away_for_a_while_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    followed((BEGUN, True), AWAY, AWAY, (FREED, False))
    assert capsys.readouterr().out.count("no answer      the API can't be reached: refused") == 1


def test_a_request_that_somebody_withdraws_is_an_error() -> None:
    withdrawn = (*BEGUN, line(9, "clearing"), line(9, FINISHED))
    with pytest.raises(UserError, match="its workloads were not freed: the request was withdrawn"):
        followed((BEGUN, True), (withdrawn, False))
    with pytest.raises(UserError, match="withdrawn"):
        followed(*[((EARLIER,), False)] * 6)


def test_after_the_deadline_it_says_how_far_the_leader_is() -> None:
    with pytest.raises(UserError, match=r"not over after 2 s: waiting: half of 4 nodes know\n.*pp-leader absolve w-1"):
        followed(*[(BEGUN, True)] * 3, wait_seconds=2)
    with pytest.raises(UserError, match=r"not over after 1 s: the API can't be reached"):
        followed(AWAY, AWAY, wait_seconds=1)


def test_the_deadline_of_the_command_is_an_error_that_says_what_to_do(desk: Desk) -> None:
    desk.enrol("w-3")
    said = desk.run("condemn", "w-3", "--machines", "node", "--yes", "--wait", "--timeout", "0")
    assert (said.code, "Requested." in said.output) == (2, True)
    assert "is not over after 0 s: nobody leads" in said.complaint
    assert "To withdraw it: pp-leader absolve w-3" in said.complaint


@pytest.fixture
def waiting(desk: Desk) -> Iterator[subprocess.Popen[bytes]]:
    desk.enrol("w-4")
    command = [str(PP_LEADER), "condemn", "w-4", "--machines", "node", "--yes", "--wait"]
    command += ["--kubeconfig", desk.kubeconfig]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        yield process
        process.kill()


def test_ctrl_c_ends_the_following_and_not_the_request(desk: Desk, waiting: subprocess.Popen[bytes]) -> None:
    assert waiting.stdout is not None
    heard = b""
    while b"To withdraw it: pp-leader absolve" not in heard.replace(b"\n", b" "):
        part = os.read(waiting.stdout.fileno(), 4096)
        assert part, heard
        heard += part
    stat = Path(f"/proc/{waiting.pid}/stat")
    eventually(lambda: stat.read_text().rpartition(")")[2].split()[0] == "S", "it looks, or rests")
    waiting.send_signal(signal.SIGINT)
    _, complaint = waiting.communicate(timeout=HANGS_SECONDS)
    assert (waiting.returncode, b"The request stands" in complaint) == (130, True)
    assert b"Traceback" not in complaint
    assert annotations_of(desk.world, NODES, "w-4")[EXTERNAL_REMEDIATION] == ""
