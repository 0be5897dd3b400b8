"""status, explain, history, gate and maintenance as a person runs them, with the daemon up and with it down."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import time
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from pp_hostd.agent.act.gate import GateFiles
from pp_hostd.agent.commands.maintenance import moment_of
from pp_hostd.agent.control_socket import NAME
from pp_hostd.agent.explain import explain
from pp_hostd.agent.report import Extras
from pp_hostd.agent.sense.boot import boot_id
from pp_hostd.agent.state import RUN_DIRECTORY, StateFiles
from pp_hostd.agent.verdict_report import History
from pp_hostd.errors import UserError
from pp_hostd.model.boot_commitments import Gate, Pending, WatchdogArmed
from pp_hostd.model.control import Maintenance
from pp_hostd.model.evidence import PeerAnswered
from pp_hostd.model.memory import LastRead
from pp_hostd.model.moment import parse_moment
from pp_hostd.model.promise import WatchdogKind, Withdrawn
from tests.agent.command_line import Result, daemon, make_host, run, run_json, start
from tests.agent.values import BOND, BOOT, GROUND, INQUIRY, MEMORY, UNARMED, judged
from tests.harness.isolated import isolated

NOON = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)
CLOSED = judged(commitments=UNARMED, host_context=replace(GROUND, electorate=None))
BUSY = judged(
    replace(MEMORY, inquiry=INQUIRY, last_read=LastRead(997.0, 999.0, "timed out " * 12)),
    replace(
        BOND,
        pending=(Pending(Withdrawn(BOOT), "17"),),
        watchdog=WatchdogArmed(WatchdogKind.SOFTDOG, 12.0, ("no device at /dev/watchdog, which is a pity",)),
        trouble="the last write did not go through, and it will be tried again soon",
    ),
    replace(GROUND, maintenance=Maintenance("eve", NOON, "new disk ü", NOON)),
    extras=Extras(
        answers=(PeerAnswered("worker-with-a-long-name.rack-12.example.com", 1.0, 2.0, None, "no route " * 9),),
        last_boot="the last boot ended because its watchdog was not fed in time",
    ),
)
COMMANDS_OF_THE_DAEMON = [
    ["status"],
    ["explain"],
    ["history"],
    ["gate", "status"],
    ["gate", "open", "--i-know"],
    ["maintenance", "status"],
    ["maintenance", "off"],
    ["maintenance", "on", "--why", "x", "--until", "1h"],
]


@isolated
async def test_status_is_a_table_of_what_the_daemon_reports() -> None:
    make_host()
    async with daemon(judged()):
        result = await run("status")
    assert (result.code, result.complaint) == (0, "")
    lines = [line.split(maxsplit=1) for line in result.output.splitlines()]
    assert ["state", "healthy"] in lines
    assert ["proof", "own read, begun 2.0 s ago"] in lines
    assert ["fed", "for   20.0 s"] in lines
    assert ["watchdog", "armed, hardware, 10 s"] in lines
    assert ["gate", "open (hold)"] in lines
    bound = "armed: dead within 42 s of its last proof (T 22 s, W 10 s), roster 3"
    assert f"promise {bound}" in " ".join(result.output.split())
    assert ["roster", "version 3, 4 nodes"] in lines
    assert ["next", "in 20.0 s: without a newer proof it stops feeding its watchdog"] in lines


@isolated
async def test_everything_that_can_be_told_fits_80_columns() -> None:
    make_host()
    async with daemon(BUSY):
        for command in (["status"], ["explain"], ["gate", "status"]):
            result = await run(*command, PYTHONUTF8="1")
            assert result.code == 0
            assert max(map(len, result.output.splitlines())) <= 80
        assert "by eve until 2026-03-01T12:00:00Z: new disk ü" in (await run("status", PYTHONUTF8="1")).output
        assert "new disk \\xfc" in (await run("status", PYTHONIOENCODING="ascii")).output


@isolated
async def test_status_for_programs_is_the_report_itself() -> None:
    make_host()
    for report in (judged(), BUSY, CLOSED):
        async with daemon(report):
            assert await run_json("status") == json.loads(json.dumps({"running": True, **report}))


@isolated
async def test_explain_prints_the_sentences() -> None:
    make_host()
    async with daemon(CLOSED):
        result = await run("explain")
        assert (await run_json("explain"))["sentences"] == explain(CLOSED)
    assert (result.code, result.complaint) == (0, "")
    assert " ".join(result.output.split()) == " ".join(explain(CLOSED))


@isolated
async def test_watching_goes_on_without_the_daemon_and_ends_quietly_on_ctrl_c() -> None:
    make_host()
    async with daemon(judged()):
        watching = await start("status", "--watch", "--json")
        assert watching.stdout is not None
        first = json.loads(await watching.stdout.readline())
    while json.loads(await asyncio.wait_for(watching.stdout.readline(), 30))["running"]:
        pass
    watching.send_signal(signal.SIGINT)
    _, complaint = await asyncio.wait_for(watching.communicate(), 30)
    assert first["state"] == "healthy"
    assert (watching.returncode, complaint) == (0, b"")


@isolated
async def test_with_the_daemon_down_every_command_says_so_and_what_it_said_last() -> None:
    make_host()
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    StateFiles().save_report({**judged(), "boot": boot_id(), "at": now - 60})
    for command in COMMANDS_OF_THE_DAEMON:
        result = await run(*command)
        assert result.code == 3
        reason, said, hint = result.complaint.splitlines()
        assert reason == "pp-hostd: the daemon does not run on this host"
        age, _, sentence = said.partition(" s ago it said: ")
        assert 60 <= int(age) <= time.clock_gettime(time.CLOCK_BOOTTIME) - (now - 60) + 1
        assert sentence == "healthy: its machine is not condemned"
        assert "journalctl -u pp-hostd" in hint


@isolated
async def test_a_report_of_another_boot_is_not_shown_as_news() -> None:
    make_host()
    StateFiles().save_report(judged())
    assert "It has said nothing in this boot." in (await run("status")).complaint
    told = await run_json("status")
    assert (told["running"], told["reason"], told["age_seconds"]) == (
        False,
        "the daemon does not run on this host",
        None,
    )
    assert told["last_report"]["state"] == "healthy"


@isolated
async def test_a_daemon_that_hangs_or_hangs_up_is_as_good_as_down() -> None:
    make_host()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(os.path.join(RUN_DIRECTORY, NAME))
        silent.listen(5)
        result = await run("status")
        assert (result.code, "does not answer (timed out)" in result.complaint) == (3, True)
    result = await run("status")  # its socket is still there
    assert (result.code, "does not run" in result.complaint) == (3, True)


@isolated
async def test_history_lists_the_changes_oldest_first() -> None:
    make_host()
    history = History(RUN_DIRECTORY)
    for minute, state in enumerate(("waiting", "healthy", "suspect")):
        when = f"2026-03-01T12:0{minute}:00Z"
        history.add({"when": when, "state": state, "sentence": "because " * 12, "proof_age_seconds": 1.25})
    async with daemon(judged()):
        result = await run("history")
        assert (result.code, result.complaint) == (0, "")
        starts = [line.split()[:4] for line in result.output.splitlines() if line.startswith("2026")]
        assert [start[1] for start in starts] == ["waiting", "healthy", "suspect"]
        assert starts[0][2:] == ["1.2", "s"]
        assert max(map(len, result.output.splitlines())) <= 80
        assert [change["state"] for change in await run_json("history")] == ["waiting", "healthy", "suspect"]
    assert (await run("history")).code == 3
    told = await run("history", "--json")
    assert (told.code, len(json.loads(told.output))) == (3, 3)


@isolated
async def test_gate_status_says_why_it_is_closed_and_what_opens_it() -> None:
    make_host()
    async with daemon(CLOSED):
        result = await run("gate", "status")
        told = await run_json("gate", "status")
    assert result.output == (
        "closed (hold): not armed: there is no roster yet\n"
        "pp-leader writes the roster: see that it runs on the control-plane hosts.\n"
    )
    assert (told["state"], told["kind"], told["kubelet_unit"]) == ("closed", "hold", "kubelet.service")


@isolated
async def test_gate_status_tells_open_from_absent() -> None:
    make_host()
    for gate, said in ((Gate.OPEN, "open (hold): kubelet.service may"), (Gate.ABSENT, "absent (hold): nothing holds")):
        async with daemon(judged(commitments=replace(BOND, gate=gate))):
            assert (await run("gate", "status")).output.startswith(said)


@isolated
async def test_the_gate_is_opened_only_for_who_knows() -> None:
    make_host()
    async with daemon(CLOSED) as playing:
        result = await run("gate", "open")
        assert (result.code, playing.orders) == (2, [])
        assert "pp-hostd gate open --i-know" in result.complaint
        result = await run("gate", "open", "--i-know")
        assert (result.code, result.output) == (0, "as you wish\n")
        assert playing.orders == [("gate-open", {"who": "eve"})]
        playing.reply = {"error": "the gate stays closed: the API is away"}
        result = await run("gate", "open", "--i-know")
        assert (result.code, result.output) == (2, "")
        assert result.complaint == "pp-hostd: the gate stays closed: the API is away\n"


async def typed(answer: str, *arguments: str) -> Result:
    """The command on a terminal, at which somebody types this."""
    mine, its = os.openpty()
    with os.fdopen(mine, "wb", buffering=0) as keyboard, os.fdopen(its, "rb") as terminal:
        keyboard.write(f"{answer}\n".encode())
        process = await start(*arguments, stdin=terminal.fileno())
        output, complaint = await asyncio.wait_for(process.communicate(), 30)
    return Result(process.returncode, output.decode(), complaint.decode())


@isolated
async def test_the_gate_opens_without_api_and_daemon_for_who_types_the_nodes_name(tmp_path: Path) -> None:
    make_host()
    config, gate = tmp_path / "it.toml", GateFiles(RUN_DIRECTORY)
    config.write_text('[agent]\nnode_name = "worker-7"\n')
    command = ["gate", "open", "--i-know", "--offline", "--config", str(config)]
    nowhere = await run(*command)
    assert (nowhere.code, "there is no terminal" in nowhere.complaint, gate.is_open(boot_id())) == (2, True, False)
    wrong = await typed("worker-8", *command)
    assert (wrong.code, gate.is_open(boot_id())) == (2, False)
    right = await typed("worker-7", *command)
    assert (right.code, gate.is_open(boot_id())) == (0, True)
    assert "no other host runs the workloads of worker-7" in right.output


@isolated
async def test_a_mistake_in_the_settings_does_not_keep_the_gate_from_being_opened_offline(tmp_path: Path) -> None:
    make_host()
    config = tmp_path / "it.toml"
    config.write_text("agent.mod = 5\n")
    name = socket.gethostname().lower()
    opened = await typed(name, "gate", "open", "--i-know", "--offline", "--config", str(config))
    assert (opened.code, GateFiles(RUN_DIRECTORY).is_open(boot_id())) == (0, True)


@isolated
async def test_maintenance_is_ordered_with_who_why_and_until_when() -> None:
    make_host()
    async with daemon(judged()) as playing:
        before = datetime.now(timezone.utc)
        assert (await run("maintenance", "on", "--why", "new disk", "--until", "2h")).output == "as you wish\n"
        await run("maintenance", "on", "--why", "x", "--until", "2099-03-01T12:00:00+01:00", "--who", "bob")
        await run("maintenance", "off", "--who", "bob")
    (first, order), second, third = playing.orders
    assert (first, order["who"], order["why"]) == ("maintenance-on", "eve", "new disk")
    until = parse_moment(order["until"])
    assert until is not None
    assert timedelta(hours=1.9) < until - before < timedelta(hours=2.1)
    assert second == ("maintenance-on", {"who": "bob", "why": "x", "until": "2099-03-01T11:00:00Z"})
    assert third == ("maintenance-off", {"who": "bob"})


@isolated
async def test_maintenance_that_leaves_the_host_armed_ends_with_code_1() -> None:
    make_host()
    async with daemon(judged()) as playing:
        playing.reply = {"sentence": "still armed: the API is away", "done": False}
        result = await run("maintenance", "on", "--why", "x", "--until", "2h")
    assert (result.code, result.output) == (1, "still armed: the API is away\n")


@isolated
async def test_maintenance_status_tells_the_order() -> None:
    make_host()
    async with daemon(judged()):
        assert (await run("maintenance", "status")).output == "There is no maintenance.\n"
        assert await run_json("maintenance", "status") is None
    async with daemon(BUSY):
        assert (await run("maintenance", "status")).output.startswith("by eve until 2026-03-01T12:00:00Z: new disk")
        assert (await run_json("maintenance", "status"))["who"] == "eve"


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("30m", 1800), ("4h", 14400), ("2d", 172800), ("2026-03-01T12:00:05Z", 5)]
)
def test_a_time_to_come_is_a_duration_or_a_moment(text: str, seconds: int) -> None:
    assert moment_of(text, NOON) == NOON + timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "2", "0h", "-1h", "1w", "12:00", "9999999d", "2026-03-01T12:00:00Z"])
def test_what_is_no_time_to_come_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--until"):
        moment_of(text, NOON)


@isolated
async def test_text_of_more_than_a_line_is_no_reason() -> None:
    make_host()
    for why in ("", "two\nlines", "x" * 501):
        result = await run("maintenance", "on", "--why", why, "--until", "1h")
        assert (result.code, "is not one line" in result.complaint) == (2, True)
